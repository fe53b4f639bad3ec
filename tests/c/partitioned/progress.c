/* A partitioned receive gets on while its rank waits for something else, also in rounds in which the sender tells anew
 * how its messages are cut. */
// np: 2
#include "tern_test.h"

enum { COUNT = 1 << 20, ROUNDS = 9 };

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    char *data = t_alloc(COUNT), word = 0;
    MPI_Request request;
    if (t_rank == 0)
        OK(MPI_Psend_init(data, 8, COUNT / 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    else
        OK(MPI_Precv_init(data, 4, COUNT / 4, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < ROUNDS; round++) {
        if (t_rank == 0) {
            t_fill(data, COUNT, (uint64_t)round);
            OK(MPI_Start(&request));
            OK(MPI_Pready_range(0, 7, request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Send(&word, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
        } else {
            memset(data, 0, COUNT);
            OK(MPI_Start(&request));
            OK(MPI_Recv(&word, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK_FILL(data, COUNT, (uint64_t)round);
        }
    }
    OK(MPI_Request_free(&request));
    return t_end();
}
