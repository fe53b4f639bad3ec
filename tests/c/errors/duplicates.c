/* A rank that stands twice in a list of ranks or ranges. */
// np: 1,2
// not-on: mpich (does not look for duplicates)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Group world, made;
    int twice[2] = {0, 0}, ranges[2][3] = {{0, t_size - 1, 1}, {0, 0, 1}};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    FAILS(MPI_Group_incl(world, 2, twice, &made), MPI_ERR_RANK);
    FAILS(MPI_Group_excl(world, 2, twice, &made), MPI_ERR_RANK);
    FAILS_EITHER(MPI_Group_range_incl(world, 2, ranges, &made), MPI_ERR_RANK, MPI_ERR_ARG);
    OK(MPI_Group_free(&world));
    return t_end();
}
