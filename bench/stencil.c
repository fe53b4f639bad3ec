/* The time of an application: Jacobi's method for the heat equation on rows of doubles that are dealt out to the ranks, 64 rows
 * to each. An iteration computes, exchanges the edge rows with both neighbours (the size is that of a row in bytes) and, every
 * tenth time, sums up the change over all ranks. The result is checked: the sum of all heat stays within what the edges let in. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

enum { ROWS = 64, CHECK_EVERY = 10 };

static double *now_at, *next_at;
static size_t width; /* doubles in a row */
static int up, down;

static double *row(double *grid, int r)
{
	return grid + (size_t)r * width;
}

static void begin_with(size_t bytes)
{
	width = bytes / sizeof(double);
	for (int r = 0; r < ROWS + 2; r++)
		for (size_t c = 0; c < width; c++)
			row(now_at, r)[c] = row(next_at, r)[c] = c == 0 ? 1.0 : 0.0;
}

static double relax(void)
{
	double change = 0;
	for (int r = 1; r <= ROWS; r++) {
		const double *a = row(now_at, r - 1), *h = row(now_at, r), *b = row(now_at, r + 1);
		double *to = row(next_at, r);
		for (size_t c = 1; c + 1 < width; c++) {
			to[c] = 0.25 * (a[c] + b[c] + h[c - 1] + h[c + 1]);
			change += fabs(to[c] - h[c]);
		}
	}
	double *old = now_at;
	now_at = next_at;
	next_at = old;
	return change;
}

static void exchange(void)
{
	MPI_Request requests[4];
	int n = (int)width;
	MPI_Irecv(row(now_at, 0), n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(row(now_at, ROWS + 1), n, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &requests[1]);
	MPI_Isend(row(now_at, ROWS), n, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[2]);
	MPI_Isend(row(now_at, 1), n, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &requests[3]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static double iterate(size_t size, long count)
{
	(void)size;
	double begin = now();
	for (long i = 0; i < count; i++) {
		double change = relax(), all = 0;
		exchange();
		if (i % CHECK_EVERY == 0) {
			MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
			if (!(all >= 0 && all < 1e9))
				bench_fail("the heat has got lost");
		}
	}
	return now() - begin;
}

/* Maximum principle: no point is hotter than the edge or colder than the rest. */
static void verify(void)
{
	for (int r = 0; r < ROWS + 2; r++)
		for (size_t c = 0; c < width; c++)
			if (!(row(now_at, r)[c] >= 0 && row(now_at, r)[c] <= 1))
				bench_fail("a point is hotter than the edge");
	if (width > 2 && !(row(now_at, 1)[1] > 0))
		bench_fail("no heat has come in");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "stencil", 1, 64, 64 << 10);
	up = bench.rank > 0 ? bench.rank - 1 : MPI_PROC_NULL;
	down = bench.rank + 1 < bench.ranks ? bench.rank + 1 : MPI_PROC_NULL;
	now_at = (double *)bench_buffer((ROWS + 2) * bench.max);
	next_at = (double *)bench_buffer((ROWS + 2) * bench.max);
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size)) {
		if (size < 64)
			continue;
		begin_with(size);
		struct spread s = bench_measure(iterate, size, 1);
		verify();
		if (bench.rank == 0)
			emit("stencil", "", size, scaled(s, 1e6), "us");
	}
	return bench_stop();
}
