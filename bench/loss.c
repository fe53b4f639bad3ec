/* A stream of messages from rank 0 to rank 1, four under way, for a time: Mbit/s. For loss.py.
 * usage: loss BYTES SECONDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNDER_WAY = 4 };

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int rank, length = atoi(argv[1]);
	double seconds = atof(argv[2]);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	char *buffers = malloc((size_t)length * UNDER_WAY), goes_on = 1;
	memset(buffers, rank, (size_t)length * UNDER_WAY);
	MPI_Request requests[UNDER_WAY];
	/* The first message, and what it takes to meet, do not count. */
	if (rank == 0)
		MPI_Send(buffers, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
	else
		MPI_Recv(buffers, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	double begin = MPI_Wtime(), count = 0;
	for (int i = 0; i < UNDER_WAY; i++)
		requests[i] = MPI_REQUEST_NULL;
	/* The last message is shorter: it says that it is. */
	while (goes_on) {
		for (int i = 0; i < UNDER_WAY && goes_on; i++) {
			MPI_Status status;
			int got = length;
			MPI_Wait(&requests[i], &status);
			if (rank == 0) {
				goes_on = MPI_Wtime() - begin < seconds;
				MPI_Isend(buffers + (size_t)i * length, goes_on ? length : 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD,
					  &requests[i]);
			} else {
				MPI_Get_count(&status, MPI_CHAR, &got);
				goes_on = got != 1;
				if (goes_on)
					MPI_Irecv(buffers + (size_t)i * length, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
			}
			count += goes_on;
		}
	}
	if (rank == 0)
		MPI_Waitall(UNDER_WAY, requests, MPI_STATUSES_IGNORE);
	else
		for (int i = 0; i < UNDER_WAY; i++)
			if (requests[i] != MPI_REQUEST_NULL) {
				MPI_Cancel(&requests[i]);
				MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
			}
	/* Until all has come. */
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.2f\n", count * length * 8 / 1e6 / (MPI_Wtime() - begin));
	MPI_Finalize();
	return 0;
}
