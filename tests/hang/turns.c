/* Who speaks with whom changes: each rank of one host with each of the other in turn, for some hundred messages, with a pause
 * before the next. With fewer connections than peers they come and go. All contents are checked. */
#include <mpi.h>

#include <stdio.h>
#include <unistd.h>

enum { TURNS = 6, MESSAGES = 600, WORDS = 12 };

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int half = size / 2, is_first = rank < half;
    for (int turn = 0; turn < TURNS; turn++) {
        int peer = is_first ? half + (rank + turn) % half : ((rank - half - turn) % half + half) % half;
        for (int i = 0; i < MESSAGES; i++) {
            int out[WORDS], in[WORDS];
            for (int at = 0; at < WORDS; at++)
                out[at] = rank * 1000000 + turn * 100000 + i * 100 + at, in[at] = -1;
            MPI_Sendrecv(out, WORDS, MPI_INT, peer, turn, in, WORDS, MPI_INT, peer, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int at = 0; at < WORDS; at++)
                if (in[at] != out[at] + (peer - rank) * 1000000) {
                    fprintf(stderr, "turns: rank %d: word %d of message %d of turn %d is %d\n", rank, at, i, turn, in[at]);
                    MPI_Abort(MPI_COMM_WORLD, 9);
                }
        }
        usleep(800000);
    }
    MPI_Finalize();
    if (rank == 0)
        puts("all bytes arrived");
    return 0;
}
