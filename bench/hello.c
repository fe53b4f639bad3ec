/* Start and end of a job, timed from outside; here only the time inside MPI_Init. */
#include "bench.h"

int main(int argc, char **argv)
{
	int rank, ranks;
	double begin = now();
	MPI_Init(&argc, &argv);
	double seconds = now() - begin;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank == 0)
		emit("init", "", (size_t)ranks, (struct spread){ seconds, seconds, seconds, 1 }, "s");
	MPI_Finalize();
	return 0;
}
