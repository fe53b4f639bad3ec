/* The status of MPI_Isendrecv and MPI_Isendrecv_replace is that of the receive. */
// not-on: mpich (leaves the status empty)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int to = (t_rank + 1) % t_size, from = (t_rank + t_size - 1) % t_size;
    int out[6] = {0}, in[9];
    MPI_Request request;
    MPI_Status status;
    for (int count = 0; count <= 6; count++) {
        OK(MPI_Isendrecv(out, count, MPI_INT, to, count, in, 9, MPI_INT, from, count, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, &status));
        CHECK_STATUS(status, from, count, 4 * count);
        OK(MPI_Isendrecv_replace(out, count, MPI_INT, to, 9, from, 9, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, &status));
        CHECK_STATUS(status, from, 9, 4 * count);
    }
    return t_end();
}
