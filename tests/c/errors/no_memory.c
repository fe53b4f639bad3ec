/* Counts for which the library would need more memory than there is: MPI_ERR_NO_MEM, and the program
 * goes on. The datatypes have no extent, so that the buffers themselves are small. */
// np: 1,2
// not-on: mpich (crashes)
// not-on: ompi (crashes)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Datatype pair, dense;
    MPI_Request request;
    MPI_Count count = (MPI_Count)1 << 58;
    int data[8] = {0}, in = 0, out = 7;
    /* Two integers with a gap, and no distance from one element to the next. */
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &dense));
    OK(MPI_Type_create_resized(dense, 0, 0, &pair));
    OK(MPI_Type_commit(&pair));
    FAILS(MPI_Send_c(data, count, pair, t_rank, 0, MPI_COMM_WORLD), MPI_ERR_NO_MEM);
    FAILS(MPI_Isend_c(data, count, pair, t_rank, 0, MPI_COMM_WORLD, &request), MPI_ERR_NO_MEM);
    FAILS(MPI_Recv_c(data, count, pair, t_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
    FAILS(MPI_Irecv_c(data, count, pair, t_rank, 0, MPI_COMM_WORLD, &request), MPI_ERR_NO_MEM);
    FAILS(MPI_Sendrecv_c(data, count, pair, t_rank, 0, &in, 1, MPI_INT, t_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          MPI_ERR_NO_MEM);
    FAILS(MPI_Sendrecv_replace_c(data, count, pair, t_rank, 0, t_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          MPI_ERR_NO_MEM);
    FAILS(MPI_Bcast_c(data, count, pair, 0, MPI_COMM_SELF), MPI_SUCCESS);
    FAILS(MPI_Allreduce_c(MPI_IN_PLACE, data, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
          t_size > 1 ? MPI_ERR_NO_MEM : MPI_SUCCESS);
    FAILS(MPI_Iallreduce_c(MPI_IN_PLACE, data, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request),
          t_size > 1 ? MPI_ERR_NO_MEM : MPI_SUCCESS);
    if (t_size == 1)
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* A matched message is still there after the receive that had no memory. */
    MPI_Message message;
    OK(MPI_Isend(&out, 1, MPI_INT, t_rank, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Mprobe(t_rank, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    FAILS(MPI_Mrecv_c(data, count, pair, &message, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
    OK(MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    CHECK_EQ(in, 7);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* The receive of MPI_Sendrecv was withdrawn: it takes no later message. */
    out = 9;
    OK(MPI_Send(&out, 1, MPI_INT, t_rank, 0, MPI_COMM_WORLD));
    int other = 0;
    OK(MPI_Recv(&other, 1, MPI_INT, t_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(other == 9 && in == 7);
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&dense));
    return t_end();
}
