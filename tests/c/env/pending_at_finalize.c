/* Small messages sent before MPI_Finalize are received by those who finalise later. */
// np: 2+
#include "tern_test.h"

#include <unistd.h>

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    if (t_rank) {
        for (int i = 0; i < 20; i++)
            OK(MPI_Send(&i, 1, MPI_INT, 0, t_rank, MPI_COMM_WORLD));
    } else {
        usleep(50000);
        for (int r = 1; r < t_size; r++)
            for (int i = 0; i < 20; i++) {
                int value = -1;
                OK(MPI_Recv(&value, 1, MPI_INT, r, r, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                CHECK_EQ(value, i);
            }
    }
    OK(MPI_Finalize());
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
