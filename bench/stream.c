/* Streams of messages, 64 in flight:
 * `bandwidth`  from the lower half of the ranks to the upper half, pairwise, in GB/s;
 * `both_ways`  the same in both directions at once;
 * `rate`       messages of 8 bytes, in millions per second.
 * With two ranks these are the classical tests; with more, the figures are sums over the pairs.
 * Every window ends with a small answer from the receiver. */
#include "bench.h"

enum { WINDOW = 64 };

static char *out, *in, answer[4];
static MPI_Request requests[2 * WINDOW];
static int pairs, peer, sender;

static void post_sends(MPI_Request *r, int size)
{
	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(out, size, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &r[i]);
}

static void post_receives(MPI_Request *r, int size)
{
	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(in, size, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &r[i]);
}

static void exchange_answer(void)
{
	if (sender)
		MPI_Recv(answer, 4, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(answer, 4, MPI_CHAR, peer, 2, MPI_COMM_WORLD);
}

static double one_way(size_t size, long count)
{
	double begin = now();
	for (long i = 0; i < count; i++) {
		if (sender)
			post_sends(requests, (int)size);
		else
			post_receives(requests, (int)size);
		MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
		exchange_answer();
	}
	return now() - begin;
}

static double both_ways(size_t size, long count)
{
	double begin = now();
	for (long i = 0; i < count; i++) {
		post_receives(requests, (int)size);
		post_sends(requests + WINDOW, (int)size);
		MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
		exchange_answer();
	}
	return now() - begin;
}

static void verify(size_t size)
{
	bench_fill(out, size, bench.rank);
	both_ways(size, 1);
	bench_check(in, size, peer);
}

static void report(const char *name, bench_body *body, size_t size, double amount, const char *unit)
{
	if (!bench_wanted(name))
		return;
	struct spread s = bench_measure(body, size, 1);
	if (bench.rank == 0)
		emit(name, pairs > 1 ? "pairs" : "", size, rate_of(s, amount * pairs), unit);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "stream", 2, 1, 4 << 20);
	if (bench.ranks % 2 != 0)
		bench_fail("needs an even number of ranks");
	pairs = bench.ranks / 2;
	sender = bench.rank < pairs;
	peer = sender ? bench.rank + pairs : bench.rank - pairs;
	out = bench_buffer(bench.max);
	in = bench_buffer(bench.max);
	report("rate", one_way, 8, WINDOW * 1e-6, "M/s");
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size)) {
		double gigabytes = WINDOW * (double)size * 1e-9;
		verify(size);
		report("bandwidth", one_way, size, gigabytes, "GB/s");
		report("both_ways", both_ways, size, 2 * gigabytes, "GB/s");
	}
	return bench_stop();
}
