/* Locks of both types, lock_all, the flush family, requests: sums that need the
 * lock, a counter that needs none, and a target that is outside MPI meanwhile. */
// args: allocate
// args: create
#include "tern_test.h"

enum { ROUNDS = 50 };

static long *base, own[8];
static MPI_Win win;

static void make(int creates) {
    if (creates) {
        base = own;
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, 0, win));
        memset(base, 0, sizeof own);
        OK(MPI_Win_unlock(t_rank, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void sums(void) {
    for (int round = 0; round < ROUNDS; round++) { /* read, add, write: only the lock keeps them together */
        long value = -1;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&value, 1, MPI_LONG, 0, 2, 1, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        value += t_rank + 1;
        OK(MPI_Put(&value, 1, MPI_LONG, 0, 2, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        long one = 1, before = -1;
        int at = round % t_size;
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, at, 3, MPI_SUM, win));
        OK(MPI_Win_flush(at, win));
        CHECK(before >= 0 && before < (long)ROUNDS * t_size);
        OK(MPI_Accumulate(&one, 1, MPI_LONG, at, 4, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Win_flush_local(at, win));
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_flush_local_all(win));
    OK(MPI_Win_sync(win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win));
    long each = 0;
    for (int round = 0; round < ROUNDS; round++)
        each += round % t_size == t_rank;
    CHECK_EQ(base[3], each * t_size);
    CHECK_EQ(base[4], each * t_size);
    if (t_rank == 0)
        CHECK_EQ(base[2], (long)ROUNDS * t_size * (t_size + 1) / 2);
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void requests_too(void) {
    /* Requests, whose buffers are free when they have completed. */
    OK(MPI_Win_lock(MPI_LOCK_SHARED, (t_rank + 1) % t_size, 0, win));
    long put = 70 + t_rank, got = -1, old = -1, add = 5;
    MPI_Request requests[4];
    OK(MPI_Rput(&put, 1, MPI_LONG, (t_rank + 1) % t_size, 5, 1, MPI_LONG, win, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    put = -1;
    OK(MPI_Win_flush((t_rank + 1) % t_size, win));
    OK(MPI_Rget(&got, 1, MPI_LONG, (t_rank + 1) % t_size, 5, 1, MPI_LONG, win, &requests[0]));
    OK(MPI_Raccumulate(&add, 1, MPI_LONG, (t_rank + 1) % t_size, 6, 1, MPI_LONG, MPI_SUM, win, &requests[1]));
    OK(MPI_Rget_accumulate(&add, 1, MPI_LONG, &old, 1, MPI_LONG, (t_rank + 1) % t_size, 6, 1, MPI_LONG, MPI_SUM, win,
                           &requests[2]));
    OK(MPI_Rget(&got, 1, MPI_LONG, MPI_PROC_NULL, 5, 1, MPI_LONG, win, &requests[3]));
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(got, 70 + t_rank);
    CHECK_EQ(old, 5);
    OK(MPI_Win_unlock((t_rank + 1) % t_size, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, MPI_MODE_NOCHECK, win));
    CHECK_EQ(base[6], 10);
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void turns(void) {
    /* Compare and swap: each of the ranks gets its turn once. */
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    long want = t_rank, next = t_rank + 1, seen;
    do {
        OK(MPI_Compare_and_swap(&next, &want, &seen, MPI_LONG, 0, 7, win));
        OK(MPI_Win_flush(0, win));
        CHECK(seen <= want);
    } while (seen != want);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK_EQ(base[7], t_size);
        OK(MPI_Win_unlock(0, win));
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    make(argc > 1 && strcmp(argv[1], "create") == 0);
    sums();
    requests_too();
    turns();
    OK(MPI_Win_free(&win));
    return t_end();
}
