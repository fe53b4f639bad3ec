/* What a program lives through that loses the way to a peer over adapters: errors are returned, and ranks that are not
 * concerned go on.
 *
 * usage: lasting MESSAGE-LENGTH ROUNDS [waits | fatal [RANK]]
 * Ranks 0 and 1 exchange until it fails, or so many times; then 0 and 2 exchange, and 1 and 2, which all must arrive. With
 * `waits` a message of nobody is received behind the exchanges of 0 and 1, which ends with an error only; with `fatal` errors
 * end the job, those of all ranks or of one. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, length;
static char *out, *in;

static int exchange(int peer, int round) {
    memset(out, round + rank, (size_t)length);
    MPI_Status status;
    int code = MPI_Sendrecv(out, length, MPI_BYTE, peer, 1, in, length, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &status);
    for (int i = 0; code == MPI_SUCCESS && i < length; i++)
        if (in[i] != (char)(round + peer)) {
            fprintf(stderr, "lasting: rank %d: byte %d of round %d is wrong\n", rank, i, round);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
    return code;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int size, rounds = atoi(words[2]);
    const char *how = count > 3 ? words[3] : "";
    length = atoi(words[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(how, "fatal") || (count > 4 && atoi(words[4]) != rank))
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    out = malloc((size_t)length + 1);
    in = malloc((size_t)length + 1);
    int code = MPI_SUCCESS;
    if (rank < 2)
        for (int round = 0; code == MPI_SUCCESS && round < rounds; round++)
            code = exchange(1 - rank, round);
    if (rank < 2 && code == MPI_SUCCESS && !strcmp(how, "waits"))
        code = MPI_Recv(in, length, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
        int class;
        MPI_Error_class(code, &class);
        printf("rank %d: %s\n", rank, class == MPI_ERR_PROC_ABORTED ? "aborted" : "another error");
        fflush(stdout);
        /* The error of the rank whose errors are fatal ends the job. It may find it later than this one, which is to be there and to
         * look around until then. */
        for (int flag, ms = 0; !strcmp(how, "fatal") && ms < 40000; ms++) {
            MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
            usleep(1000);
        }
    }
    if (size > 2 && rank != 1)
        for (int round = 0; round < 20; round++)
            if (exchange(2 - rank, round) != MPI_SUCCESS)
                MPI_Abort(MPI_COMM_WORLD, 8);
    if (size > 2 && rank != 0)
        for (int round = 0; round < 20; round++)
            if (exchange(3 - rank, round) != MPI_SUCCESS)
                MPI_Abort(MPI_COMM_WORLD, 8);
    printf("rank %d done\n", rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
