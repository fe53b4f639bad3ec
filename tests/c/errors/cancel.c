/* What must not be cancelled is refused, whether it is under way or done: nobody has to be lucky to be told. */
// not-on: mpich (does not check these)
// not-on: ompi (does not check these)
#include "tern_test.h"

static void refused(MPI_Request *request) {
    SAYS(MPI_Cancel(request), MPI_ERR_REQUEST, "`request`", "collective");
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

static void persistent(MPI_Request *request) {
    /* As any persistent request that is not under way. */
    SAYS(MPI_Cancel(request), MPI_ERR_REQUEST, "inactive");
    for (int round = 0; round < 2; round++) {
        OK(MPI_Start(request));
        refused(request);
    }
    OK(MPI_Request_free(request));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Request request;
    int value = t_rank, sum = 0, none = 0;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    refused(&request);
    OK(MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    refused(&request);
    CHECK_EQ(sum, t_size * (t_size - 1) / 2);
    /* Done when they begin: alone, with nothing to move, and waited for by others before. */
    for (int round = 0; round < 2; round++) {
        OK(MPI_Ibarrier(MPI_COMM_SELF, &request));
        refused(&request);
        OK(MPI_Ibcast(&none, 0, MPI_INT, 0, MPI_COMM_WORLD, &request));
        refused(&request);
    }
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    for (int done = 0; !done;)
        OK(MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE));
    refused(&request);
    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    persistent(&request);
    OK(MPI_Bcast_init(&none, 0, MPI_INT, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request));
    persistent(&request);
    /* A send that is done is another matter. */
    OK(MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return t_end();
}
