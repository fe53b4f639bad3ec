/* A type that was not committed, in collectives. */
// np: 1,2
// not-on: mpich (crashes)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int in[64] = {0}, out[64] = {0};
    MPI_Datatype raw;
    OK(MPI_Type_contiguous(2, MPI_INT, &raw));
    FAILS(MPI_Bcast(in, 1, raw, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    FAILS(MPI_Allgather(in, 1, raw, out, 2, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TYPE);
    FAILS(MPI_Gather(in, 1, raw, out, 1, raw, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    OK(MPI_Type_free(&raw));
    return t_end();
}
