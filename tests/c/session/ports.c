/* Processes of other jobs are met after those of the own one: a port is opened in a session, before anything else. */
// connections: processes of other jobs are reached over TCP alone
// not-on: mpich (another way of MPI_Open_port with sessions alone)
// not-on: ompi (no ports without its server)
#include "made_of.h"

int main(void) {
    MPI_Session session;
    char name[MPI_MAX_PORT_NAME];
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Open_port(MPI_INFO_NULL, name));
    OK(MPI_Close_port(name));
    MPI_Comm all = made_of(session, "mpi://WORLD", "all");
    OK(MPI_Comm_rank(all, &t_rank));
    OK(MPI_Barrier(all));
    OK(MPI_Comm_free(&all));
    OK(MPI_Session_finalize(&session));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
