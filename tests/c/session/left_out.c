/* A process that has used `mpi://SELF` alone may end while the others get to each other without it. */
// np: 2+
// one-host: ranks on one host have one parent, by which they know each other
// not-on: mpich (MPI_Session_init waits for all processes)
// not-on: ompi (MPI_Session_init waits for all processes)
#include "../tern_test.h"
#include "first.h"
#include "made_of.h"

int main(void) {
    MPI_Session session;
    MPI_Comm comm;
    MPI_Group world, rest;
    int is_first = first_is_me(), without = -1, size, one = 1, sum = 0;
    if (!is_first)
        without = first_has_told() - 1;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_rank(world, &t_rank));
    OK(MPI_Group_size(world, &size));
    if (is_first) {
        comm = made_of(session, "mpi://SELF", "own");
        OK(MPI_Barrier(comm));
    } else {
        OK(MPI_Group_excl(world, 1, &without, &rest));
        OK(MPI_Comm_create_from_group(rest, "rest", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        OK(MPI_Group_free(&rest));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK_EQ(sum, size - 1);
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    if (is_first)
        first_tells(t_rank + 1);
    else if (size == 2 || t_rank == (without == 0))
        unlink(first_file);
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
