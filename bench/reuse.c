/* What it costs that buffers are new (dissertation, section 3.5.2): half a ping-pong between two ranks whose messages reuse the
 * buffers of the one before never, every second time, or always. The variant says how many of a hundred do.
 *
 * A new buffer has been written to, and MPI has not seen it: each batch maps its own, for what is sent and for what is received,
 * each at the beginning of a page, and neither mapping nor unmapping is timed. What is always reused stays as long as the program. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

enum { PAGE = 4096, ALWAYS = 100, HALF = 50 };

/* Buffers one behind the other. */
struct row {
	char *first;
	size_t stride;
	size_t bytes;
};

/* Messages of a hundred that reuse the buffers of the one before, and those that are always reused. */
static int reused;
static struct row kept[2];

static struct row map_row(size_t size, long buffers)
{
	size_t stride = (size + PAGE - 1) / PAGE * PAGE;
	struct row row = { NULL, stride, stride * (size_t)buffers };
	row.first = mmap(NULL, row.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (row.first == MAP_FAILED)
		bench_fail("mmap failed");
	memset(row.first, 1, row.bytes);
	return row;
}

/* Round trips, the k-th with the buffers k / `each` of both rows; seconds of all. */
static double trips(struct row out, struct row in, size_t size, long count, long each)
{
	int peer = 1 - bench.rank, n = (int)size;
	double begin = now();
	for (long k = 0; k < count; k++) {
		size_t at = (size_t)(k / each) * out.stride;
		if (bench.rank == 0)
			MPI_Send(out.first + at, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(in.first + at, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (bench.rank == 1)
			MPI_Send(out.first + at, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
	}
	return now() - begin;
}

/* Two round trips for each of `count`, so that one of two can be with new buffers. */
static double ping_pong(size_t size, long count)
{
	long messages = 2 * count, buffers = reused == HALF ? count : messages;
	if (reused == ALWAYS)
		return trips(kept[0], kept[1], size, messages, messages) / 4;
	struct row out = map_row(size, buffers), in = map_row(size, buffers);
	bench_sync();
	double took = trips(out, in, size, messages, messages / buffers);
	munmap(out.first, out.bytes);
	munmap(in.first, in.bytes);
	return took / 4;
}

static void verify(size_t size)
{
	struct row out = map_row(size, 2), in = map_row(size, 2);
	for (int k = 0; k < 2; k++)
		bench_fill(out.first + (size_t)k * out.stride, size, bench.rank + 2 * k);
	trips(out, in, size, 2, 1);
	for (int k = 0; k < 2; k++)
		bench_check(in.first + (size_t)k * in.stride, size, 1 - bench.rank + 2 * k);
	munmap(out.first, out.bytes);
	munmap(in.first, in.bytes);
}

int main(int argc, char **argv)
{
	static const int shares[] = { 0, HALF, ALWAYS };
	bench_start(&argc, &argv, "reuse", 2, 8, 4 << 20);
	if (bench.ranks != 2)
		bench_fail("needs exactly two ranks");
	for (int k = 0; k < 2; k++)
		kept[k] = map_row(bench.max, 1);
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size)) {
		verify(size);
		for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
			char variant[16];
			reused = shares[k];
			snprintf(variant, sizeof variant, "%d %%", reused);
			if (!bench_wanted(variant))
				continue;
			struct spread s = bench_measure(ping_pong, size, 0);
			if (bench.rank == 0)
				emit("reuse", variant, size, scaled(s, 1e6), "us");
		}
	}
	return bench_stop();
}
