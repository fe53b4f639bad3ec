/* What a program with many ranks meets: MPI_Init, the first call of a collective, among ranks that have not heard of
 * each other yet, and the calls after it. One collective per run, so that nothing before it has made acquaintance.
 * Each time is from the moment the first rank begins to the moment the last one is done. `work` is the processor time
 * of all ranks together in it: what is left of it when other load of the machine is taken away. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { LATER = 9 };

static char *out, *in;

static void alltoall(size_t size)
{
	memset(in, 0, size * (size_t)bench.ranks);
	MPI_Alltoall(out, (int)size, MPI_CHAR, in, (int)size, MPI_CHAR, MPI_COMM_WORLD);
	for (int from = 0; from < bench.ranks; from++)
		if (in[(size_t)from * size] != (char)(from + bench.rank))
			bench_fail("received data is wrong");
}

static void allreduce(size_t size)
{
	double one[1] = { 1 }, sum[1] = { 0 };
	(void)size;
	MPI_Allreduce(one, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (sum[0] != bench.ranks)
		bench_fail("received data is wrong");
}

static void barrier(size_t size)
{
	(void)size;
	MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
	const char *name;
	void (*call)(size_t size);
} operations[] = { { "alltoall", alltoall }, { "allreduce", allreduce }, { "barrier", barrier } };

struct moment {
	double wall;
	double work;
};

static struct moment moment(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (struct moment){ now(), (double)t.tv_sec + 1e-9 * (double)t.tv_nsec };
}

/* From the first `begin` to the last `end` of all ranks, and what they worked meanwhile; on rank 0. */
static struct moment span(struct moment begin, struct moment end)
{
	double mine[2] = { -begin.wall, end.wall }, all[2] = { 0, 0 };
	double mine_work = end.work - begin.work, all_work = 0;
	MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine_work, &all_work, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	return (struct moment){ all[0] + all[1], all_work };
}

static void report(const char *operation, const char *when, size_t size, const struct moment *took, int count)
{
	double wall[LATER], work[LATER];
	char variant[64];
	if (bench.rank != 0)
		return;
	for (int i = 0; i < count; i++) {
		wall[i] = took[i].wall;
		work[i] = took[i].work;
	}
	snprintf(variant, sizeof variant, "%s %s", operation, when);
	emit("first", variant, size, scaled(spread_of(wall, count), 1e3), "ms");
	snprintf(variant, sizeof variant, "%s %s work", operation, when);
	emit("first", variant, size, scaled(spread_of(work, count), 1e3), "ms");
}

int main(int argc, char **argv)
{
	struct moment begin[LATER + 2], end[LATER + 2], took[LATER + 2];
	begin[0] = moment();
	bench_start(&argc, &argv, "first", 1, 8, 8);
	end[0] = moment();
	size_t all = bench.max * (size_t)bench.ranks, operation = 0;
	size_t count = sizeof operations / sizeof *operations;
	while (bench.only && operation < count && strcmp(operations[operation].name, bench.only) != 0)
		operation++;
	if (operation == count)
		bench_fail("--only alltoall, allreduce or barrier");
	out = bench_buffer(all);
	in = bench_buffer(all);
	for (size_t i = 0; i < all; i++)
		out[i] = (char)(i / bench.max + (size_t)bench.rank);
	for (int i = 1; i < LATER + 2; i++) {
		begin[i] = moment();
		operations[operation].call(bench.max);
		end[i] = moment();
	}
	for (int i = 0; i < LATER + 2; i++)
		took[i] = span(begin[i], end[i]);
	report(operations[operation].name, "init", bench.max, took, 1);
	report(operations[operation].name, "first", bench.max, took + 1, 1);
	report(operations[operation].name, "later", bench.max, took + 2, LATER);
	return bench_stop();
}
