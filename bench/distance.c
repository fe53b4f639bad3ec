/* Messages between two cores that are near, and between two that are far (cores.h). Value of a variant: the median round of a group, and its median over
 * the groups. `halo`: both write, exchange and read; `pingpong`: there or back, and `touched`: with the data written and
 * read; `alltoall`: a round as `halo`, of that size per rank; `stream`: one message of 16 in flight. */
#include "bench.h"
#include "cores.h"

enum { ROUNDS = 100, GROUPS = 4000, LEAST = 3, WINDOW = 16 };

static uint64_t *out, *in;
static volatile uint64_t sink;

static void check(size_t size, uint64_t seed)
{
	sink = bench_sum(in, size);
	if (sink != bench_sum_of(size, seed))
		bench_fail("received data is wrong");
}

static void halo(size_t size, uint64_t seed)
{
	MPI_Request request[2];
	bench_write(out, size, seed);
	MPI_Irecv(in, (int)size, MPI_BYTE, !bench.rank, 1, MPI_COMM_WORLD, &request[0]);
	MPI_Isend(out, (int)size, MPI_BYTE, !bench.rank, 1, MPI_COMM_WORLD, &request[1]);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	check(size, seed);
}

static void pass(size_t size, uint64_t seed, int touches)
{
	for (int leg = 0; leg < 2; leg++) {
		if (leg == bench.rank) {
			if (touches)
				bench_write(out, size, seed);
			MPI_Send(out, (int)size, MPI_BYTE, !bench.rank, 2, MPI_COMM_WORLD);
		} else {
			MPI_Recv(in, (int)size, MPI_BYTE, !bench.rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (touches)
				check(size, seed);
		}
	}
}

static void pingpong(size_t size, uint64_t seed)
{
	pass(size, seed, 0);
}

static void touched(size_t size, uint64_t seed)
{
	pass(size, seed, 1);
}

static void alltoall(size_t size, uint64_t seed)
{
	bench_write(out, size, seed);
	MPI_Alltoall(out, (int)(size / 2), MPI_BYTE, in, (int)(size / 2), MPI_BYTE, MPI_COMM_WORLD);
	for (size_t i = 0; i < size / 8; i += 8)
		sink = in[i];
}

static void stream(size_t size, uint64_t seed)
{
	MPI_Request request[WINDOW];
	(void)seed;
	for (int i = 0; i < WINDOW; i++)
		if (bench.rank == 0)
			MPI_Isend(out, (int)size, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &request[i]);
		else
			MPI_Irecv(in, (int)size, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &request[i]);
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	if (bench.rank == 0)
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
}

static const struct variant {
	const char *name;
	void (*round)(size_t size, uint64_t seed);
	int messages; /* one after the other, in a round */
} variants[] = { { "halo", halo, 1 }, { "pingpong", pingpong, 2 }, { "touched", touched, 2 },
	         { "alltoall", alltoall, 1 }, { "stream", stream, WINDOW } };

static void measure(const struct variant *v, size_t size)
{
	static double group[CORES_STATES][GROUPS];
	int groups[CORES_STATES] = { 0 };
	double begin = now();
	uint64_t seed = 0;
	/* Rank 0's clock decides. */
	while (bench_share(now() - begin) < bench.seconds && groups[CORES_NEAR] < GROUPS && groups[CORES_FAR] < GROUPS) {
		double took[ROUNDS];
		int before = cores_state();
		for (int i = 0; i < ROUNDS; i++) {
			double start = now();
			v->round(size, ++seed);
			took[i] = (now() - start) / v->messages;
		}
		if (cores_state() == before)
			group[before][groups[before]++] = spread_of(took, ROUNDS).mid;
	}
	for (int state = 0; state < CORES_STATES && bench.rank == 0; state++)
		if (groups[state] >= LEAST)
			emit("distance", cores_name(v->name, state), size, scaled(spread_of(group[state], groups[state]), 1e6), "us");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "distance", 2, 1 << 10, 256 << 10);
	if (bench.min % 32 != 0)
		bench_fail("sizes must be multiples of 32 bytes");
	out = (uint64_t *)bench_buffer(bench.max);
	in = (uint64_t *)bench_buffer(bench.max);
	cores_start();
	for (size_t k = 0; k < sizeof variants / sizeof *variants; k++)
		if (bench_wanted(variants[k].name))
			for (size_t size = bench_first(); size <= bench.max; size = 2 * size)
				measure(&variants[k], size);
	return bench_stop();
}
