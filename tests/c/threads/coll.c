/* MPI_THREAD_MULTIPLE: each thread runs collectives on a communicator of its own, and makes
 * and frees further ones, while the others do the same. */
// timeout: 120
#include "tern_test.h"

#include <pthread.h>

enum { THREADS = 3, ROUNDS = 30, COUNT = 3000 };

static MPI_Comm comms[THREADS];

static void *worker(void *argument) {
    int me = (int)(intptr_t)argument;
    int *out = t_alloc(COUNT * sizeof(int)), *in = t_alloc(COUNT * sizeof(int));
    for (int round = 0; round < ROUNDS; round++) {
        int count = round % 5 ? 10 : COUNT, root = round % t_size;
        for (int i = 0; i < count; i++)
            out[i] = t_rank + me * i + round;
        OK(MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comms[me]));
        for (int i = 0; i < count; i++)
            CHECK_AT(i, in[i], t_size * (t_size - 1) / 2 + t_size * (me * i + round));
        OK(MPI_Bcast(out, count, MPI_INT, root, comms[me]));
        for (int i = 0; i < count; i++)
            CHECK_AT(i, out[i], root + me * i + round);
        OK(MPI_Barrier(comms[me]));
        if (round % 10 == 0) {
            MPI_Comm child;
            int size = -1;
            OK(MPI_Comm_split(comms[me], t_rank % 2, 0, &child));
            OK(MPI_Comm_size(child, &size));
            CHECK_EQ(size, (t_size + 1 - t_rank % 2) / 2);
            OK(MPI_Comm_free(&child));
        }
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv) {
    int provided = -1;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    t_started();
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&threads[t], NULL, worker, (void *)(intptr_t)t) == 0);
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_join(threads[t], NULL) == 0);
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_free(&comms[t]));
    return t_end();
}
