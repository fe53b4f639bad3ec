/* MPI_Abort by one rank, while the others wait, ends the job with its exit code. */
// expect-exit: 3
#include "tern_test.h"

#include <unistd.h>

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int value;
    if (t_rank == t_size - 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    else
        MPI_Recv(&value, 1, MPI_INT, t_size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sleep(600); /* only a signal ends this */
    return 0;
}
