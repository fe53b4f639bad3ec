/* Wrong arguments of point-to-point operations: each with its own error class, nothing
 * sent, and MPI works on afterwards. */
// np: 1,2
#include "tern_test.h"

static int value = 5;

#define ALL(want, buffer, count, type, peer, tag, comm)                        \
    do {                                                                       \
        MPI_Request request_;                                                  \
        FAILS(MPI_Send(buffer, count, type, peer, tag, comm), want);           \
        FAILS(MPI_Ssend(buffer, count, type, peer, tag, comm), want);          \
        FAILS(MPI_Rsend(buffer, count, type, peer, tag, comm), want);          \
        FAILS(MPI_Isend(buffer, count, type, peer, tag, comm, &request_), want); \
        FAILS(MPI_Issend(buffer, count, type, peer, tag, comm, &request_), want); \
        FAILS(MPI_Send_init(buffer, count, type, peer, tag, comm, &request_), want); \
        FAILS(MPI_Recv(buffer, count, type, peer, tag, comm, MPI_STATUS_IGNORE), want); \
        FAILS(MPI_Irecv(buffer, count, type, peer, tag, comm, &request_), want); \
        FAILS(MPI_Recv_init(buffer, count, type, peer, tag, comm, &request_), want); \
    } while (0)

static void requests(void) {
    MPI_Request null = MPI_REQUEST_NULL, request;
    OK(MPI_Irecv(&value, 1, MPI_INT, t_rank, 7, MPI_COMM_WORLD, &request));
    FAILS(MPI_Start(&request), MPI_ERR_REQUEST);
    FAILS(MPI_Start(&null), MPI_ERR_REQUEST);
    FAILS(MPI_Cancel(&null), MPI_ERR_REQUEST);
    FAILS(MPI_Request_free(&null), MPI_ERR_REQUEST);
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
}

static void probes(void) {
    int flag;
    MPI_Message message = MPI_MESSAGE_NULL;
    FAILS(MPI_Probe(t_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_RANK);
    FAILS(MPI_Iprobe(0, -5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), MPI_ERR_TAG);
    FAILS(MPI_Iprobe(0, 0, MPI_COMM_NULL, &flag, MPI_STATUS_IGNORE), MPI_ERR_COMM);
    FAILS_EITHER(MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, MPI_ERR_ARG);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Datatype raw;
    int *upper, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
    OK(MPI_Type_contiguous(2, MPI_INT, &raw));
    ALL(MPI_ERR_COUNT, &value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    ALL(MPI_ERR_RANK, &value, 1, MPI_INT, t_size, 0, MPI_COMM_WORLD);
    ALL(MPI_ERR_RANK, &value, 1, MPI_INT, -77, 0, MPI_COMM_WORLD);
    ALL(MPI_ERR_TAG, &value, 1, MPI_INT, 0, -77, MPI_COMM_WORLD);
    if (*upper < INT32_MAX)
        FAILS(MPI_Send(&value, 1, MPI_INT, 0, *upper + 1, MPI_COMM_WORLD), MPI_ERR_TAG);
    ALL(MPI_ERR_TYPE, &value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD);
    ALL(MPI_ERR_TYPE, &value, 1, raw, 0, 0, MPI_COMM_WORLD);
    ALL(MPI_ERR_COMM, &value, 1, MPI_INT, 0, 0, MPI_COMM_NULL);
    /* Wildcards are for receives. */
    FAILS(MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    FAILS(MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG);
    /* A receive that cannot start keeps the send back, too. */
    int next = (t_rank + 1) % t_size;
    FAILS(MPI_Sendrecv(&value, 1, MPI_INT, next, 0, &value, 1, MPI_INT, t_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          MPI_ERR_RANK);
    FAILS(MPI_Sendrecv(&value, 1, MPI_INT, next, 0, &value, 1, raw, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          MPI_ERR_TYPE);
    FAILS(MPI_Sendrecv(&value, 1, MPI_INT, next, 0, NULL, 1, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          MPI_ERR_BUFFER);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    FAILS(MPI_Sendrecv(&value, 1, MPI_INT, t_size, 0, &value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          MPI_ERR_RANK);
    requests();
    probes();
    OK(MPI_Type_free(&raw));
    int got = -1;
    OK(MPI_Sendrecv(&t_rank, 1, MPI_INT, t_rank, 0, &got, 1, MPI_INT, t_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(got, t_rank);
    return t_end();
}
