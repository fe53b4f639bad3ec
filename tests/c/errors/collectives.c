/* Wrong arguments of collective operations, found by every rank before anything is sent. */
// np: 1,2,3
// not-on: mpich (takes MPI_DATATYPE_NULL if the count is 0)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int in[64] = {0}, out[64] = {0};
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;
    FAILS(MPI_Bcast(in, 1, MPI_INT, t_size, comm), MPI_ERR_ROOT);
    FAILS(MPI_Bcast(in, 1, MPI_INT, -1, comm), MPI_ERR_ROOT);
    FAILS(MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, t_size, comm), MPI_ERR_ROOT);
    FAILS(MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, t_size, comm), MPI_ERR_ROOT);
    FAILS(MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, t_size, comm), MPI_ERR_ROOT);
    FAILS(MPI_Ibcast(in, 1, MPI_INT, t_size, comm, &request), MPI_ERR_ROOT);
    FAILS(MPI_Bcast(in, -1, MPI_INT, 0, comm), MPI_ERR_COUNT);
    FAILS(MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE);
    FAILS(MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, comm), MPI_ERR_TYPE);
    FAILS(MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP);
    FAILS(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, comm), MPI_ERR_OP);
    FAILS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Ibarrier(MPI_COMM_NULL, &request), MPI_ERR_COMM);
    /* Without any data too. */
    FAILS(MPI_Bcast(in, 0, MPI_INT, t_size, comm), MPI_ERR_ROOT);
    FAILS(MPI_Igather(in, 0, MPI_INT, out, 0, MPI_INT, -1, comm, &request), MPI_ERR_ROOT);
    FAILS(MPI_Bcast(in, 0, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE);
    FAILS(MPI_Bcast(in, 0, MPI_INT, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Allreduce(in, out, 0, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP);
    FAILS(MPI_Iallreduce(in, out, 0, MPI_DOUBLE, MPI_BAND, comm, &request), MPI_ERR_OP);
    MPI_Op op = MPI_SUM;
    FAILS_EITHER(MPI_Op_free(&op), MPI_ERR_OP, MPI_ERR_ARG);
    return t_end();
}
