/* What this library says of intercommunicators that others do not look at: MPI_IN_PLACE, roots by MPI_ROOT where
 * there is one group, groups with a member in common, of which all members of both are told. */
// not-on: mpich (does not check these)
// not-on: ompi (does not check these)
#include "../inter.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int data[8] = {0}, more[64];
    MPI_Comm inter;
    sides s;
    FAILS(MPI_Bcast(data, 1, MPI_INT, MPI_ROOT, MPI_COMM_WORLD), MPI_ERR_ROOT);
    FAILS(MPI_Bcast(data, 1, MPI_INT, MPI_PROC_NULL, MPI_COMM_WORLD), MPI_ERR_ROOT);
    /* The other leader is a member of this group; both are told, and with one process it is the same. */
    MPI_Comm mine;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &mine));
    FAILS(MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 0, 3, &inter), MPI_ERR_COMM);
    CHECK(inter == MPI_COMM_NULL);
    OK(MPI_Comm_free(&mine));
    /* A leader that cannot meet the other one says so to its group, which does not wait for it. */
    FAILS(MPI_Intercomm_create(MPI_COMM_WORLD, t_size - 1, MPI_COMM_WORLD, t_size, 3, &inter), MPI_ERR_RANK);
    FAILS(MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_NULL, 0, 3, &inter), MPI_ERR_COMM);
    FAILS(MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_WORLD, MPI_PROC_NULL, 3, &inter), MPI_ERR_RANK);
    if (sides_make(1, &s)) {
        OK(MPI_Comm_set_errhandler(s.inter, MPI_ERRORS_RETURN));
        FAILS(MPI_Allreduce(MPI_IN_PLACE, more, 1, MPI_INT, MPI_SUM, s.inter), MPI_ERR_BUFFER);
        FAILS(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, more, 1, MPI_INT, s.inter), MPI_ERR_BUFFER);
        FAILS(MPI_Scatter(data, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, s.inter), MPI_ERR_BUFFER);
        FAILS(MPI_Allreduce(data, data, 1, MPI_INT, MPI_SUM, s.inter), MPI_ERR_BUFFER);
        /* Groups that give different lengths. */
        int n = s.low ? 2 : 1, code = MPI_Allgather(data, n, MPI_INT, more, 1, MPI_INT, s.inter);
        if (!s.low)
            FAILS(code, MPI_ERR_TRUNCATE);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        sides_free(&s);
    }
    return t_end();
}
