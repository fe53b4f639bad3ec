/* A rank that computes for longer than the other waits without asking whether it is still there: it is waited for. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { SECONDS = 14 };

int main(int argc, char **argv) {
    int rank, word = 7;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        sleep(SECONDS);
        MPI_Send(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    }
    if (rank == 1) {
        word = 0;
        MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (word == 7) puts("test passed");
    }
    return MPI_Finalize();
}
