/* What an application loses to its messages: rounds in which every rank writes what it sends,
 * starts the exchange, computes, completes the exchange and reads what it got. Lost is how long
 * such a round takes beyond the computation of the rank that computes longest, for the job as a
 * whole: from the last rank's end of one round to the last rank's end of the next. What the computation takes
 * is measured on all ranks at once, shortly before, for a virtual machine's cores are disturbed now and then. Writing and
 * reading count (`alone` is a round of just these), since a message that leaves its data in the
 * wrong cache is paid for there; so does what a library's threads take from the computation. Two ranks' rounds are told apart
 * by whether their cores were near each other or far.
 *
 * The clocks of all ranks must agree, that is ranks of one host. */
#include "bench.h"
#include "cores.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUP = 10, GROUPS = 40, LEAST = 4, WARM_UP = 12, SETTLE = 2, MOST_PEERS = 2, MOST_REQUESTS = 4 };
/* The state of a group in which it changed. */
enum { CHANGED = CORES_STATES };

static uint64_t *out, *in;

/* Where the ranks of a round are to be computing, and for how long. */
struct load {
	int us;      /* on most ranks */
	int percent; /* by how much longer on the last rank */
};

static void check(const uint64_t *words, size_t size, uint64_t seed)
{
	if (bench_sum(words, size) != bench_sum_of(size, seed))
		bench_fail("received data is wrong");
}

/* What a rank sends in a round; small enough for sums of it to be exact as doubles too. */
static uint64_t seed_of(int rank, int round)
{
	return (uint64_t)rank * 1000003 + (uint64_t)round * 17;
}

/* The ranks a rank exchanges with: its neighbours in a ring, or the one other rank. */
static int peers(int *peer)
{
	peer[0] = (bench.rank + 1) % bench.ranks;
	peer[1] = (bench.rank + bench.ranks - 1) % bench.ranks;
	return bench.ranks > 2 ? 2 : 1;
}

/* Peers' parts lie one behind the other. */
static uint64_t *part(uint64_t *words, size_t size, int at)
{
	return words + (size_t)at * (size / 8);
}

static void write_all(size_t size, int round, int parts)
{
	for (int at = 0; at < parts; at++)
		bench_write(part(out, size, at), size, seed_of(bench.rank, round));
}

static void alone(size_t size, int round, double seconds)
{
	int peer[MOST_PEERS], n = peers(peer);
	write_all(size, round, n);
	if (seconds > 0)
		bench_compute(seconds);
	for (int at = 0; at < n; at++)
		check(part(out, size, at), size, seed_of(bench.rank, round));
}

static void halo(size_t size, int round, double seconds)
{
	MPI_Request request[MOST_REQUESTS];
	int peer[MOST_PEERS], n = peers(peer);
	write_all(size, round, n);
	for (int at = 0; at < n; at++)
		MPI_Irecv(part(in, size, at), (int)size, MPI_BYTE, peer[at], 1, MPI_COMM_WORLD, &request[at]);
	for (int at = 0; at < n; at++)
		MPI_Isend(part(out, size, at), (int)size, MPI_BYTE, peer[at], 1, MPI_COMM_WORLD, &request[n + at]);
	if (seconds > 0)
		bench_compute(seconds);
	MPI_Waitall(2 * n, request, MPI_STATUSES_IGNORE);
	for (int at = 0; at < n; at++)
		check(part(in, size, at), size, seed_of(peer[at], round));
}

/* With blocking calls nothing is under way during the computation. */
static void blocking(size_t size, int round, double seconds)
{
	int peer[MOST_PEERS], n = peers(peer);
	write_all(size, round, n);
	if (seconds > 0)
		bench_compute(seconds);
	for (int at = 0; at < n; at++)
		MPI_Sendrecv(part(out, size, at), (int)size, MPI_BYTE, peer[at], 2, part(in, size, at), (int)size,
		             MPI_BYTE, peer[n - 1 - at], 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int at = 0; at < n; at++)
		check(part(in, size, at), size, seed_of(peer[n - 1 - at], round));
}

static void ibcast(size_t size, int round, double seconds)
{
	MPI_Request request;
	int root = round % bench.ranks;
	if (bench.rank == root)
		bench_write(in, size, seed_of(root, round));
	MPI_Ibcast(in, (int)size, MPI_BYTE, root, MPI_COMM_WORLD, &request);
	if (seconds > 0)
		bench_compute(seconds);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	check(in, size, seed_of(root, round));
}

static void iallreduce(size_t size, int round, double seconds)
{
	MPI_Request request;
	uint64_t sum = 0;
	bench_write(out, size, seed_of(bench.rank, round));
	MPI_Iallreduce(out, in, (int)(size / 8), MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD, &request);
	if (seconds > 0)
		bench_compute(seconds);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int rank = 0; rank < bench.ranks; rank++)
		sum = seed_of(rank, round) > sum ? seed_of(rank, round) : sum;
	check(in, size, sum);
}

static void ialltoall(size_t size, int round, double seconds)
{
	MPI_Request request;
	write_all(size, round, bench.ranks);
	MPI_Ialltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, MPI_COMM_WORLD, &request);
	if (seconds > 0)
		bench_compute(seconds);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int rank = 0; rank < bench.ranks; rank++)
		check(part(in, size, rank), size, seed_of(rank, round));
}

static const struct variant {
	const char *name;
	void (*round)(size_t size, int round, double seconds);
} variants[] = { { "alone", alone }, { "halo", halo }, { "blocking", blocking },
	         { "ibcast", ibcast }, { "iallreduce", iallreduce }, { "ialltoall", ialltoall } };

static int state_now(void)
{
	return bench.ranks == 2 ? cores_state() : 0;
}

/* Groups of rounds: when each round ended, and before them the one that came first; how long the computation took as often without
 * a message, and the state of the cores. */
struct group {
	double end[GROUP + 1];
	double computing[GROUP];
};

static void compute_alone(double seconds, double *took)
{
	for (int i = 0; i < GROUP; i++) {
		double begin = now();
		took[i] = 0;
		if (seconds > 0) {
			bench_compute(seconds);
			took[i] = now() - begin;
		}
	}
	/* With more ranks than cores the computations of those that share one follow each other, each as if it were alone. */
	int turns = (bench.ranks + bench.cores - 1) / bench.cores;
	if (turns == 1)
		return;
	double least = spread_of(took, GROUP).low;
	for (int i = 0; i < GROUP; i++)
		took[i] = turns * least;
}

/* Gives the state of the cores. */
static int run_group(const struct variant *v, size_t size, double seconds, struct group *group, int *round)
{
	int before = state_now();
	compute_alone(seconds, group->computing);
	for (int i = -SETTLE; i <= GROUP; i++) {
		v->round(size, (*round)++, seconds);
		if (i >= 0)
			group->end[i] = now();
	}
	return state_now() == before ? before : CHANGED;
}

/* What was lost in the rounds of groups in one state. `worst` has the last end and the longest computation of each. */
static void tell(const char *name, size_t size, struct group *worst, const int *state, int groups, int which)
{
	static double lost[GROUPS * GROUP];
	int rounds = 0;
	for (int g = 0; g < groups; g++) {
		double computing = state[g] == which ? spread_of(worst[g].computing, GROUP).mid : 0;
		for (int i = 0; i < GROUP && state[g] == which; i++)
			lost[rounds++] = worst[g].end[i + 1] - worst[g].end[i] - computing;
	}
	if (rounds > 0)
		emit("lost", bench.ranks == 2 ? cores_name(name, which) : name, size, scaled(spread_of(lost, rounds), 1e6), "us");
}

static void measure(const struct variant *v, size_t size, struct load load)
{
	static struct group own[GROUPS], worst[GROUPS];
	int state[GROUPS], groups = 0, round = 0;
	double seconds = 1e-6 * load.us * (bench.rank == bench.ranks - 1 ? 1 + 0.01 * load.percent : 1);
	bench_sync();
	double begin = now();
	while (round < WARM_UP)
		v->round(size, round++, seconds);
	/* Rank 0's clock decides. */
	while (groups < LEAST || (groups < GROUPS && bench_share(now() - begin) < bench.seconds)) {
		state[groups] = run_group(v, size, seconds, &own[groups], &round);
		groups++;
	}
	MPI_Reduce(own, worst, groups * (int)(sizeof *own / sizeof(double)), MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (bench.rank != 0)
		return;
	char name[80];
	if (load.percent)
		snprintf(name, sizeof name, "%s, %d us, one rank %d %% longer", v->name, load.us, load.percent);
	else
		snprintf(name, sizeof name, "%s, %d us", v->name, load.us);
	for (int which = 0; which < (bench.ranks == 2 ? CORES_STATES : 1); which++)
		tell(name, size, worst, state, groups, which);
}

int main(int argc, char **argv)
{
	static const int computing_us[] = { 0, 20, 200, 1000 }, longer_percent[] = { 0, 10, 30, 50 };
	bench_start(&argc, &argv, "lost", 2, 1 << 10, 4 << 20);
	out = (uint64_t *)bench_buffer(bench.max * (size_t)bench.ranks);
	in = (uint64_t *)bench_buffer(bench.max * (size_t)bench.ranks);
	if (bench.min % 32 != 0)
		bench_fail("sizes must be multiples of 32 bytes");
	bench_compute(0);
	if (bench.ranks == 2)
		cores_start();
	for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
		if (!bench_wanted(variants[k].name))
			continue;
		for (size_t size = bench_first(); size <= bench.max; size = bench.quick ? bench_next(size) : 4 * size)
			for (int u = 0; u < 4; u++)
				for (int p = 0; p < 4; p++) {
					struct load load = { computing_us[u], longer_percent[p] };
					if ((load.us > 0 || load.percent == 0) && (k != 0 || load.us == 0))
						measure(&variants[k], size, load);
				}
	}
	return bench_stop();
}
