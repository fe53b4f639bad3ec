/* Negative counts in collectives. */
// np: 1,2
// not-on: mpich (crashes)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int in[64] = {0}, out[64] = {0}, counts[8] = {-1, 1, 1, 1, 1, 1, 1, 1}, offsets[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;
    FAILS(MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT);
    FAILS(MPI_Alltoall(in, -1, MPI_INT, out, 1, MPI_INT, comm), MPI_ERR_COUNT);
    FAILS(MPI_Iallreduce(in, out, -1, MPI_INT, MPI_SUM, comm, &request), MPI_ERR_COUNT);
    FAILS(MPI_Scan(in, out, -1, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT);
    FAILS(MPI_Allgatherv(in, 1, MPI_INT, out, counts, offsets, MPI_INT, comm), MPI_ERR_COUNT);
    FAILS(MPI_Alltoallv(in, counts, offsets, MPI_INT, out, counts, offsets, MPI_INT, comm), MPI_ERR_COUNT);
    FAILS(MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT);
    return t_end();
}
