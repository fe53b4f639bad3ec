/* The text of a returned error goes with its code: of a call, in a status, and to an error handler. The class of a code stays
 * when so many errors have come later that its text has been forgotten. */
#include "tern_test.h"

static int told;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    told = *code;
}

static void in_a_status(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int out[4] = {0}, in[2], other;
    OK(MPI_Irecv(in, 1, MPI_INT, t_rank, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(&other, 1, MPI_INT, t_rank, 2, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Send(out, 4, MPI_INT, t_rank, 1, MPI_COMM_WORLD));
    OK(MPI_Send(out, 1, MPI_INT, t_rank, 2, MPI_COMM_WORLD));
    /* MPI 5.0 section 3.7.5: the code itself. */
    CHECK_EQ(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    SAYS(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE, "16 bytes", "4");
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS || statuses[1].MPI_ERROR == MPI_ERR_PENDING);
    if (statuses[1].MPI_ERROR == MPI_ERR_PENDING)
        OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
}

static void of_a_call(void) {
    int word = 0, code = MPI_Send(&word, 1, MPI_INT, t_size + 3, 0, MPI_COMM_WORLD), class;
    char rank[16];
    snprintf(rank, sizeof rank, "%d", t_size + 3);
    SAYS(code, MPI_ERR_RANK, "`dest`", rank);
    for (int other = 4; other < 104; other++)
        SAYS(MPI_Send(&word, 1, MPI_INT, t_size + other, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "`dest`");
    OK(MPI_Error_class(code, &class));
    CHECK_EQ(class, MPI_ERR_RANK);
}

static void to_a_handler(void) {
    MPI_Errhandler mine;
    int word = 0;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine));
    /* MPICH returns success behind a handler. */
    (void)MPI_Send(&word, -5, MPI_INT, 0, 0, MPI_COMM_WORLD);
    SAYS(told, MPI_ERR_COUNT, "`count`", "-5");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&mine));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    in_a_status();
    of_a_call();
    to_a_handler();
    return t_end();
}
