/* Messages of all protocols, with every byte checked: whatever the host permits, they arrive.
 *
 * usage: bytes [FILE]
 * With FILE they go round until it is there; rank 0 says so of each round. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 5000001 };
static int rank, size;

static unsigned char byte(int from, size_t length, size_t at) {
    return (unsigned char)(at * 131 + at / 251 + (size_t)from * 17 + length);
}

static void check(const unsigned char *buffer, int from, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (buffer[i] != byte(from, length, i)) {
            fprintf(stderr, "bytes: rank %d: byte %zu of %zu from rank %d is wrong\n", rank, i, length, from);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
}

static void go_round(unsigned char *out, unsigned char *in) {
    static const size_t lengths[] = {0, 1, 40, 41, 4096, 16384, 16385, 100000, 1 << 20, LONGEST};
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t length = lengths[i];
        for (size_t at = 0; at < length; at++)
            out[at] = byte(rank, length, at);
        for (int late = 0; late < 2; late++) {
            MPI_Request request;
            memset(in, 0, length);
            if (late) { /* the message is there first */
                MPI_Isend(out, (int)length, MPI_BYTE, next, 1, MPI_COMM_WORLD, &request);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Recv(in, (int)length, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else { /* the receive is there first */
                MPI_Irecv(in, (int)length, MPI_BYTE, before, 1, MPI_COMM_WORLD, &request);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Send(out, (int)length, MPI_BYTE, next, 1, MPI_COMM_WORLD);
            }
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(in, before, length);
        }
    }
}

int main(int argc, char **argv) {
    unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    go_round(out, in);
    for (int ends = 0; argc > 1 && !ends;) {
        go_round(out, in);
        if (rank == 0) {
            ends = access(argv[1], F_OK) == 0;
            puts("a round");
            fflush(stdout);
        }
        MPI_Bcast(&ends, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    if (rank == 0)
        puts("all bytes arrived");
    return 0;
}
