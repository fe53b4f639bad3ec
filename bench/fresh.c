/* Bandwidth into memory never touched before, from memory at an address never used before: each
 * repetition maps new buffers on both sides. The sender has written its data, as an application
 * must; the receiver's pages come into being while the message arrives. Neither mapping nor
 * unmapping is timed. A registration cache or pinned window gains nothing here. */
#include <stdio.h>
#include <sys/mman.h>

#include "bench.h"

enum { DATA = 1, ANSWER = 2 };

static char *map_new(size_t size)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		bench_fail("mmap failed");
	return memory;
}

/* One message and its answer; `check` looks at the data received. */
static double transfer(size_t size, int check)
{
	int n = (int)size;
	char *buffer = map_new(size), answer = 0;
	if (bench.rank == 0)
		bench_fill(buffer, size, 3);
	bench_sync();
	double begin = now();
	if (bench.rank == 0) {
		MPI_Send(buffer, n, MPI_CHAR, 1, DATA, MPI_COMM_WORLD);
		MPI_Recv(&answer, 1, MPI_CHAR, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buffer, n, MPI_CHAR, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&answer, 1, MPI_CHAR, 0, ANSWER, MPI_COMM_WORLD);
	}
	double took = now() - begin;
	if (check && bench.rank == 1)
		bench_check(buffer, size, 3);
	munmap(buffer, size);
	return took;
}

static double repeat(size_t size, long count)
{
	double sum = 0;
	for (long i = 0; i < count; i++)
		sum += transfer(size, 0);
	return sum;
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "fresh", 2, 4 << 10, 16 << 20);
	if (bench.ranks != 2)
		bench_fail("needs exactly two ranks");
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size)) {
		transfer(size, 1);
		struct spread s = bench_measure(repeat, size, 0);
		if (bench.rank == 0)
			emit("fresh", "", size, rate_of(s, (double)size * 1e-9), "GB/s");
	}
	return bench_stop();
}
