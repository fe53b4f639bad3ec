/* MPI_ERRORS_ARE_FATAL, the default: one message that names operation, class and cause, and
 * the whole job ends. */
// expect-exit: nonzero
// expect-stderr[tern]: MPI_Send.*MPI_ERR_RANK
#include "tern_test.h"

#include <unistd.h>

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t_size);
    int value = 0;
    if (t_rank == 0)
        MPI_Send(&value, 1, MPI_INT, t_size + 5, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sleep(600);
    return 0;
}
