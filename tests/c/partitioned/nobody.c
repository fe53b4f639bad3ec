/* Partitioned messages to and from MPI_PROC_NULL: complete at once, and what is asked for has arrived. */
// not-on: mpich (crashes in MPI_Psend_init)
#include "tern_test.h"

static void nobody(void) {
    int data[4], flag = 0;
    MPI_Request requests[2];
    OK(MPI_Psend_init(data, 2, 2, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(data, 2, 2, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 2; round++) {
        OK(MPI_Startall(2, requests));
        OK(MPI_Pready_range(0, 1, requests[0]));
        OK(MPI_Parrived(requests[1], 1, &flag));
        CHECK(flag);
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    nobody();
    return t_end();
}
