/* All ranks of the second host send to rank 0 at once: what its port has no room for is lost, and comes again. Every byte
 * is checked. usage: incast MESSAGES BYTES. Rank 0 prints how fast it was. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, size, messages = atoi(argv[1]), length = atoi(argv[2]);
    (void)argc;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int is_sender = rank >= size / 2, senders = size - size / 2;
    char *bytes = malloc((size_t)length);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < messages; i++) {
        if (is_sender) {
            memset(bytes, rank + i, (size_t)length);
            MPI_Send(bytes, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
        for (int from = size / 2; rank == 0 && from < size; from++) {
            MPI_Recv(bytes, length, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int at = 0; at < length; at++)
                if (bytes[at] != (char)(from + i)) {
                    fprintf(stderr, "incast: byte %d of message %d from rank %d is wrong\n", at, i, from);
                    MPI_Abort(MPI_COMM_WORLD, 9);
                }
        }
    }
    if (rank == 0)
        printf("all bytes arrived: %.1f Mbit/s\n", 8e-6 * messages * senders * length / (MPI_Wtime() - begin));
    MPI_Finalize();
    return 0;
}
