/* A process that cannot get to the others is told so by what needs them, each time, and at its end; what it does alone goes on. */
// np: 2+
// env: TERN_SHM_DIR=/no/such/directory
// expect-stderr: at the end of the process: .*/no/such/directory
// not-on: mpich (a setting of Tern)
// not-on: ompi (a setting of Tern)
// one-host: between hosts of one rank each nobody shares memory
#include "made_of.h"

static void works(MPI_Comm self) {
    int got = 0;
    OK(MPI_Sendrecv(&t_rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, self, MPI_STATUS_IGNORE));
    CHECK_EQ(got, t_rank);
}

int main(void) {
    MPI_Session session;
    MPI_Group world;
    MPI_Comm self, all;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_rank(world, &t_rank));
    self = made_of(session, "mpi://SELF", "self");
    OK(MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN));
    for (int i = 0; i < 3; i++) {
        SAYS(MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all), MPI_ERR_OTHER,
             "/no/such/directory");
        CHECK(all == MPI_COMM_NULL);
        works(self);
    }
    OK(MPI_Comm_free(&self));
    OK(MPI_Group_free(&world));
    OK(MPI_Session_finalize(&session));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
