/* Ranks of one host need no target that takes part where the kernel copies between them, whoever has brought the memory: locks, Put and Get,
 * accumulates of one element and of long runs, fetches and swaps are carried out at a rank that calls nothing of MPI, nor has a thread that does,
 * where epochs have few of them. None is told it. */
// np: 2+
// args: allocate
// args: create
// args: dynamic
// timeout: 120
// one-host: ranks of several hosts tell their targets
// not-on: mpich (other variables)
// not-on: ompi (other variables)
#include <time.h>

#include "../window.h"
#include "counter.h"

enum { ROUNDS = 40, RUN = 20000, WAIT_S = 60 };
enum { COUNTER, SWAPPED, FETCHED, DONE, CELL, SUMS, CELLS = SUMS + RUN };

static long memory[CELLS], many[RUN], before[RUN];
static volatile long *base;
static MPI_Aint start;
static MPI_Win win;

/* Displacement of a cell of rank 0. */
static MPI_Aint cell(int at) {
    return start + (MPI_Aint)((size_t)at * sizeof(long));
}

static void make(const char *kind) {
    base = memory;
    if (strcmp(kind, "allocate") == 0) {
        OK(MPI_Win_allocate(sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&base, &win));
        memset((void *)base, 0, sizeof memory);
    } else if (strcmp(kind, "create") == 0) {
        OK(MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, memory + RUN, sizeof(long)));
        OK(MPI_Win_detach(win, memory + RUN));
        OK(MPI_Win_attach(win, memory, 4 * sizeof(long)));
        OK(MPI_Win_attach(win, memory + 4, sizeof memory - 4 * sizeof(long)));
        OK(MPI_Get_address(memory, &start));
    }
    OK(MPI_Bcast(&start, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void words(int round) {
    long one = 1, value = 1000L * t_rank + round, got = -1, expected = -1;
    OK(MPI_Win_lock(round % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, cell(COUNTER), 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, cell(FETCHED), MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    CHECK(got >= round && got < (long)ROUNDS * (t_size - 1));
    if (round % 2) { /* alone */
        OK(MPI_Put(&value, 1, MPI_LONG, 0, cell(CELL), 1, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Get(&got, 1, MPI_LONG, 0, cell(CELL), 1, MPI_LONG, win));
        OK(MPI_Win_flush_local(0, win));
        CHECK_EQ(got, value);
    }
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_lock_all(0, win));
    for (expected = 0;; expected = got) { /* one more, by comparing */
        long next = expected + 1;
        OK(MPI_Compare_and_swap(&next, &expected, &got, MPI_LONG, 0, cell(SWAPPED), win));
        OK(MPI_Win_flush(0, win));
        if (got == expected)
            break;
    }
    OK(MPI_Win_unlock_all(win));
}

/* Sums of all origins, a shared lock for each, in runs that are changed piece by piece. */
static void runs(int round) {
    int count = round % 4 ? 10 : RUN;
    for (int i = 0; i < count; i++)
        many[i] = i + 1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    if (round % 8 == 0)
        OK(MPI_Get_accumulate(many, count, MPI_LONG, before, count, MPI_LONG, 0, cell(SUMS), count, MPI_LONG, MPI_SUM, win));
    else
        OK(MPI_Accumulate(many, count, MPI_LONG, 0, cell(SUMS), count, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_unlock(0, win));
    for (int i = 0; round % 8 == 0 && i < count; i++)
        CHECK_AT(i, before[i] % (i + 1), 0);
}

static void origin(void) {
    long one = 1;
    for (int round = 0; round < ROUNDS; round++) {
        words(round);
        runs(round);
    }
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, cell(DONE), 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_unlock(0, win));
}

static void target(void) {
    time_t begun = time(NULL);
    long all = t_size - 1;
    while (base[DONE] < all && time(NULL) - begun < WAIT_S) {
        struct timespec nap = {.tv_nsec = 50000};
        nanosleep(&nap, NULL); /* no call of MPI */
    }
    __sync_synchronize();
    CHECK_EQ(base[DONE], all);
    CHECK_EQ(base[COUNTER], all * ROUNDS);
    CHECK_EQ(base[SWAPPED], all * ROUNDS);
    CHECK_EQ(base[FETCHED], all * ROUNDS);
    for (int i = 0; i < RUN; i++)
        CHECK_AT(i, base[SUMS + i], all * (i + 1) * (i < 10 ? ROUNDS : ROUNDS / 4));
}

int main(int argc, char **argv) {
    setenv("TERN_PROGRESS", "inside", 1);
    t_begin(&argc, &argv);
    make(argc > 1 ? argv[1] : "create");
    t_counted("tern_window_told");
    if (t_is_by_words(win)) {
        if (t_rank == 0)
            target();
        else
            origin();
        CHECK_EQ(t_counted("tern_window_told"), 0);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (argc > 1 && strcmp(argv[1], "dynamic") == 0) {
        OK(MPI_Win_detach(win, memory));
        OK(MPI_Win_detach(win, memory + 4));
    }
    OK(MPI_Win_free(&win));
    return t_end();
}
