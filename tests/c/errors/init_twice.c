/* A second MPI_Init is an error, and so is one after MPI_Finalize. */
// np: 1,2
// expect-exit: nonzero
// expect-stderr[tern]: MPI_Init
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
