/* A call after MPI_Finalize ends the program with a message that names it. */
// np: 1,2
// expect-exit: nonzero
// expect-stderr: (MPI_Barrier|FINALIZE|Finalize)
// expect-stderr[tern]: MPI_Barrier.*MPI_Finalize
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
