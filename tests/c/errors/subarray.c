/* Subarrays that do not fit into their array, and distributions that do not exist. */
// np: 1
// not-on: mpich (does not check the start)
#include "tern_test.h"

static int make(int size, int part, int start, int order) {
    MPI_Datatype type;
    return MPI_Type_create_subarray(1, &size, &part, &start, order, MPI_INT, &type);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Datatype type;
    FAILS(make(4, 3, 2, MPI_ORDER_C), MPI_ERR_ARG);
    FAILS(make(4, 5, 0, MPI_ORDER_C), MPI_ERR_ARG);
    FAILS(make(4, 2, -1, MPI_ORDER_C), MPI_ERR_ARG);
    FAILS(make(4, 2, 1, 12345), MPI_ERR_ARG);
    FAILS(MPI_Type_create_darray(2, 2, 1, (int[]){8}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG},
                                 (int[]){2}, MPI_ORDER_C, MPI_INT, &type),
          MPI_ERR_ARG);
    FAILS(MPI_Type_create_darray(2, 0, 1, (int[]){8}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){3}, (int[]){2}, MPI_ORDER_C,
                                 MPI_INT, &type),
          MPI_ERR_ARG);
    return t_end();
}
