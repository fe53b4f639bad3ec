/* MPI_THREAD_MULTIPLE: each thread has a window of its own, in which it fences, exposes or locks, and all count in one that is locked as long. */
// np: 2,4
// args: create
// args: allocate
// args: create rc
// timeout: 120
#include "tern_test.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 25, BYTES = 512 };

static MPI_Win windows[THREADS], counter;
static long *bases[THREADS], *counted;
static MPI_Group before, behind;
static int next, last;

static long drawn(long rank, long thread, long round) {
    return rank * 1000000 + thread * 1000 + round;
}

static void one_round(long thread, long round) {
    MPI_Win win = windows[thread];
    long value = drawn(t_rank, thread, round), got = -1, one = 1;
    if (thread == 1) {
        OK(MPI_Win_post(before, 0, win));
        OK(MPI_Win_start(behind, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        CHECK_AT(round, bases[thread][0], drawn(last, thread, round));
    } else if (thread == 2) {
        OK(MPI_Win_lock(round % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, next, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, t_rank, 1, MPI_LONG, win));
        OK(MPI_Win_flush(next, win));
        OK(MPI_Get(&got, 1, MPI_LONG, next, t_rank, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(next, win));
        CHECK_AT(round, got, value);
    } else {
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        CHECK_AT(round, bases[thread][0], drawn(last, thread, round));
    }
    got = -1;
    OK(MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, 0, MPI_SUM, counter));
    OK(MPI_Win_flush(0, counter));
    CHECK(got >= 0 && got < (long)t_size * THREADS * ROUNDS);
}

static void *go(void *thread) {
    for (long round = 1; round <= ROUNDS; round++)
        one_round((long)(intptr_t)thread, round);
    return NULL;
}

static void make(int is_allocated, long **base, MPI_Win *win) {
    if (is_allocated) {
        OK(MPI_Win_allocate(BYTES, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, base, win));
    } else {
        *base = t_alloc(BYTES);
        OK(MPI_Win_create(*base, BYTES, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, win));
    }
    memset(*base, 0, BYTES);
}

int main(int argc, char **argv) {
    int is_allocated = argc > 1 && strcmp(argv[1], "allocate") == 0;
    if (argc > 2) {
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
    }
    pthread_t threads[THREADS];
    MPI_Group all;
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    t_started();
    next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &last, &before));
    OK(MPI_Group_incl(all, 1, &next, &behind));
    for (int i = 0; i < THREADS; i++)
        make(is_allocated, &bases[i], &windows[i]);
    make(is_allocated, &counted, &counter);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, counter));
    for (long i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, go, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    OK(MPI_Win_unlock_all(counter));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        CHECK_EQ(counted[0], t_size * THREADS * ROUNDS);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, windows[0]));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, windows[3]));
    for (int i = 0; i < THREADS; i++) {
        OK(MPI_Win_free(&windows[i]));
        if (!is_allocated)
            free(bases[i]);
    }
    OK(MPI_Win_free(&counter));
    if (!is_allocated)
        free(counted);
    OK(MPI_Group_free(&before));
    OK(MPI_Group_free(&behind));
    OK(MPI_Group_free(&all));
    return t_end();
}
