/* Blocking collective operations. The time is that of the operation alone, averaged over the
 * ranks; a barrier outside the timing separates the repetitions, so that no rank runs ahead.
 * The size is the block of one rank. `--only NAME,...` measures these operations; those that a
 * program polls for (`..._polled`: begun, then MPI_Test without a pause) only if they are named. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static char *out, *in;
/* Of the operations with a length for each rank: all alike, which only the program knows. */
static int *lengths, *places;

static void barrier(int n)
{
	(void)n;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int n)
{
	MPI_Bcast(out, n, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void reduce(int n)
{
	MPI_Reduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(int n)
{
	MPI_Allreduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(int n)
{
	MPI_Gather(out, n, MPI_CHAR, in, n, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void scatter(int n)
{
	MPI_Scatter(out, n, MPI_CHAR, in, n, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void allgather(int n)
{
	MPI_Allgather(out, n, MPI_CHAR, in, n, MPI_CHAR, MPI_COMM_WORLD);
}

static void alltoall(int n)
{
	MPI_Alltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, MPI_COMM_WORLD);
}

static void list(int n)
{
	for (int rank = 0; rank < bench.ranks; rank++) {
		lengths[rank] = n;
		places[rank] = n * rank;
	}
}

static void gatherv(int n)
{
	MPI_Gatherv(out, n, MPI_CHAR, in, lengths, places, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void scatterv(int n)
{
	MPI_Scatterv(out, lengths, places, MPI_CHAR, in, n, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void alltoallv(int n)
{
	(void)n;
	MPI_Alltoallv(out, lengths, places, MPI_CHAR, in, lengths, places, MPI_CHAR, MPI_COMM_WORLD);
}

static void until_done(MPI_Request *request)
{
	for (int done = 0; !done;)
		MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

static void allreduce_polled(int n)
{
	MPI_Request request;
	MPI_Iallreduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
	until_done(&request);
}

static void alltoall_polled(int n)
{
	MPI_Request request;
	MPI_Ialltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, MPI_COMM_WORLD, &request);
	until_done(&request);
}

static const struct operation {
	const char *name;
	void (*call)(int n);
	int if_named;
} operations[] = {
	{ "barrier", barrier, 0 },
	{ "bcast", bcast, 0 },
	{ "reduce", reduce, 0 },
	{ "allreduce", allreduce, 0 },
	{ "gather", gather, 0 },
	{ "scatter", scatter, 0 },
	{ "allgather", allgather, 0 },
	{ "alltoall", alltoall, 0 },
	{ "gatherv", gatherv, 0 },
	{ "scatterv", scatterv, 0 },
	{ "alltoallv", alltoallv, 0 },
	{ "allreduce_polled", allreduce_polled, 1 },
	{ "alltoall_polled", alltoall_polled, 1 },
};

static const struct operation *operation;

static double repeat(size_t size, long count)
{
	double sum = 0;
	for (long i = 0; i < count; i++) {
		double begin = now();
		operation->call((int)size);
		sum += now() - begin;
		if (operation->call != barrier)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	return sum;
}

static void measure(size_t size)
{
	list((int)size);
	struct spread s = bench_measure(repeat, size, 1);
	if (bench.rank == 0)
		emit(operation->name, "", size, scaled(s, 1e6), "us");
}

/* A library that is fast and wrong is not fast. */
static void verify(void)
{
	double one[64], sum[64];
	for (int i = 0; i < 64; i++)
		one[i] = bench.rank + i;
	MPI_Allreduce(one, sum, 64, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < 64; i++)
		if (sum[i] != bench.ranks * (bench.ranks - 1) / 2 + i * bench.ranks)
			bench_fail("allreduce gave a wrong sum");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "collectives", 1, 8, 1 << 20);
	out = bench_buffer(bench.max * (size_t)bench.ranks);
	in = bench_buffer(bench.max * (size_t)bench.ranks);
	memset(out, 0, bench.max * (size_t)bench.ranks);
	lengths = malloc(2 * sizeof *lengths * (size_t)bench.ranks);
	if (!lengths)
		bench_fail("no memory");
	places = lengths + bench.ranks;
	verify();
	for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
		operation = &operations[k];
		if (!bench_wanted(operation->name) || (operation->if_named && !bench.only))
			continue;
		if (operation->call == barrier)
			measure(0);
		else
			for (size_t size = bench_first(); size <= bench.max; size = bench_next(size))
				measure(size);
	}
	return bench_stop();
}
