/* Partitions are made ready by several threads at once, while others look at what has arrived. */
#include "tern_test.h"

#include <pthread.h>

enum { THREADS = 4, EACH = 6, COUNT = 500, ROUNDS = 20, PARTS = THREADS * EACH };

static MPI_Request out_request, in_request;
static int out[PARTS][COUNT], in[PARTS][COUNT], before, round_now;

static int value(int round, int source, int part, int i) {
    return round * 1000003 + source * 7919 + part * 601 + i;
}

static void *writer(void *argument) {
    int thread = (int)(intptr_t)argument;
    for (int k = 0; k < EACH; k++) {
        int part = k * THREADS + thread;
        for (int i = 0; i < COUNT; i++)
            out[part][i] = value(round_now, t_rank, part, i);
        OK(MPI_Pready(part, out_request));
    }
    return NULL;
}

static void *reader(void *argument) {
    int thread = (int)(intptr_t)argument;
    for (int k = 0; k < EACH; k++) {
        int part = thread * EACH + k, flag = 0;
        while (!flag)
            OK(MPI_Parrived(in_request, part, &flag));
        for (int i = 0; i < COUNT; i++)
            CHECK_AT(i, in[part][i], value(round_now, before, part, i));
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    t_started();
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    int next = (t_rank + 1) % t_size;
    before = (t_rank + t_size - 1) % t_size;
    OK(MPI_Psend_init(out, PARTS, COUNT, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &out_request));
    OK(MPI_Precv_init(in, PARTS, COUNT, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &in_request));
    for (round_now = 0; round_now < ROUNDS; round_now++) {
        OK(MPI_Start(&out_request));
        OK(MPI_Start(&in_request));
        pthread_t threads[2 * THREADS];
        for (int t = 0; t < THREADS; t++) {
            CHECK(pthread_create(&threads[t], NULL, writer, (void *)(intptr_t)t) == 0);
            CHECK(pthread_create(&threads[THREADS + t], NULL, reader, (void *)(intptr_t)t) == 0);
        }
        /* A wait may begin before the last partition is ready. */
        if (round_now % 2)
            OK(MPI_Wait(&out_request, MPI_STATUS_IGNORE));
        for (int t = 0; t < 2 * THREADS; t++)
            CHECK(pthread_join(threads[t], NULL) == 0);
        OK(MPI_Wait(&out_request, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&in_request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&out_request));
    OK(MPI_Request_free(&in_request));
    return t_end();
}
