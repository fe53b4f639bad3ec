/* What is counted of windows, and told at the end: as much as was called. */
// np: 2+
// env: TERN_EXPLAIN=used
// args: shared
// args: create
// expect-stderr: rank 0: [12] (windows in shared memory: 30 Puts, 21 Gets, 40 accumulates|other windows: [0-9]+ operations handed over)
// expect-stderr: rank 0: epochs: 11 fences of which \d+ were told to each rank, 5 posts, 5 starts, 8 locks of which \d+ were not free, 13 flushes
// not-on: mpich (other variables)
// not-on: ompi (other variables)
#include "../window.h"

enum { PUTS, GETS, ATOMICS, TOLD, COPIED, FENCES, POSTS, STARTS, LOCKS, FLUSHES, COUNT };
static const char *const names[] = {"tern_window_put",    "tern_window_get",   "tern_window_atomic", "tern_window_told",
                                    "tern_window_copied", "tern_window_fence", "tern_window_post",   "tern_window_start",
                                    "tern_window_lock",   "tern_window_flush"};
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNT];

static long counted(int which) {
    uint64_t got = 77;
    CHECK_EQ(MPI_T_pvar_read(session, handles[which], &got), MPI_SUCCESS);
    return (long)got;
}

static long value = 1, old = -1, many[100];
static MPI_Win win;
static int next;

static void fences(void) {
    /* 10 fences with an operation of each kind, one of many elements among them, 1 without. */
    for (int i = 0; i < 10; i++) {
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(many, i % 2 ? 1 : 100, MPI_LONG, next, 0, i % 2 ? 1 : 100, MPI_LONG, win));
        OK(MPI_Get(many, 1, MPI_LONG, next, 120, 1, MPI_LONG, win));
        OK(MPI_Accumulate(&value, 1, MPI_LONG, next, 130, 1, MPI_LONG, MPI_SUM, win));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(counted(FENCES), 11);
}

static void exposures(void) {
    int last = (t_rank + t_size - 1) % t_size;
    MPI_Group world, other, self;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &next, &other));
    OK(MPI_Group_incl(world, 1, &last, &self));
    for (int i = 0; i < 5; i++) {
        OK(MPI_Win_post(self, 0, win));
        OK(MPI_Win_start(other, 0, win));
        for (int j = 0; j < 2; j++)
            OK(MPI_Put(&value, 1, MPI_LONG, next, 140, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    }
    CHECK_EQ(counted(POSTS), 5);
    CHECK_EQ(counted(STARTS), 5);
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&self));
}

static void locks(void) {
    for (int i = 0; i < 8; i++) {
        long zero = 0;
        OK(MPI_Win_lock(i % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, next, 0, win));
        OK(MPI_Fetch_and_op(&value, &old, MPI_LONG, next, 150, MPI_SUM, win));
        OK(MPI_Win_flush(next, win));
        OK(MPI_Compare_and_swap(&value, &zero, &old, MPI_LONG, next, 160, win));
        OK(MPI_Get_accumulate(&value, 1, MPI_LONG, &old, 1, MPI_LONG, next, 170, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Get(&old, 1, MPI_LONG, next, 170, 1, MPI_LONG, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, 180, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(next, win));
    }
    CHECK_EQ(counted(LOCKS), 8);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* A program that looks by flushing. */
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i < 5; i++)
        OK(MPI_Win_flush_all(win));
    for (int i = 0; i < 3; i++)
        OK(MPI_Get(&old, 1, MPI_LONG, next, 170, 1, MPI_LONG, win));
    for (int i = 0; i < 6; i++)
        OK(MPI_Accumulate(&value, 1, MPI_LONG, next, 170, 1, MPI_LONG, MPI_SUM, win));
    for (int i = 0; i < 2; i++)
        OK(MPI_Put(&value, 1, MPI_LONG, next, 180, 1, MPI_LONG, win));
    OK(MPI_Win_unlock_all(win));
    CHECK_EQ(counted(FLUSHES), 13);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int creates = argc > 1 && strcmp(argv[1], "create") == 0, provided;
    long *base, own[200] = {0};
    CHECK_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    for (int i = 0, index, count; i < COUNT; i++) {
        CHECK_EQ(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count), MPI_SUCCESS);
        CHECK_EQ(MPI_T_pvar_start(session, handles[i]), MPI_SUCCESS);
    }
    if (creates)
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    else
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    next = (t_rank + 1) % t_size;
    fences();
    exposures();
    locks();
    long puts = 10 + 10 + 8 + 2, gets = 10 + 8 + 3, atomics = 10 + 3 * 8 + 6;
    CHECK_EQ(counted(PUTS) + counted(GETS) + counted(ATOMICS) + counted(TOLD) + counted(COPIED), puts + gets + atomics);
    /* Where shared memory is not to be used (TERN_DEVICES) the targets carry them out. */
    if (!creates && t_is_direct(win)) {
        CHECK_EQ(counted(PUTS), puts);
        CHECK_EQ(counted(GETS), gets);
        CHECK_EQ(counted(ATOMICS), atomics);
    }
    OK(MPI_Win_free(&win));
    return t_end();
}
