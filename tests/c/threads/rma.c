/* Several threads of each rank use one window in one epoch of lock_all. */
// args: allocate
// args: create
// timeout: 120
#include <pthread.h>

#include "tern_test.h"

enum { THREADS = 4, ROUNDS = 60 };

static MPI_Win win;

static void *work(void *number) {
    int thread = (int)(intptr_t)number;
    for (int i = 0; i < ROUNDS; i++) {
        int to = (t_rank + thread + i) % t_size;
        long one = 1, before = -1, mine = t_rank * 1000 + thread, got = -1;
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, to, 0, MPI_SUM, win));
        OK(MPI_Win_flush(to, win));
        CHECK(before >= 0);
        MPI_Aint cell = 1 + t_rank * THREADS + thread;
        OK(MPI_Put(&mine, 1, MPI_LONG, to, cell, 1, MPI_LONG, win));
        OK(MPI_Win_flush(to, win));
        MPI_Request request;
        OK(MPI_Rget(&got, 1, MPI_LONG, to, cell, 1, MPI_LONG, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_EQ(got, mine);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int level;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    t_started();
    CHECK_EQ(level, MPI_THREAD_MULTIPLE);
    long *base;
    MPI_Aint bytes = sizeof(long) * (1 + THREADS * t_size);
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = t_alloc(bytes);
        OK(MPI_Win_create(base, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
    memset(base, 0, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long sum = 0;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win));
    OK(MPI_Allreduce(base, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(sum, (long)THREADS * ROUNDS * t_size);
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Win_free(&win));
    return t_end();
}
