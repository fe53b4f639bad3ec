/* Ping-pong between ranks 0 and 1: half a round trip. As variant `touched` the sender writes and
 * the receiver reads every byte, as an application does: a copy that leaves the data far from
 * the receiver's cache pays for it here. As `behind` what is received lies 16 bytes further behind the
 * beginning of a page than what is sent, as large memory of malloc does beside whole pages: some processors copy
 * such memory at a tenth of their speed. */
#include <stdint.h>

#include "bench.h"

enum { BEHIND = 16 };

static char *out, *in;

static double ping_pong(size_t size, long count)
{
	int peer = 1 - bench.rank, n = (int)size;
	double begin = now();
	for (long i = 0; i < count; i++) {
		if (bench.rank == 0)
			MPI_Send(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(in, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (bench.rank == 1)
			MPI_Send(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
	}
	return (now() - begin) / 2;
}

static double touched(size_t size, long count)
{
	int peer = 1 - bench.rank, n = (int)size;
	volatile uint64_t sink = 0;
	double begin = now();
	for (long i = 0; i < count; i++) {
		if (bench.rank == 0) {
			bench_write((uint64_t *)out, size, (uint64_t)i);
			MPI_Send(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
		}
		MPI_Recv(in, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sink += bench_sum((uint64_t *)in, size);
		if (bench.rank == 1) {
			bench_write((uint64_t *)out, size, (uint64_t)i);
			MPI_Send(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
		}
	}
	return (now() - begin) / 2;
}

static void verify(size_t size)
{
	bench_fill(out, size, bench.rank);
	ping_pong(size, 1);
	bench_check(in, size, 1 - bench.rank);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "latency", 2, 0, 4 << 20);
	if (bench.ranks != 2)
		bench_fail("needs exactly two ranks");
	out = bench_buffer(bench.max);
	in = bench_buffer(bench.max + BEHIND);
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size)) {
		verify(size);
		if (bench_wanted("plain")) {
			struct spread s = bench_measure(ping_pong, size, 0);
			if (bench.rank == 0)
				emit("latency", "plain", size, scaled(s, 1e6), "us");
		}
		if (bench_wanted("touched") && size >= 1 << 10) {
			struct spread s = bench_measure(touched, size, 0);
			if (bench.rank == 0)
				emit("latency", "touched", size, scaled(s, 1e6), "us");
		}
		if (bench_wanted("behind") && size >= 1 << 11) {
			in += BEHIND;
			verify(size);
			struct spread s = bench_measure(ping_pong, size, 0);
			in -= BEHIND;
			if (bench.rank == 0)
				emit("latency", "behind", size, scaled(s, 1e6), "us");
		}
	}
	return bench_stop();
}
