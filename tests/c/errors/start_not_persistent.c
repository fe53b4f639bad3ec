/* MPI_Start on requests that are not persistent is an error that returns, whether the operation is
 * under way or has ended already. */
#include "tern_test.h"

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int out = 5, in = 0;
    MPI_Request requests[2];
    OK(MPI_Irecv(&in, 1, MPI_INT, t_rank, 7, MPI_COMM_WORLD, &requests[0]));
    FAILS(MPI_Start(&requests[0]), MPI_ERR_REQUEST);
    OK(MPI_Isend(&out, 1, MPI_INT, t_rank, 7, MPI_COMM_WORLD, &requests[1]));
    FAILS(MPI_Start(&requests[1]), MPI_ERR_REQUEST);
    FAILS(MPI_Startall(1, &requests[1]), MPI_ERR_REQUEST);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(in, 5);
    return t_end();
}
