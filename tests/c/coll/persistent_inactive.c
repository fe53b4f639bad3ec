/* A persistent collective that was not started is inactive: tests and waits say complete. */
// np: 1,2
// not-on: mpich (MPI_Test says it is not complete)
#include "coll_forms.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int value = t_rank, flag = 0;
    MPI_Request request;
    OK(MPI_Bcast_init(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(flag);
    CHECK(request != MPI_REQUEST_NULL);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(value, 0);
    flag = 0;
    OK(MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag);
    OK(MPI_Request_free(&request));
    return t_end();
}
