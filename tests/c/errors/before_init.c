/* A call before MPI_Init ends the program with a message that names it. */
// np: 1,2
// expect-exit: nonzero
// expect-stderr: MPI_Barrier|MPI_INIT|MPI_Init
// expect-stderr[tern]: MPI_Barrier.*MPI_Init
#include <mpi.h>

int main(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
