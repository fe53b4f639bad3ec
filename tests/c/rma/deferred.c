/* A lock that is asked for together with what it is for: operations of all kinds and lengths under exclusive and shared locks of one target,
 * which its owner and others want as well; locks for nothing; a flush in between; locks of several targets at once, and requests.
 * With two more arguments by Tern's adapter, in this manner. */
// np: 2+
// args: allocate
// args: create
// args: create rc
// args: create rd
// args: create hybrid
// args: dynamic
// timeout: 240
#include <unistd.h>

#include "tern_test.h"

enum { ROUNDS = 40, RUN = 5000, CELLS = RUN + 500 };

static long *base, own[CELLS], here[RUN];
static MPI_Aint *at;
static MPI_Win win;
static int is_dynamic;

static MPI_Aint cell(int target, int index) {
    return is_dynamic ? at[target] + (MPI_Aint)(index * sizeof(long)) : index;
}

static void make(const char *kind) {
    MPI_Aint mine;
    at = t_alloc(sizeof *at * t_size);
    base = own;
    is_dynamic = strcmp(kind, "dynamic") == 0;
    if (is_dynamic) {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, own, sizeof own));
    } else if (strcmp(kind, "create") == 0)
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    else
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Get_address(base, &mine));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, 0, win));
    memset(base, 0, sizeof own);
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A run that one rank has put under an exclusive lock is whole for all who get it, and a counter beside it is never read and written by two. */
static void whole(int round) {
    int count = round % 3 == 0 ? 1 : round % 3 == 1 ? 400 : RUN, from = round % 3 == 0 ? 4 : round % 3 == 1 ? 5 : 500;
    long value = 1000L * round + t_rank, seen = -1, one = 1;
    for (int i = 0; i < count; i++)
        here[i] = value;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Put(here, count, MPI_LONG, 0, cell(0, from), count, MPI_LONG, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, cell(0, 0), 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Get(here, count, MPI_LONG, 0, cell(0, from), count, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    for (int i = 1; i < count; i++)
        CHECK_AT(i, here[i], here[0]);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Get(&seen, 1, MPI_LONG, 0, cell(0, 1), 1, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    seen++;
    OK(MPI_Put(&seen, 1, MPI_LONG, 0, cell(0, 1), 1, MPI_LONG, win));
    if (round % 5 == 0)
        OK(MPI_Win_flush_local(0, win));
    OK(MPI_Win_unlock(0, win));
}

/* Nothing under a lock, a flush of nothing, and operations that fetch under a lock that was not waited for. */
static void odd(int round) {
    MPI_Request request;
    long one = 1, before = -1, zero = 0;
    int target = (t_rank + round) % t_size;
    OK(MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win));
    if (round % 3 == 0)
        OK(MPI_Win_flush(target, win));
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, cell(target, 2), MPI_SUM, win));
    if (round % 2)
        OK(MPI_Win_flush(target, win));
    OK(MPI_Fetch_and_op(&one, &zero, MPI_LONG, target, cell(target, 2), MPI_SUM, win));
    OK(MPI_Win_unlock(target, win));
    CHECK(before >= 0 && zero > before);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Raccumulate(&one, 1, MPI_LONG, target, cell(target, 2), 1, MPI_LONG, MPI_SUM, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rget(&before, 1, MPI_LONG, target, cell(target, 2), 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(before >= 2); /* the accumulate is not ordered with it */
    OK(MPI_Win_unlock(target, win));
}

/* Locks of all targets, one by one, shared: all of them held at a time. */
static void all(void) {
    long one = 1;
    for (int target = 0; target < t_size; target++)
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    for (int target = 0; target < t_size; target++)
        OK(MPI_Accumulate(&one, 1, MPI_LONG, target, cell(target, 3), 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_flush_all(win));
    for (int target = t_size - 1; target >= 0; target--)
        OK(MPI_Win_unlock(target, win));
}

/* What waits behind a lock arrives although its origin is busy elsewhere until somebody has seen it. */
static void arrives(void) {
    long one = 1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 1) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, cell(0, 0), 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_unlock(0, win));
    } else if (t_rank == 0) {
        volatile long *word = base;
        long before = (long)ROUNDS * t_size;
        while (*word == before) {
            int flag;
            OK(MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
            __sync_synchronize(); /* MPI_Win_sync is for passive target epochs (MPI 5.0 section 12.5.4), and this is none */
        }
        CHECK_EQ(*word, before + 1);
        OK(MPI_Send(NULL, 0, MPI_INT, 1, 7, MPI_COMM_WORLD));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    if (argc > 2) { /* no other library knows of these */
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
    }
    t_begin(&argc, &argv);
    make(argc > 1 ? argv[1] : "allocate");
    for (int round = 0; round < ROUNDS; round++) {
        whole(round);
        odd(round);
        all();
        if (t_rank == 0 && round % 8 == 0)
            usleep(500);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win));
    if (t_rank == 0) {
        CHECK_EQ(base[0], (long)ROUNDS * t_size);
        CHECK_EQ(base[1], (long)ROUNDS * t_size);
    }
    CHECK_EQ(base[3], (long)ROUNDS * t_size);
    OK(MPI_Win_unlock(t_rank, win));
    arrives();
    if (is_dynamic)
        OK(MPI_Win_detach(win, own));
    OK(MPI_Win_free(&win));
    free(at);
    return t_end();
}
