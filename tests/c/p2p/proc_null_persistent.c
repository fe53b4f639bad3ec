/* A started persistent receive from MPI_PROC_NULL completes with the status of MPI_PROC_NULL. */
// np: 1,2
// not-on: mpich (returns the empty status)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int value = 42;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, &status));
        CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        CHECK_EQ(value, 42);
    }
    OK(MPI_Request_free(&request));
    return t_end();
}
