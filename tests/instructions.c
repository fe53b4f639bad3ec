/* Messages of 8 bytes from a rank to itself, as many as the argument says. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000;
    double value = 1, got = 0;
    MPI_Init(&argc, &argv);
    for (long i = 0; i < count; i++) {
        MPI_Send(&value, 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return got != value && count > 0;
}
