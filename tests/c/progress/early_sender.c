/* A standard message leaves before its receive is known, while the receiver computes and nobody makes progress for it: as long a
 * message as fits a block of shared memory, and between hosts what the socket takes. Whether buffers were offered before, and
 * whether longer messages have gone by rendezvous meanwhile, makes no difference.
 * np: 2
 * env: TERN_PROGRESS=inside
 * connections: datagrams of this length wait for their receiver
 * not-on: mpich (waits for the receiver)
 * not-on: ompi (waits for the receiver)
 */
#include "away.h"

enum { LONGER = 3 << 20, ROUNDS = 24 };

static char *buffer;

static void fill(int len, int round) {
    for (int i = 0; i < len; i += 997)
        buffer[i] = (char)(round + i / 997);
}

static void check(int len, int round) {
    for (int i = 0; i < len; i += 997)
        CHECK_EQ(buffer[i], (char)(round + i / 997));
}

/* Both are inside MPI, and it comes by rendezvous. */
static void longer(int round) {
    if (t_rank == 0) {
        fill(LONGER, round);
        OK(MPI_Send(buffer, LONGER, MPI_CHAR, 1, 4, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(buffer, LONGER, MPI_CHAR, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check(LONGER, round);
    }
}

static void early(int len, int round) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 0) {
        fill(len, round);
        OK(MPI_Send(buffer, len, MPI_CHAR, 1, 4, MPI_COMM_WORLD));
        memset(buffer, 0, len); /* it is this rank's again */
        away_done();
    } else {
        if (round & 1)
            OK(MPI_Irecv(buffer, len, MPI_CHAR, 0, 4, MPI_COMM_WORLD, &request));
        away_until(1);
        if (request == MPI_REQUEST_NULL)
            OK(MPI_Irecv(buffer, len, MPI_CHAR, 0, 4, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check(len, round);
    }
    away_next(1);
}

int main(int argc, char **argv) {
    MPI_Comm host;
    int ranks;
    away_begin(argc, argv);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_size(host, &ranks));
    OK(MPI_Comm_free(&host));
    int most = ranks == t_size ? 256 << 10 : 1 << 20;
    buffer = t_alloc(LONGER);
    for (int round = 0; round < ROUNDS; round++) {
        if (round / 4 % 2 == 1)
            longer(round);
        early(most >> round % 3, round);
    }
    free(buffer);
    return t_end();
}
