/* Without MPI_Init there is no MPI_COMM_WORLD, and the message says so. */
// np: 1
// expect-exit: nonzero
// expect-stderr: MPI_Comm_size\(comm=MPI_COMM_WORLD\): MPI_ERR_COMM: MPI_COMM_WORLD is there from MPI_Init to MPI_Finalize only
// not-on: mpich (another text)
// not-on: ompi (another text)
#include "../tern_test.h"

int main(void) {
    MPI_Session session;
    int size;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return 0;
}
