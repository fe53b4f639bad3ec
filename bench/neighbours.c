/* What a program on a grid asks of a library: MPI_Cart_shift, exchanges with neighbours, partitioned sends.
 *
 * The grid has two closed dimensions and all ranks; `size` is what goes to each of the four neighbours.
 * `cart_shift`: one call, in ns. `alltoall`, `allgather`: MPI_Neighbor_alltoall and MPI_Neighbor_allgather one behind the
 * other; `persistent`, started and waited for; `by hand`, the same by MPI_Irecv, MPI_Isend, MPI_Waitall: what the
 * collective is to be no worse than. `touched`: MPI_Neighbor_alltoall of what the application has written just before, and reads
 * behind it; both count.
 * `parts`: a round of a partitioned message of 16 partitions round the ring, `size` bytes in all, all ready at once;
 * `computed`: each is ready after a computation as long as the whole takes, and the value is what a round takes beyond
 * its computation; `whole`: the same as one persistent message behind all computations; `plain`: as one persistent message
 * without any, which `parts` has no reason to be slower than. */
#include "bench.h"

#include <stddef.h>
#include <stdint.h>

enum { SIDES = 4, PARTS = 16, TAG = 3 };

static char *out, *in;
static MPI_Comm grid;
static int from[SIDES], to[SIDES], ring_next, ring_before;
static double compute;

static double cart_shift(size_t size, long count)
{
	int source, dest;
	(void)size;
	double begin = now();
	for (long i = 0; i < count; i++)
		MPI_Cart_shift(grid, (int)(i & 1), 1, &source, &dest);
	return now() - begin;
}

static double alltoall(size_t size, long count)
{
	int n = (int)size;
	double begin = now();
	for (long i = 0; i < count; i++)
		MPI_Neighbor_alltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, grid);
	return now() - begin;
}

static double allgather(size_t size, long count)
{
	int n = (int)size;
	double begin = now();
	for (long i = 0; i < count; i++)
		MPI_Neighbor_allgather(out, n, MPI_CHAR, in, n, MPI_CHAR, grid);
	return now() - begin;
}

static double persistent(size_t size, long count)
{
	MPI_Request request;
	MPI_Neighbor_alltoall_init(out, (int)size, MPI_CHAR, in, (int)size, MPI_CHAR, grid, MPI_INFO_NULL, &request);
	double begin = now();
	for (long i = 0; i < count; i++) {
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	double took = now() - begin;
	MPI_Request_free(&request);
	return took;
}

static double by_hand(size_t size, long count)
{
	MPI_Request requests[2 * SIDES];
	int n = (int)size;
	double begin = now();
	for (long i = 0; i < count; i++) {
		for (int s = 0; s < SIDES; s++)
			MPI_Irecv(in + s * size, n, MPI_CHAR, from[s], s ^ 1, grid, &requests[s]);
		for (int s = 0; s < SIDES; s++)
			MPI_Isend(out + s * size, n, MPI_CHAR, to[s], s, grid, &requests[SIDES + s]);
		MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
	}
	return now() - begin;
}

static double touched(size_t size, long count)
{
	volatile uint64_t sink = 0;
	int n = (int)size;
	double begin = now();
	for (long i = 0; i < count; i++) {
		bench_write((uint64_t *)out, SIDES * size, (uint64_t)i);
		MPI_Neighbor_alltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, grid);
		sink += bench_sum((uint64_t *)in, SIDES * size);
	}
	return now() - begin;
}

static double in_parts(size_t size, long count)
{
	MPI_Request requests[2];
	MPI_Count each = (MPI_Count)(size / PARTS);
	MPI_Psend_init(out, PARTS, each, MPI_CHAR, ring_next, TAG, grid, MPI_INFO_NULL, &requests[0]);
	MPI_Precv_init(in, PARTS, each, MPI_CHAR, ring_before, TAG, grid, MPI_INFO_NULL, &requests[1]);
	double begin = now();
	for (long i = 0; i < count; i++) {
		MPI_Startall(2, requests);
		for (int p = 0; p < PARTS; p++) {
			if (compute > 0)
				bench_compute(compute);
			MPI_Pready(p, requests[0]);
		}
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	double took = now() - begin - (double)count * PARTS * compute;
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	return took;
}

static double whole(size_t size, long count)
{
	MPI_Request requests[2];
	MPI_Send_init(out, (int)size, MPI_CHAR, ring_next, TAG, grid, &requests[0]);
	MPI_Recv_init(in, (int)size, MPI_CHAR, ring_before, TAG, grid, &requests[1]);
	double begin = now();
	for (long i = 0; i < count; i++) {
		MPI_Start(&requests[1]);
		for (int p = 0; p < PARTS && compute > 0; p++)
			bench_compute(compute);
		MPI_Start(&requests[0]);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	double took = now() - begin - (double)count * PARTS * compute;
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	return took;
}

static void measure(const char *variant, bench_body *body, size_t size)
{
	struct spread s = bench_measure(body, size, 1);
	if (bench.rank == 0)
		emit(bench.name, variant, size, scaled(s, body == cart_shift ? 1e9 : 1e6), body == cart_shift ? "ns" : "us");
}

/* What neighbour `s` has sent here. Where it is the neighbour on the other side too, libraries differ about which of its two
 * messages is which, and either does. */
static void check_side(const char *got, size_t size, int s, int same)
{
	int seed = 8 * from[s] + (same ? 0 : s ^ 1);
	if (from[s] == from[s ^ 1] && !same && size > 0) {
		char first;
		bench_fill(&first, 1, seed);
		if (*got != first)
			seed = 8 * from[s] + s;
	}
	bench_check(got, size, seed);
}

/* Exchanges with all four neighbours bring what these sent. */
static void exchange(const char *variant, bench_body *body, size_t size, int same)
{
	if (!bench_wanted(variant))
		return;
	for (int s = 0; s < SIDES; s++) {
		bench_fill(out + s * size, size, 8 * bench.rank + (same ? 0 : s));
		bench_fill(in + s * size, size, -1);
	}
	body(size, 1);
	for (int s = 0; s < SIDES; s++)
		check_side(in + s * size, size, s, same);
	measure(variant, body, size);
}

static void partitions(size_t size)
{
	if (!bench_wanted("parts") && !bench_wanted("computed") && !bench_wanted("whole") && !bench_wanted("plain"))
		return;
	bench_fill(out, size, bench.rank);
	bench_fill(in, size, -1);
	compute = 0;
	in_parts(size, 1);
	bench_check(in, size, ring_before);
	struct spread s = bench_measure(in_parts, size, 1);
	if (bench.rank == 0)
		emit(bench.name, "parts", size, scaled(s, 1e6), "us");
	measure("plain", whole, size);
	compute = bench_share(s.mid);
	measure("computed", in_parts, size);
	measure("whole", whole, size);
	compute = 0;
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "neighbours", 1, 16, 1 << 20);
	int dims[2] = { 0, 0 }, closed[2] = { 1, 1 };
	MPI_Dims_create(bench.ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, closed, 0, &grid);
	for (int d = 0; d < 2; d++) {
		MPI_Cart_shift(grid, d, 1, &from[2 * d], &from[2 * d + 1]);
		to[2 * d] = from[2 * d];
		to[2 * d + 1] = from[2 * d + 1];
	}
	ring_next = (bench.rank + 1) % bench.ranks;
	ring_before = (bench.rank + bench.ranks - 1) % bench.ranks;
	out = bench_buffer(SIDES * bench.max);
	in = bench_buffer(SIDES * bench.max);
	if (bench_wanted("cart_shift"))
		measure("cart_shift", cart_shift, 0);
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size)) {
		exchange("alltoall", alltoall, size, 0);
		exchange("allgather", allgather, size, 1);
		exchange("persistent", persistent, size, 0);
		exchange("by hand", by_hand, size, 0);
		if (bench_wanted("touched"))
			measure("touched", touched, size);
		if (size % PARTS == 0)
			partitions(size);
	}
	MPI_Comm_free(&grid);
	return bench_stop();
}
