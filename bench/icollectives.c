/* Overlap of non-blocking collective operations: with t0 the time of the operation followed at
 * once by its wait, and t the time with a computation of length t0 in between, the overlap is the
 * share of t0 that the computation hides, averaged over the ranks. A fast library has a short t0
 * and little to hide, so a ratio says nothing about which one is done first: `beside` is the whole
 * time with a computation that is as long for every library. */
#include "bench.h"

/* About as long as the best library takes for the operation. */
#define FIXED_SECONDS 1e-6
#define FIXED_SECONDS_PER_BYTE 0.125e-9

static char *out, *in;
static double compute;

static void ibcast(int n, MPI_Request *request)
{
	MPI_Ibcast(out, n, MPI_CHAR, 0, MPI_COMM_WORLD, request);
}

static void iallreduce(int n, MPI_Request *request)
{
	MPI_Iallreduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
}

static void ialltoall(int n, MPI_Request *request)
{
	MPI_Ialltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, MPI_COMM_WORLD, request);
}

static const struct operation {
	const char *name;
	void (*start)(int n, MPI_Request *request);
} operations[] = { { "ibcast", ibcast }, { "iallreduce", iallreduce }, { "ialltoall", ialltoall } };

static const struct operation *operation;

static double repeat(size_t size, long count)
{
	double sum = 0;
	for (long i = 0; i < count; i++) {
		MPI_Request request;
		double begin = now();
		operation->start((int)size, &request);
		if (compute > 0)
			bench_compute(compute);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		sum += now() - begin;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return sum;
}

static void measure(size_t size)
{
	compute = 0;
	struct spread bare = bench_measure(repeat, size, 1);
	compute = bench_share(bare.mid);
	struct spread both = bench_measure(repeat, size, 1);
	double hidden = compute;
	compute = FIXED_SECONDS + FIXED_SECONDS_PER_BYTE * (double)size;
	struct spread beside = bench_measure(repeat, size, 1);
	if (bench.rank != 0)
		return;
	double overlap = 100 * (1 - (both.mid - hidden) / bare.mid);
	overlap = overlap < 0 ? 0 : overlap > 100 ? 100 : overlap;
	emit(operation->name, "", size, (struct spread){ overlap, overlap, overlap, both.readings }, "%");
	emit(operation->name, "alone", size, scaled(bare, 1e6), "us");
	emit(operation->name, "beside", size, scaled(beside, 1e6), "us");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "icollectives", 1, 8 << 10, 256 << 10);
	out = bench_buffer(bench.max * (size_t)bench.ranks);
	in = bench_buffer(bench.max * (size_t)bench.ranks);
	bench_compute(0);
	bench_sync();
	for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
		operation = &operations[k];
		if (!bench_wanted(operation->name))
			continue;
		for (size_t size = bench_first(); size <= bench.max; size = bench_next(size))
			measure(size);
	}
	return bench_stop();
}
