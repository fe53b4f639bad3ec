/* How well several connections are used at once (dissertation, section 3.4.2): 1, 2, 4 … pairs of ranks, one of each pair in
 * the lower half of the ranks, talk at the same time.
 * `latency`     the mean of half a ping-pong over the pairs, divided by their number;
 * `throughput`  both ways with 16 messages in flight each, summed over the pairs.
 * The variant says how many pairs took part; the others wait in a message, not in a loop. */
#include <stdio.h>

#include "bench.h"

enum { WINDOW = 16 };

static char *out, *in;
static MPI_Request requests[2 * WINDOW];
static int active, pairs, peer, lower;

static double ping_pong(size_t size, long count)
{
	double begin = now();
	if ((bench.rank % pairs) < active)
		for (long i = 0; i < count; i++) {
			if (lower)
				MPI_Send(out, (int)size, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
			MPI_Recv(in, (int)size, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (!lower)
				MPI_Send(out, (int)size, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
		}
	return now() - begin;
}

static double both_ways(size_t size, long count)
{
	double begin = now();
	if ((bench.rank % pairs) < active)
		for (long i = 0; i < count; i++) {
			for (int w = 0; w < WINDOW; w++)
				MPI_Irecv(in, (int)size, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[w]);
			for (int w = 0; w < WINDOW; w++)
				MPI_Isend(out, (int)size, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[WINDOW + w]);
			MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
		}
	return now() - begin;
}

/* Seconds per operation, the mean over the ranks that took part: those that did not waited for nothing. */
static struct spread per_pair(bench_body *body, size_t size)
{
	return scaled(bench_measure(body, size, 1), (double)pairs / active);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "connections", 2, 8, 64 << 10);
	if (bench.ranks % 2 != 0)
		bench_fail("needs an even number of ranks");
	pairs = bench.ranks / 2;
	lower = bench.rank < pairs;
	peer = lower ? bench.rank + pairs : bench.rank - pairs;
	out = bench_buffer(bench.max);
	in = bench_buffer(bench.max);
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size))
		for (active = 1; active <= pairs; active *= 2) {
			char variant[32];
			snprintf(variant, sizeof variant, "%d at once", active);
			if (bench_wanted("latency")) {
				struct spread s = per_pair(ping_pong, size);
				if (bench.rank == 0)
					emit("latency", variant, size, scaled(s, 0.5e6 / active), "us");
			}
			if (bench_wanted("throughput")) {
				struct spread s = per_pair(both_ways, size);
				double gigabytes = 2.0 * WINDOW * active * (double)size * 1e-9;
				if (bench.rank == 0)
					emit("throughput", variant, size, rate_of(s, gigabytes), "GB/s");
			}
		}
	return bench_stop();
}
