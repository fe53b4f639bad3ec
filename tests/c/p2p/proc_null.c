/* MPI_PROC_NULL in every operation: completes at once, touches nothing, empty status. */
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int value = 42, none = MPI_PROC_NULL;
    MPI_Status status;
    MPI_Request request;
    OK(MPI_Send(&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD));
    OK(MPI_Ssend(&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD));
    OK(MPI_Rsend(&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD));
    OK(MPI_Bsend(&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, none, MPI_ANY_TAG, 0);
    CHECK_EQ(value, 42);

    typedef int starting(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    starting *const sends[] = {MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend};
    starting *const prepared[] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init};
    for (int i = 0; i < 4; i++) {
        OK(sends[i](&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(prepared[i](&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD, &request));
        for (int round = 0; round < 3; round++) {
            OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        OK(MPI_Request_free(&request));
    }
    OK(MPI_Irecv(&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_STATUS(status, none, MPI_ANY_TAG, 0);
    OK(MPI_Recv_init(&value, 1, MPI_INT, none, 0, MPI_COMM_WORLD, &request));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
    CHECK_EQ(value, 42);
    return t_end();
}
