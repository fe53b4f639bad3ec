/* The point-to-point benchmarks of two suites as their descriptions define them, written anew: what people compare
 * libraries by. Between two ranks, 0 B to 1 MB, two buffers.
 *
 * `osu` (OSU Micro-Benchmarks): `latency`, half a round trip; `persistent`, the same by persistent requests;
 * `bw`, 64 sends in flight, then a short answer; `bibw`, both ranks at once; `mbw_mr`, messages per second of `bw`.
 * `imb` (Intel MPI Benchmarks): `pingpong`, half a round trip; `pingping`, MPI_Isend, MPI_Recv, MPI_Wait on both;
 * `sendrecv`, MPI_Sendrecv round the ring; `exchange`, with both neighbours, which are the same rank here; `uniband`
 * and `biband`, 64 messages of one or both ranks. Of `imb` the time of a repetition, or its messages per second. */
#include "bench.h"

enum { WINDOW = 64, TAG = 1, TAG_ANSWER = 2 };

static char *out, *in, answer[4];
static MPI_Request requests[2 * WINDOW];
static int peer;
static MPI_Comm world; /* of the benchmark at hand */

static void send_all(int n, MPI_Request *r)
{
	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(out, n, MPI_CHAR, peer, TAG, world, &r[i]);
}

static void receive_all(int n, MPI_Request *r)
{
	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(in, n, MPI_CHAR, peer, TAG, world, &r[i]);
}

static void send_answer(void)
{
	MPI_Send(answer, sizeof answer, MPI_CHAR, peer, TAG_ANSWER, world);
}

static void receive_answer(void)
{
	MPI_Recv(answer, sizeof answer, MPI_CHAR, peer, TAG_ANSWER, world, MPI_STATUS_IGNORE);
}

static double ping_pong(size_t size, long count)
{
	int n = (int)size;
	double begin = now();
	for (long i = 0; i < count; i++) {
		if (bench.rank == 0)
			MPI_Send(out, n, MPI_CHAR, peer, TAG, world);
		MPI_Recv(in, n, MPI_CHAR, peer, TAG, world, MPI_STATUS_IGNORE);
		if (bench.rank == 1)
			MPI_Send(out, n, MPI_CHAR, peer, TAG, world);
	}
	return (now() - begin) / 2;
}

static double persistent(size_t size, long count)
{
	MPI_Request send, receive;
	MPI_Send_init(out, (int)size, MPI_CHAR, peer, TAG, world, &send);
	MPI_Recv_init(in, (int)size, MPI_CHAR, peer, TAG, world, &receive);
	double begin = now();
	for (long i = 0; i < count; i++) {
		MPI_Request *first = bench.rank == 0 ? &send : &receive, *second = bench.rank == 0 ? &receive : &send;
		MPI_Start(first);
		MPI_Wait(first, MPI_STATUS_IGNORE);
		MPI_Start(second);
		MPI_Wait(second, MPI_STATUS_IGNORE);
	}
	double took = (now() - begin) / 2;
	MPI_Request_free(&send);
	MPI_Request_free(&receive);
	return took;
}

static double one_way(size_t size, long count)
{
	double begin = now();
	for (long i = 0; i < count; i++) {
		if (bench.rank == 0)
			send_all((int)size, requests);
		else
			receive_all((int)size, requests);
		MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
		if (bench.rank == 0)
			receive_answer();
		else
			send_answer();
	}
	return now() - begin;
}

static double both_ways(size_t size, long count)
{
	double begin = now();
	for (long i = 0; i < count; i++) {
		receive_all((int)size, requests);
		send_all((int)size, requests + WINDOW);
		MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
		if (bench.rank == 0)
			send_answer();
		receive_answer();
		if (bench.rank == 1)
			send_answer();
	}
	return now() - begin;
}

static double ping_ping(size_t size, long count)
{
	MPI_Request request;
	double begin = now();
	for (long i = 0; i < count; i++) {
		MPI_Isend(out, (int)size, MPI_CHAR, peer, TAG, world, &request);
		MPI_Recv(in, (int)size, MPI_CHAR, peer, TAG, world, MPI_STATUS_IGNORE);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	return now() - begin;
}

static double round_the_ring(size_t size, long count)
{
	int n = (int)size;
	double begin = now();
	for (long i = 0; i < count; i++)
		MPI_Sendrecv(out, n, MPI_CHAR, peer, TAG, in, n, MPI_CHAR, peer, TAG, world, MPI_STATUS_IGNORE);
	return now() - begin;
}

static double both_neighbours(size_t size, long count)
{
	int n = (int)size;
	double begin = now();
	for (long i = 0; i < count; i++) {
		MPI_Isend(out, n, MPI_CHAR, peer, TAG, world, &requests[0]);
		MPI_Isend(out, n, MPI_CHAR, peer, TAG, world, &requests[1]);
		MPI_Recv(in, n, MPI_CHAR, peer, TAG, world, MPI_STATUS_IGNORE);
		MPI_Recv(in, n, MPI_CHAR, peer, TAG, world, MPI_STATUS_IGNORE);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	return now() - begin;
}

/* What a definition reports. */
enum unit { TIME, BYTES, MESSAGES };

static const struct definition {
	const char *suite, *name;
	bench_body *body;
	enum unit unit;
	int messages; /* of one repetition, where they are counted */
} definitions[] = {
	{ "osu", "latency", ping_pong, TIME, 0 },
	{ "osu", "persistent", persistent, TIME, 0 },
	{ "osu", "bw", one_way, BYTES, WINDOW },
	{ "osu", "bibw", both_ways, BYTES, 2 * WINDOW },
	{ "osu", "mbw_mr", one_way, MESSAGES, WINDOW },
	{ "imb", "pingpong", ping_pong, TIME, 0 },
	{ "imb", "pingping", ping_ping, TIME, 0 },
	{ "imb", "sendrecv", round_the_ring, TIME, 0 },
	{ "imb", "exchange", both_neighbours, TIME, 0 },
	{ "imb", "uniband", one_way, MESSAGES, WINDOW },
	{ "imb", "biband", both_ways, MESSAGES, 2 * WINDOW },
};

static void measure(const struct definition *d, size_t size)
{
	if (d->unit == BYTES && size == 0)
		return;
	bench_fill(out, size, bench.rank);
	d->body(size, 1);
	bench_check(in, size, d->body == one_way && bench.rank == 0 ? -1 : peer);
	struct spread s = bench_measure(d->body, size, 1);
	if (bench.rank != 0)
		return;
	if (d->unit == TIME)
		emit(d->suite, d->name, size, scaled(s, 1e6), "us");
	else if (d->unit == BYTES)
		emit(d->suite, d->name, size, rate_of(s, d->messages * (double)size * 1e-9), "GB/s");
	else
		emit(d->suite, d->name, size, rate_of(s, d->messages * 1e-6), "M/s");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "definitions", 2, 0, 1 << 20);
	if (bench.ranks != 2)
		bench_fail("needs exactly two ranks");
	bench.seconds /= 4; /* for there are many points */
	peer = 1 - bench.rank;
	out = bench_buffer(bench.max);
	in = bench_buffer(bench.max);
	for (size_t k = 0; k < sizeof definitions / sizeof *definitions; k++) {
		if (!bench_wanted(definitions[k].name))
			continue;
		bench_fill(in, bench.max, -1);
		/* OSU's are jobs of their own, IMB makes a communicator for each: what one does tells a library nothing of the next. */
		MPI_Comm_dup(MPI_COMM_WORLD, &world);
		for (size_t size = bench_first(); size <= bench.max; size = bench_next(size))
			measure(&definitions[k], size);
		MPI_Comm_free(&world);
	}
	return bench_stop();
}
