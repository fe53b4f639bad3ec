/* Messages between two cores that are near, and between two that are far. Virtual machines are moved from one second to
 * the next, so a flag between the two processes, without MPI, is handed to and fro before and after each group of rounds, and
 * a group counts for what both say, or not at all. Value of a variant: the median round of a group, and its median over
 * the groups. `halo`: both write, exchange and read; `pingpong`: there or back, and `touched`: with the data written and
 * read; `alltoall`: a round as `halo`, of that size per rank; `stream`: one message of 16 in flight. */
#define _GNU_SOURCE
#include "bench.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 100, GROUPS = 4000, LEAST = 3, FLAGS = 50, WINDOW = 16, APART = 64 };
/* Seconds of a flag one way: one line between cores that share a cache takes 30 ns, between others 160. */
static const double FAR = 0.1e-6;

static uint64_t *out, *in;
static atomic_long *flags;
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

/* A page that both processes map: rank 0's, which rank 1 finds by its descriptor. */
static void share_flags(void)
{
	long where[2] = { getpid(), 0 };
	char path[64];
	int file = -1;
	if (bench.rank == 0) {
		file = memfd_create("flags", 0);
		if (file < 0 || ftruncate(file, 4096) != 0)
			bench_fail("no memory for the flags");
		where[1] = file;
		MPI_Send(where, 2, MPI_LONG, 1, 5, MPI_COMM_WORLD);
	} else {
		MPI_Recv(where, 2, MPI_LONG, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		snprintf(path, sizeof path, "/proc/%ld/fd/%ld", where[0], where[1]);
		file = open(path, O_RDWR);
		if (file < 0)
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	flags = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (flags == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 1);
	bench_sync();
}

/* Whether the cores are far from each other now. */
static int are_far(void)
{
	static long value;
	double took[3];
	for (int t = 0; t < 3; t++) {
		double begin = now();
		for (int i = 0; i < FLAGS; i++) {
			value++;
			if (bench.rank == 0)
				atomic_store_explicit(&flags[0], value, memory_order_release);
			while (atomic_load_explicit(&flags[bench.rank == 0 ? APART : 0], memory_order_acquire) != value)
				;
			if (bench.rank == 1)
				atomic_store_explicit(&flags[APART], value, memory_order_release);
		}
		took[t] = (now() - begin) / FLAGS / 2;
	}
	return spread_of(took, 3).mid > FAR;
}

static void measure(const struct variant *v, size_t size)
{
	static double group[2][GROUPS];
	int groups[2] = { 0, 0 };
	double begin = now();
	uint64_t seed = 0;
	/* Rank 0's clock decides. */
	while (bench_share(now() - begin) < bench.seconds && groups[0] < GROUPS && groups[1] < GROUPS) {
		double took[ROUNDS];
		int before = are_far();
		for (int i = 0; i < ROUNDS; i++) {
			double start = now();
			v->round(size, ++seed);
			took[i] = (now() - start) / v->messages;
		}
		if (are_far() == before)
			group[before][groups[before]++] = spread_of(took, ROUNDS).mid;
	}
	for (int far = 0; far < 2 && bench.rank == 0; far++) {
		char name[32];
		snprintf(name, sizeof name, "%s, %s", v->name, far ? "far" : "near");
		if (groups[far] >= LEAST)
			emit("distance", name, size, scaled(spread_of(group[far], groups[far]), 1e6), "us");
	}
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "distance", 2, 1 << 10, 256 << 10);
	if (bench.min % 32 != 0)
		bench_fail("sizes must be multiples of 32 bytes");
	out = (uint64_t *)bench_buffer(bench.max);
	in = (uint64_t *)bench_buffer(bench.max);
	share_flags();
	for (size_t k = 0; k < sizeof variants / sizeof *variants; k++)
		if (bench_wanted(variants[k].name))
			for (size_t size = bench_first(); size <= bench.max; size = 2 * size)
				measure(&variants[k], size);
	return bench_stop();
}
