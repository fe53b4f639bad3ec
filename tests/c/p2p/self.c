/* A rank sends to itself, on MPI_COMM_SELF and on MPI_COMM_WORLD. */
#include "tern_test.h"

static void roundtrip(MPI_Comm comm, int self, int bytes) {
    unsigned char *out = t_alloc((size_t)bytes), *in = t_alloc((size_t)bytes);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    t_fill(out, (size_t)bytes, (uint64_t)bytes);
    /* Receive first. */
    OK(MPI_Irecv(in, bytes, MPI_BYTE, self, 3, comm, &requests[0]));
    OK(MPI_Isend(out, bytes, MPI_BYTE, self, 3, comm, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    CHECK_STATUS(statuses[0], self, 3, bytes);
    CHECK_FILL(in, bytes, (uint64_t)bytes);
    /* Send first, the receive by wildcard. */
    memset(in, 0, (size_t)bytes);
    OK(MPI_Issend(out, bytes, MPI_BYTE, self, 4, comm, &requests[1]));
    OK(MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &statuses[0]));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    CHECK_STATUS(statuses[0], self, 4, bytes);
    CHECK_FILL(in, bytes, (uint64_t)bytes);
    /* Both at once. */
    memset(in, 0, (size_t)bytes);
    OK(MPI_Sendrecv(out, bytes, MPI_BYTE, self, 5, in, bytes, MPI_BYTE, self, 5, comm, &statuses[0]));
    CHECK_STATUS(statuses[0], self, 5, bytes);
    CHECK_FILL(in, bytes, (uint64_t)bytes);
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const int sizes[] = {0, 1, 64, 5000, 65536, 2000000};
    for (int s = 0; s < 6; s++) {
        roundtrip(MPI_COMM_SELF, 0, sizes[s]);
        roundtrip(MPI_COMM_WORLD, t_rank, sizes[s]);
    }
    return t_end();
}
