/* Half a round between two ranks, and what a stream of messages carries: a line for each length, for the tables of peers. The
 * payload is looked at once before anything is timed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16, TURNS = 9 };

static int rank;
static char *out, *in;

static double rounds(int length, int count) {
    double begun = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        if (rank == 0) MPI_Send(out, length, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, length, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(out, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begun) / count / 2;
}

static double stream(int length, int count) {
    MPI_Request all[WINDOW];
    double begun = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < WINDOW; k++)
            if (rank == 0) MPI_Isend(out, length, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &all[k]);
            else MPI_Irecv(in, length, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &all[k]);
        MPI_Waitall(WINDOW, all, MPI_STATUSES_IGNORE);
        char word = 0;
        if (rank == 1) MPI_Send(&word, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
        else MPI_Recv(&word, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return (MPI_Wtime() - begun) / count / WINDOW;
}

static int by_size(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double median(double (*what)(int, int), int length, int count) {
    double took[TURNS];
    what(length, count / 4 + 1);
    for (int i = 0; i < TURNS; i++) took[i] = what(length, count);
    qsort(took, TURNS, sizeof took[0], by_size);
    return took[TURNS / 2];
}

int main(int argc, char **argv) {
    const int lengths[] = {8, 1024, 16384, 262144, 1048576};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int longest = 1048576;
    out = malloc(longest);
    in = calloc(longest, 1);
    memset(out, 1 + rank, longest);
    rounds(longest, 1);
    if (in[0] != 2 - rank || memcmp(in, in + 1, longest - 1)) {
        fprintf(stderr, "rank %d: wrong bytes\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int length = lengths[i], count = length < 10000 ? 100 : length < 100000 ? 30 : 6;
        double half = median(rounds, length, count);
        double each = median(stream, length, count / 4 + 1);
        if (rank == 0) printf("%7d bytes %9.1f us %9.2f MB/s\n", length, half * 1e6, length / each / 1e6);
    }
    if (rank == 0) puts("measured");
    return MPI_Finalize();
}
