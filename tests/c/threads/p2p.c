/* MPI_THREAD_MULTIPLE: pairs of threads exchange messages at once, told apart by tags in
 * one half of the rounds and by communicators in the other; wildcards included. */
// timeout: 120
#include "tern_test.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 200 };

static MPI_Comm comms[THREADS];

static void *worker(void *argument) {
    int me = (int)(intptr_t)argument, next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    unsigned char *out = t_alloc(70000), *in = t_alloc(70000);
    t_rng rng = t_seed((uint64_t)me);
    for (int round = 0; round < ROUNDS; round++) {
        int own = round % 2, tag = own ? 0 : me, bytes = (int)t_below(&rng, round % 10 ? 300 : 70000);
        MPI_Comm comm = own ? comms[me] : MPI_COMM_WORLD;
        uint64_t pattern = (uint64_t)(me * 100000 + round);
        MPI_Request request;
        MPI_Status status;
        t_fill(out, (size_t)bytes, pattern + (uint64_t)t_rank * 7);
        if (round % 3 == 0) {
            OK(MPI_Sendrecv(out, bytes, MPI_BYTE, next, tag, in, 70000, MPI_BYTE, previous, tag, comm, &status));
        } else if (round % 3 == 1) {
            OK(MPI_Isend(out, bytes, MPI_BYTE, next, tag, comm, &request));
            OK(MPI_Recv(in, 70000, MPI_BYTE, own ? MPI_ANY_SOURCE : previous, tag, comm, &status));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            int flag = 0;
            OK(MPI_Irecv(in, 70000, MPI_BYTE, previous, tag, comm, &request));
            OK(MPI_Send(out, bytes, MPI_BYTE, next, tag, comm));
            while (!flag)
                OK(MPI_Test(&request, &flag, &status));
        }
        CHECK_STATUS(status, previous, tag, bytes);
        CHECK_FILL(in, bytes, pattern + (uint64_t)previous * 7);
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
