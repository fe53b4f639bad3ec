/* No elements of MPI_DATATYPE_NULL are a message of nothing, from and to MPI_PROC_NULL and among
 * ranks: programs written for MPICH pass it. Elements of it are an error everywhere. */
// not-on: ompi (refuses the type whatever the count is)
#include "tern_test.h"

static int value = 42;
static MPI_Status status;

typedef int sending(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int starting(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
static sending *const sends[] = {MPI_Send, MPI_Ssend, MPI_Rsend, MPI_Bsend};
static starting *const immediate[] = {MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend};
static starting *const prepared[] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init};

/* Waits for `request`; with `again` also for a second start, and frees it. */
static void complete(MPI_Request *request, int again) {
    for (int round = 0; round < (again ? 2 : 1); round++) {
        if (again)
            OK(MPI_Start(request));
        OK(MPI_Wait(request, &status));
    }
    if (again)
        OK(MPI_Request_free(request));
}

static void with_nobody(MPI_Datatype type) {
    int none = MPI_PROC_NULL;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request;
    for (int i = 0; i < 4; i++) {
        OK(sends[i](&value, 0, type, none, 0, world));
        OK(immediate[i](&value, 0, type, none, 0, world, &request));
        complete(&request, 0);
        OK(prepared[i](&value, 0, type, none, 0, world, &request));
        complete(&request, 1);
    }
    OK(MPI_Recv(&value, 0, type, none, 0, world, &status));
    CHECK_STATUS(status, none, MPI_ANY_TAG, 0);
    OK(MPI_Irecv(&value, 0, type, none, 0, world, &request));
    complete(&request, 0);
    CHECK_STATUS(status, none, MPI_ANY_TAG, 0);
    OK(MPI_Recv_init(&value, 0, type, none, 0, world, &request));
    complete(&request, 1);
    OK(MPI_Sendrecv(&value, 0, type, none, 0, &value, 0, type, none, 0, world, &status));
    CHECK_STATUS(status, none, MPI_ANY_TAG, 0);
    OK(MPI_Sendrecv_replace(&value, 0, type, none, 0, none, 0, world, &status));
    OK(MPI_Isendrecv(&value, 0, type, none, 0, &value, 0, type, none, 0, world, &request));
    complete(&request, 0);
    OK(MPI_Isendrecv_replace(&value, 0, type, none, 0, none, 0, world, &request));
    complete(&request, 0);
    MPI_Message message;
    OK(MPI_Mprobe(none, 0, world, &message, &status));
    OK(MPI_Mrecv(&value, 0, type, &message, &status));
    CHECK_STATUS(status, none, MPI_ANY_TAG, 0);
}

/* One end of an exchange moves data when only the other has nobody. */
static void with_a_neighbour(MPI_Datatype type) {
    int next = (t_rank + 1) % t_size, before = (t_rank + t_size - 1) % t_size, none = MPI_PROC_NULL, got = -1;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request;
    OK(MPI_Irecv(&got, 1, MPI_INT, before, 1, world, &request));
    OK(MPI_Sendrecv(&t_rank, 1, MPI_INT, next, 1, &value, 0, type, none, 1, world, &status));
    complete(&request, 0);
    CHECK_EQ(got, before);
    got = -1;
    OK(MPI_Isend(&t_rank, 1, MPI_INT, next, 1, world, &request));
    OK(MPI_Sendrecv(&value, 0, type, none, 1, &got, 1, MPI_INT, before, 1, world, &status));
    complete(&request, 0);
    CHECK_EQ(got, before);
    OK(MPI_Sendrecv(&value, 0, type, next, 2, &value, 0, type, before, 2, world, &status));
    CHECK_STATUS(status, before, 2, 0);
}

static void elements(int peer) {
    MPI_Datatype none = MPI_DATATYPE_NULL;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request;
    for (int i = 0; i < 4; i++) {
        FAILS(sends[i](&value, 1, none, peer, 0, world), MPI_ERR_TYPE);
        FAILS(immediate[i](&value, 1, none, peer, 0, world, &request), MPI_ERR_TYPE);
        FAILS(prepared[i](&value, 1, none, peer, 0, world, &request), MPI_ERR_TYPE);
    }
    FAILS(MPI_Recv(&value, 1, none, peer, 0, world, &status), MPI_ERR_TYPE);
    FAILS(MPI_Irecv(&value, 1, none, peer, 0, world, &request), MPI_ERR_TYPE);
    FAILS(MPI_Recv_init(&value, 1, none, peer, 0, world, &request), MPI_ERR_TYPE);
    FAILS(MPI_Sendrecv(&value, 1, none, peer, 0, &value, 0, MPI_INT, peer, 0, world, &status), MPI_ERR_TYPE);
    FAILS(MPI_Sendrecv(&value, 0, MPI_INT, peer, 0, &value, 1, none, peer, 0, world, &status), MPI_ERR_TYPE);
    FAILS(MPI_Sendrecv_replace(&value, 1, none, peer, 0, peer, 0, world, &status), MPI_ERR_TYPE);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    with_nobody(MPI_DATATYPE_NULL);
    with_a_neighbour(MPI_DATATYPE_NULL);
    elements(MPI_PROC_NULL);
    elements(t_rank);
    CHECK_EQ(value, 42);
    return t_end();
}
