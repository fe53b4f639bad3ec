/* What a rank of many costs: how long MPI_Init takes, and the memory of a rank after everybody has spoken with everybody. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORDS = 16, ROUNDS = 4 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Memory of this process that is nobody else's, in KB. */
static double own_memory(void) {
    char line[128];
    long sum = 0, kilobytes;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Clean: %ld", &kilobytes) == 1 || sscanf(line, "Private_Dirty: %ld", &kilobytes) == 1)
            sum += kilobytes;
    if (file)
        fclose(file);
    return (double)sum;
}

int main(int argc, char **argv) {
    int rank, size;
    double mine[4], most[4], begin = now();
    MPI_Init(&argc, &argv);
    mine[0] = now() - begin;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *out = malloc(sizeof(int) * WORDS * (size_t)size), *in = calloc(WORDS * (size_t)size, sizeof(int));
    for (int i = 0; i < WORDS * size; i++)
        out[i] = rank * 100000 + i;
    double before = own_memory();
    begin = now();
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request *requests = malloc(sizeof(MPI_Request) * 2 * (size_t)size);
        for (int peer = 0; peer < size; peer++) {
            MPI_Irecv(in + WORDS * peer, WORDS, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[2 * peer]);
            MPI_Isend(out + WORDS * peer, WORDS, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[2 * peer + 1]);
        }
        MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
        free(requests);
        for (int i = 0; i < WORDS * size; i++)
            if (in[i] != i / WORDS * 100000 + rank * WORDS + i % WORDS)
                MPI_Abort(MPI_COMM_WORLD, 9);
    }
    mine[1] = now() - begin;
    mine[2] = before, mine[3] = own_memory() - before;
    MPI_Reduce(mine, most, 4, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("all bytes arrived: %d ranks, MPI_Init %.2f s, %d all-to-alls %.2f s, memory of a rank %.0f KB and %.0f KB for them\n",
               size, most[0], ROUNDS, most[1], most[2], most[3]);
    MPI_Finalize();
    free(out), free(in);
    return 0;
}
