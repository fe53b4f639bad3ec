/* Messages of all lengths both ways, by all protocols of shared memory; then every byte that was
 * received decides a branch, which is what memcheck looks at. With the argument "threads" two threads of
 * each rank do so at once. */
#include "c/tern_test.h"

#include <pthread.h>

enum { LONGEST = 3 << 20 };

static MPI_Comm comms[2];
static long seen[2];

static void exchange(MPI_Comm comm, int bytes, int late, long *count) {
    unsigned char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
    MPI_Request requests[2];
    int peer = 1 - t_rank;
    t_fill(out, (size_t)bytes, (uint64_t)(bytes + t_rank));
    /* Once the receive is first, once the message: then the other side copies. */
    if (t_rank == late)
        OK(MPI_Barrier(comm));
    OK(MPI_Irecv(in, bytes, MPI_BYTE, peer, 0, comm, &requests[0]));
    if (t_rank != late)
        OK(MPI_Barrier(comm));
    OK(MPI_Isend(out, bytes, MPI_BYTE, peer, 0, comm, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < bytes; i++)
        if (in[i] == t_byte((uint64_t)(bytes + peer), (size_t)i))
            *count += 1;
    free(out);
    free(in);
}

static void *all(void *argument) {
    int which = (int)(intptr_t)argument, lengths[] = {8, 1000, 20000, 100000, 1 << 20, LONGEST};
    for (int i = 0; i < 6; i++)
        for (int late = 0; late < 2; late++)
            exchange(comms[which], lengths[i], late, &seen[which]);
    return NULL;
}

int main(int argc, char **argv) {
    int provided, threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    OK(MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    t_started();
    CHECK_EQ(t_size, 2);
    for (int t = 0; t < 2; t++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    pthread_t other;
    if (threads)
        CHECK(pthread_create(&other, NULL, all, (void *)1) == 0);
    all((void *)0);
    if (threads)
        CHECK(pthread_join(other, NULL) == 0);
    for (int t = 0; t <= threads; t++)
        CHECK_EQ(seen[t], 2L * (8 + 1000 + 20000 + 100000 + (1 << 20) + LONGEST));
    for (int t = 0; t < 2; t++)
        OK(MPI_Comm_free(&comms[t]));
    return t_end();
}
