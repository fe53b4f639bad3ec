/* The collective benchmarks of two suites as their descriptions define them, written anew: what people compare
 * libraries by. Bytes are MPI_CHAR, what is combined MPI_FLOAT; the size is the block of one rank, of reductions the
 * vector.
 *
 * `osu` (OSU Micro-Benchmarks): one call at a time, timed alone, with a barrier behind it; the mean over the ranks.
 * Of a non-blocking one `pure`, the call and its wait; `total`, with a computation of that length in between; and
 * the share of `pure` that the computation hides, in per cent. Of a persistent one, start and wait.
 * `imb` (Intel MPI Benchmarks): calls one behind the other, the root going round; the mean over the ranks.
 * A form that gives other data than the blocking call is named and not measured.
 * `local` is MPI_Reduce_local. `--only NAME` measures one collective in all its forms. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { MOST_RANKS = 64 };

static char *out, *in, *kept;
static int root, counts[MOST_RANKS], offsets[MOST_RANKS], shares[MOST_RANKS];
static MPI_Datatype types[MOST_RANKS];

#define WORLD MPI_COMM_WORLD

/* A collective in its three forms. */
#define FORMS(name, Name, ...)                                                                        \
	static void name(int n)                                                                       \
	{                                                                                             \
		(void)n;                                                                              \
		MPI_##Name(__VA_ARGS__);                                                              \
	}                                                                                             \
	static void i##name(int n, MPI_Request *request)                                              \
	{                                                                                             \
		(void)n;                                                                              \
		MPI_I##name(__VA_ARGS__, request);                                                    \
	}                                                                                             \
	static void name##_init(int n, MPI_Request *request)                                          \
	{                                                                                             \
		(void)n;                                                                              \
		MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, request);                               \
	}

FORMS(barrier, Barrier, WORLD)
FORMS(bcast, Bcast, out, n, MPI_CHAR, root, WORLD)
FORMS(gather, Gather, out, n, MPI_CHAR, in, n, MPI_CHAR, root, WORLD)
FORMS(gatherv, Gatherv, out, n, MPI_CHAR, in, counts, offsets, MPI_CHAR, root, WORLD)
FORMS(scatter, Scatter, out, n, MPI_CHAR, in, n, MPI_CHAR, root, WORLD)
FORMS(scatterv, Scatterv, out, counts, offsets, MPI_CHAR, in, n, MPI_CHAR, root, WORLD)
FORMS(allgather, Allgather, out, n, MPI_CHAR, in, n, MPI_CHAR, WORLD)
FORMS(allgatherv, Allgatherv, out, n, MPI_CHAR, in, counts, offsets, MPI_CHAR, WORLD)
FORMS(alltoall, Alltoall, out, n, MPI_CHAR, in, n, MPI_CHAR, WORLD)
FORMS(alltoallv, Alltoallv, out, counts, offsets, MPI_CHAR, in, counts, offsets, MPI_CHAR, WORLD)
FORMS(alltoallw, Alltoallw, out, counts, offsets, types, in, counts, offsets, types, WORLD)
FORMS(reduce, Reduce, out, in, n / 4, MPI_FLOAT, MPI_SUM, root, WORLD)
FORMS(allreduce, Allreduce, out, in, n / 4, MPI_FLOAT, MPI_SUM, WORLD)
FORMS(reduce_scatter, Reduce_scatter, out, in, shares, MPI_FLOAT, MPI_SUM, WORLD)
FORMS(reduce_scatter_block, Reduce_scatter_block, out, in, n / 4 / bench.ranks, MPI_FLOAT, MPI_SUM, WORLD)

static void local(int n)
{
	MPI_Reduce_local(out, in, n / 4, MPI_FLOAT, MPI_SUM);
}

#define ALL(name, least) { #name, least, name, i##name, name##_init }

static const struct collective {
	const char *name;
	size_t least; /* bytes, but for none at all; -1 if it has no data */
	void (*call)(int n);
	void (*start)(int n, MPI_Request *request);
	void (*prepare)(int n, MPI_Request *request);
} collectives[] = {
	ALL(barrier, (size_t)-1),
	ALL(bcast, 1),
	ALL(gather, 1),
	ALL(gatherv, 1),
	ALL(scatter, 1),
	ALL(scatterv, 1),
	ALL(allgather, 1),
	ALL(allgatherv, 1),
	ALL(alltoall, 1),
	ALL(alltoallv, 1),
	ALL(alltoallw, 1),
	ALL(reduce, 4),
	ALL(allreduce, 4),
	ALL(reduce_scatter, 4),
	ALL(reduce_scatter_block, 8),
	{ "local", 4, local, NULL, NULL },
};

static const struct collective *collective;
static double compute;

static void separate(void)
{
	if (collective->call != barrier && collective->call != local)
		MPI_Barrier(WORLD);
}

static double one_at_a_time(size_t size, long count)
{
	double sum = 0;
	for (long i = 0; i < count; i++) {
		double begin = now();
		collective->call((int)size);
		sum += now() - begin;
		separate();
	}
	return sum;
}

static double in_a_row(size_t size, long count)
{
	double begin = now();
	for (long i = 0; i < count; i++) {
		collective->call((int)size);
		root = (root + 1) % bench.ranks;
	}
	double took = now() - begin;
	root = 0;
	return took;
}

static double nonblocking(size_t size, long count)
{
	double sum = 0;
	for (long i = 0; i < count; i++) {
		MPI_Request request;
		double begin = now();
		collective->start((int)size, &request);
		if (compute > 0)
			bench_compute(compute);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		sum += now() - begin;
		MPI_Barrier(WORLD);
	}
	return sum;
}

static double persistent(size_t size, long count)
{
	MPI_Request request;
	double sum = 0;
	collective->prepare((int)size, &request);
	for (long i = 0; i < count; i++) {
		double begin = now();
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		sum += now() - begin;
		MPI_Barrier(WORLD);
	}
	MPI_Request_free(&request);
	return sum;
}

static void fill(size_t room, int pass)
{
	float *words = (float *)out;
	for (size_t i = 0; i < room / 4; i++)
		words[i] = (float)(bench.rank + pass + (int)(i % 61));
	memset(in, 0, room);
}

/* A library that is fast and wrong is not fast: whether the form gives what the blocking call gives, its second time
 * with other data too. What it gave lies in `kept`. */
static int is_right(int is_persistent, size_t size)
{
	MPI_Request request;
	size_t room = size * (size_t)bench.ranks;
	if (is_persistent)
		collective->prepare((int)size, &request);
	for (int pass = 0; pass < 2; pass++) {
		fill(room, pass);
		if (is_persistent)
			MPI_Start(&request);
		else
			collective->start((int)size, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	if (is_persistent)
		MPI_Request_free(&request);
	memcpy(kept, out, room);
	memcpy(kept + room, in, room);
	fill(room, 1);
	collective->call((int)size);
	int right = memcmp(kept, out, room) == 0 && memcmp(kept + room, in, room) == 0, all;
	memset(out, 0, room);
	memset(in, 0, room);
	MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, WORLD);
	if (!all && bench.rank == 0)
		fprintf(stderr, "%s %s of %zu bytes gives wrong data: not measured\n",
			is_persistent ? "persistent" : "non-blocking", collective->name, size);
	return all;
}

static void report(const char *suite, const char *form, size_t size, struct spread s)
{
	char variant[64];
	snprintf(variant, sizeof variant, "%s%s", form, collective->name);
	if (bench.rank == 0)
		emit(suite, variant, size, scaled(s, 1e6), "us");
}

/* The non-blocking form: what a computation as long as the collective hides of it. */
static void overlap(size_t size)
{
	char variant[64];
	compute = 0;
	struct spread pure = bench_measure(nonblocking, size, 1);
	compute = bench_share(pure.mid);
	struct spread total = bench_measure(nonblocking, size, 1);
	double share = 100 * (1 - (total.mid - compute) / pure.mid);
	share = share < 0 ? 0 : share > 100 ? 100 : share;
	report("osu", "pure i", size, pure);
	report("osu", "total i", size, total);
	snprintf(variant, sizeof variant, "overlap i%s", collective->name);
	if (bench.rank == 0)
		emit("osu", variant, size, (struct spread){ share, share, share, total.readings }, "%");
}

static void measure(size_t size)
{
	int elements = (int)(size / 4);
	for (int i = 0; i < bench.ranks; i++) {
		counts[i] = (int)size;
		offsets[i] = i * (int)size;
		shares[i] = elements / bench.ranks + (i < elements % bench.ranks);
		types[i] = MPI_CHAR;
	}
	report("osu", "", size, bench_measure(one_at_a_time, size, 1));
	if (collective->call == local)
		return;
	report("imb", "", size, bench_measure(in_a_row, size, 1));
	if (is_right(0, size))
		overlap(size);
	if (is_right(1, size))
		report("osu", "persistent ", size, bench_measure(persistent, size, 1));
}

/* The blocking forms that the others are held against, by what must come out. */
static void verify(void)
{
	float mine[64], sum[64];
	for (int i = 0; i < 64; i++)
		mine[i] = (float)(bench.rank + i);
	MPI_Allreduce(mine, sum, 64, MPI_FLOAT, MPI_SUM, WORLD);
	for (int i = 0; i < 64; i++)
		if (sum[i] != (float)(bench.ranks * (bench.ranks - 1) / 2 + i * bench.ranks))
			bench_fail("allreduce gave a wrong sum");
	for (int i = 0; i < bench.ranks; i++) {
		counts[i] = 1024;
		offsets[i] = 1024 * i;
		bench_fill(out + 1024 * i, 1024, 10 * bench.rank + i);
	}
	MPI_Alltoallv(out, counts, offsets, MPI_CHAR, in, counts, offsets, MPI_CHAR, WORLD);
	for (int i = 0; i < bench.ranks; i++)
		bench_check(in + 1024 * i, 1024, 10 * i + bench.rank);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "definitions_coll", 2, 0, 1 << 20);
	if (bench.ranks > MOST_RANKS)
		bench_fail("too many ranks");
	bench.seconds /= 4; /* for there are many points */
	size_t room = (bench.max < 1024 ? 1024 : bench.max) * (size_t)bench.ranks;
	out = bench_buffer(room);
	in = bench_buffer(room);
	kept = bench_buffer(2 * room);
	verify();
	memset(out, 0, room);
	memset(in, 0, room);
	bench_compute(0);
	for (size_t k = 0; k < sizeof collectives / sizeof *collectives; k++) {
		collective = &collectives[k];
		if (!bench_wanted(collective->name))
			continue;
		for (size_t size = bench_first(); size <= bench.max; size = bench_next(size))
			if (size == 0 || size >= collective->least)
				measure(size);
	}
	return bench_stop();
}
