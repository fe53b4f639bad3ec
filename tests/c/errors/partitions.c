/* Wrong arguments of partitioned communication. */
// not-on: mpich (does not check most of this)
// not-on: ompi (does not check most of this)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int out[4] = {0}, in[4], flag, list[2] = {0, 4}, me = t_rank;
    MPI_Request send, receive, plain, request;
    SAYS(MPI_Precv_init(in, 2, 2, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         MPI_ERR_RANK, "`source`");
    SAYS(MPI_Precv_init(in, 2, 2, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         MPI_ERR_TAG, "`tag`");
    SAYS(MPI_Precv_init(in, 2, 2, MPI_INT, t_size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         MPI_ERR_RANK, "`source`");
    SAYS(MPI_Psend_init(out, 2, 2, MPI_INT, t_size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         MPI_ERR_RANK, "`dest`");
    SAYS(MPI_Psend_init(out, -1, 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         MPI_ERR_ARG, "`partitions`");
    SAYS(MPI_Psend_init(out, 0, 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         MPI_ERR_ARG, "`partitions`");
    SAYS(MPI_Precv_init(in, 0, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         MPI_ERR_ARG, "`partitions`");
    SAYS(MPI_Psend_init(out, 2, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         MPI_ERR_COUNT, "`count`");
    FAILS(MPI_Psend_init(out, 1 << 30, (MPI_Count)1 << 40, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
          MPI_ERR_COUNT);
    SAYS(MPI_Psend_init(NULL, 2, 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_BUFFER, "`buf`");
    SAYS(MPI_Psend_init(out, 2, 2, MPI_INT, 0, -1, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_TAG, "`tag`");

    OK(MPI_Psend_init(out, 4, 1, MPI_INT, me, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 2, 2, MPI_INT, me, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Send_init(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &plain));
    FAILS(MPI_Pready(0, send), MPI_ERR_REQUEST);
    OK(MPI_Start(&receive));
    OK(MPI_Start(&send));
    SAYS(MPI_Start(&send), MPI_ERR_REQUEST, "`request`");
    SAYS(MPI_Pready(4, send), MPI_ERR_ARG, "`partition`");
    SAYS(MPI_Pready(-1, send), MPI_ERR_ARG, "`partition`");
    SAYS(MPI_Pready(0, receive), MPI_ERR_REQUEST, "`request`");
    SAYS(MPI_Pready(0, plain), MPI_ERR_REQUEST, "`request`");
    SAYS(MPI_Pready_range(0, 4, send), MPI_ERR_ARG, "`partition_high`");
    SAYS(MPI_Pready_range(2, 1, send), MPI_ERR_ARG, "`partition_low`");
    SAYS(MPI_Parrived(receive, 2, &flag), MPI_ERR_ARG, "`partition`");
    SAYS(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST, "`request`");
    SAYS(MPI_Parrived(plain, 0, &flag), MPI_ERR_REQUEST, "`request`");
    SAYS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST, "`request`");
    SAYS(MPI_Request_free(&send), MPI_ERR_REQUEST, "`request`");
    SAYS(MPI_Cancel(&receive), MPI_ERR_REQUEST, "`request`");
    SAYS(MPI_Pready_list(2, list, send), MPI_ERR_ARG, "`array_of_partitions`");
    FAILS(MPI_Pready(0, send), MPI_ERR_ARG);
    OK(MPI_Parrived(receive, 1, &flag));
    CHECK(!flag);
    OK(MPI_Pready_range(1, 3, send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    OK(MPI_Parrived(receive, 1, &flag));
    CHECK(flag);
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    OK(MPI_Request_free(&plain));

    /* Sides that do not fit. */
    OK(MPI_Psend_init(out, 4, 1, MPI_INT, me, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 3, 1, MPI_INT, me, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Start(&receive));
    FAILS(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    return t_end();
}
