/* MPI_Parrived of what is not under way is true, of MPI_REQUEST_NULL too (MPI 5.0 section 4.2.2). */
// not-on: mpich (crashes on MPI_REQUEST_NULL)
#include "tern_test.h"

enum { PARTS = 3 };

static int arrived(MPI_Request request, int partition) {
    int flag = -1;
    OK(MPI_Parrived(request, partition, &flag));
    return flag;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int out[PARTS] = {5, 6, 7}, in[PARTS] = {0}, next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    CHECK_EQ(arrived(requests[1], 0), 1);
    OK(MPI_Psend_init(out, PARTS, 1, MPI_INT, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, PARTS, 1, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PARTS; i++)
            CHECK_EQ(arrived(requests[1], i), 1);
        OK(MPI_Startall(2, requests));
        /* whoever sends waits for this rank */
        CHECK_EQ(arrived(requests[1], 0), 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Pready_range(0, PARTS - 1, requests[0]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_EQ(in[PARTS - 1], 7);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    CHECK_EQ(arrived(requests[1], PARTS), 1);
    return t_end();
}
