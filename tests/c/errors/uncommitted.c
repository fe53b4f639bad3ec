/* A type that was not committed, in collectives; and other handles that may not be used so: the text names the argument. */
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
    SAYS(MPI_Bcast(in, 1, raw, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "argument `datatype` is", "not committed");
    SAYS(MPI_Bcast_c(in, 1, raw, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "argument `datatype` is", "not committed");
    SAYS(MPI_Allgather(in, 1, raw, out, 2, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TYPE, "argument `sendtype` or `recvtype` is");
    SAYS(MPI_Reduce_local(in, out, 1, raw, MPI_SUM), MPI_ERR_TYPE, "argument `datatype` is");
    MPI_Op op = MPI_SUM;
    SAYS(MPI_Op_free(&op), MPI_ERR_OP, "argument `op` is a predefined");
    SAYS(MPI_Info_set(MPI_INFO_ENV, "a", "b"), MPI_ERR_INFO, "argument `info` is MPI_INFO_ENV");
    OK(MPI_Type_free(&raw));
    return t_end();
}
