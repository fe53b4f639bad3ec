/* MPI_IN_PLACE where it is not allowed. */
// np: 1,2,3
// not-on: mpich (does not find all of them)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int data[64] = {0}, other = (t_rank + 1) % t_size;
    FAILS(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Allreduce(data, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Allgather(data, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Alltoall(data, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Scan(data, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    if (t_size > 1) /* only the root may: a rank that is not finds its own mistake alone */
        FAILS(MPI_Reduce(MPI_IN_PLACE, data, 1, MPI_INT, MPI_SUM, other, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    return t_end();
}
