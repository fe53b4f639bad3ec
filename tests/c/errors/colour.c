/* Colours of MPI_Comm_split are not negative. */
// np: 1,2
// not-on: mpich (takes them)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm made;
    FAILS(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &made), MPI_ERR_ARG);
    return t_end();
}
