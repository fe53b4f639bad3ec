/* The one-sided benchmarks of the OSU Micro-Benchmarks as their descriptions define them, written anew: what people compare libraries by.
 * Rank 0 is the origin, rank 1 the target, 1 B to 1 MB (`--max 4M`: as the suite does); what is said is a time of rank 0.
 *
 * `put_latency`, `get_latency`, `acc_latency`, `get_acc_latency`: an operation and its synchronisation, us; `fop_latency`,
 * `cas_latency`: MPI_Fetch_and_op and MPI_Compare_and_swap, of 8 bytes. `put_bw`, `get_bw`: 64 operations, then the synchronisation,
 * GB/s; `put_bibw`: both ranks at once. Accumulates are MPI_SUM of MPI_SIGNED_CHAR, for lengths begin with a byte.
 *
 * The variant is how the window was made and the synchronisation. The suite's default is `allocate, flush`, of `put_bibw`
 * `allocate, pscw`; windows of MPI_Win_create and MPI_Win_create_dynamic are measured with fewer of them. `flush`, `flush_local`: within a
 * lock; `lock`, `lock_all`: lock, operation, unlock; `pscw`: start, operation, complete, while the target posts and waits; `fence`: the one behind the
 * operation. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 64, ROOM = 16 << 20 };

enum verb { PUT, GET, SUM, FETCH_SUM, FETCH, SWAP };
enum sync { FLUSH, FLUSH_LOCAL, LOCK, LOCK_ALL, PSCW, FENCE, SYNCS };
enum origin { ALLOCATE, CREATE, DYNAMIC, ORIGINS };

static const char *const variants[ORIGINS][SYNCS] = {
	{ "allocate, flush", "allocate, flush_local", "allocate, lock", "allocate, lock_all", "allocate, pscw", "allocate, fence" },
	{ "create, flush", NULL, "create, lock", NULL, "create, pscw", "create, fence" },
	{ "dynamic, flush", NULL, "dynamic, lock", NULL, "dynamic, pscw", "dynamic, fence" },
};

static const struct definition {
	const char *name;
	enum verb verb;
	int messages; /* before a synchronisation */
	int both;     /* ranks are origins */
} definitions[] = {
	{ "put_latency", PUT, 1, 0 },
	{ "get_latency", GET, 1, 0 },
	{ "acc_latency", SUM, 1, 0 },
	{ "get_acc_latency", FETCH_SUM, 1, 0 },
	{ "fop_latency", FETCH, 1, 0 },
	{ "cas_latency", SWAP, 1, 0 },
	{ "put_bw", PUT, AT_ONCE, 0 },
	{ "get_bw", GET, AT_ONCE, 0 },
	{ "put_bibw", PUT, AT_ONCE, 1 },
};

static const struct definition *d;
static enum sync sync_by;
static MPI_Win win;
static MPI_Group other;
static char *window, *out, *in;
static MPI_Aint start; /* of the target's memory, as displacements count it */
static int peer;

static void operate(size_t size, int message)
{
	int n = (int)size;
	size_t places = ROOM / (size ? size : 1), at = (size_t)message % places * size;
	MPI_Aint there = start + (MPI_Aint)at;
	switch (d->verb) {
	case PUT:
		MPI_Put(out + at, n, MPI_CHAR, peer, there, n, MPI_CHAR, win);
		break;
	case GET:
		MPI_Get(in + at, n, MPI_CHAR, peer, there, n, MPI_CHAR, win);
		break;
	case SUM:
		MPI_Accumulate(out, n, MPI_SIGNED_CHAR, peer, there, n, MPI_SIGNED_CHAR, MPI_SUM, win);
		break;
	case FETCH_SUM:
		MPI_Get_accumulate(out, n, MPI_SIGNED_CHAR, in, n, MPI_SIGNED_CHAR, peer, there, n, MPI_SIGNED_CHAR, MPI_SUM, win);
		break;
	case FETCH:
		MPI_Fetch_and_op(out, in, MPI_LONG, peer, there, MPI_SUM, win);
		break;
	case SWAP:
		MPI_Compare_and_swap(out, out + sizeof(long), in, MPI_LONG, peer, there, win);
		break;
	}
}

static int is_origin(void)
{
	return bench.rank == 0 || d->both;
}

static int is_target(void)
{
	return bench.rank == 1 || d->both;
}

static void begin_epoch(void)
{
	if (sync_by == LOCK && is_origin())
		MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win);
	if (sync_by == LOCK_ALL && is_origin())
		MPI_Win_lock_all(0, win);
	if (sync_by == PSCW && is_target())
		MPI_Win_post(other, 0, win);
	if (sync_by == PSCW && is_origin())
		MPI_Win_start(other, 0, win);
}

static void end_epoch(void)
{
	switch (sync_by) {
	case FLUSH:
		MPI_Win_flush(peer, win);
		break;
	case FLUSH_LOCAL:
		MPI_Win_flush_local(peer, win);
		break;
	case LOCK:
		MPI_Win_unlock(peer, win);
		break;
	case LOCK_ALL:
		MPI_Win_unlock_all(win);
		break;
	case PSCW:
		if (is_origin())
			MPI_Win_complete(win);
		if (is_target())
			MPI_Win_wait(win);
		break;
	default:
		MPI_Win_fence(0, win);
		break;
	}
}

static double repeat(size_t size, long count)
{
	int holds = (sync_by == FLUSH || sync_by == FLUSH_LOCAL) && is_origin(), is_active = sync_by == PSCW || sync_by == FENCE;
	if (holds)
		MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win);
	if (sync_by == FENCE)
		MPI_Win_fence(0, win);
	double begin = now();
	for (long i = 0; i < count && (is_active || is_origin()); i++) {
		begin_epoch();
		for (int message = 0; message < d->messages && is_origin(); message++)
			operate(size, message);
		end_epoch();
	}
	double took = now() - begin;
	if (holds)
		MPI_Win_unlock(peer, win);
	if (sync_by == FENCE)
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	return took;
}

/* What one repetition leaves behind is what it should be. */
static void verify(size_t size)
{
	int moves = d->verb == PUT || d->verb == GET, is_word = d->verb == FETCH || d->verb == SWAP;
	size_t all = moves && size * (size_t)d->messages <= ROOM ? size * (size_t)d->messages : size;
	bench_fill(out, all, bench.rank);
	memset(in, 0, all);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, bench.rank, 0, win);
	if (d->verb == GET)
		bench_fill(window, all, bench.rank);
	else
		memset(window, 0, all);
	MPI_Win_unlock(bench.rank, win);
	if (is_word)
		memset(out + sizeof(long), 0, sizeof(long)); /* what is compared */
	bench_sync();
	repeat(size, 1);
	bench_sync();
	MPI_Win_lock(MPI_LOCK_SHARED, bench.rank, 0, win);
	if (d->verb == GET && is_origin())
		bench_check(in, all, peer);
	else if (d->verb != GET && is_target())
		bench_check(window, all, peer);
	MPI_Win_unlock(bench.rank, win);
	for (size_t i = 0; i < size && bench.rank == 0 && !moves; i++)
		if (in[i] != 0)
			bench_fail("what was fetched is wrong");
	/* A swap succeeds every time. */
	if (d->verb == SWAP)
		memcpy(out + sizeof(long), out, sizeof(long));
	bench_sync();
}

static void measure(const char *variant, size_t size)
{
	verify(size);
	struct spread s = bench_measure(repeat, size, 0);
	if (bench.rank != 0)
		return;
	if (d->messages == 1)
		emit(d->name, variant, size, scaled(s, 1e6), "us");
	else
		emit(d->name, variant, size, rate_of(s, (1 + d->both) * d->messages * (double)size * 1e-9), "GB/s");
}

static void make_window(enum origin origin)
{
	MPI_Aint own = 0;
	if (origin == ALLOCATE)
		MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
	else
		window = bench_buffer(ROOM);
	if (origin == CREATE)
		MPI_Win_create(window, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (origin == DYNAMIC) {
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		MPI_Win_attach(win, window, ROOM);
		MPI_Get_address(window, &own);
	}
	MPI_Sendrecv(&own, 1, MPI_AINT, peer, 0, &start, 1, MPI_AINT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void free_window(enum origin origin)
{
	char *own = window;
	bench_sync();
	if (origin == DYNAMIC)
		MPI_Win_detach(win, window);
	MPI_Win_free(&win);
	if (origin != ALLOCATE)
		free(own);
}

static void measure_all(enum origin origin)
{
	for (size_t k = 0; k < sizeof definitions / sizeof *definitions; k++) {
		d = &definitions[k];
		if (!bench_wanted(d->name))
			continue;
		int is_word = d->verb == FETCH || d->verb == SWAP;
		for (int by = d->both ? PSCW : FLUSH; by < SYNCS; by++) {
			if (!variants[origin][by])
				continue;
			sync_by = (enum sync)by;
			if (is_word)
				measure(variants[origin][by], sizeof(long));
			for (size_t size = bench_first(); size <= bench.max && !is_word; size = bench_next(size))
				measure(variants[origin][by], size);
		}
	}
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "definitions_rma", 2, 1, 1 << 20);
	if (bench.ranks != 2 || bench.max > ROOM)
		bench_fail("needs exactly two ranks, and sizes up to 16 MB");
	bench.seconds /= 4; /* for there are many points */
	MPI_Group world;
	peer = 1 - bench.rank;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &peer, &other);
	out = bench_buffer(ROOM);
	in = bench_buffer(ROOM);
	for (int origin = ALLOCATE; origin < ORIGINS; origin++) {
		make_window((enum origin)origin);
		measure_all((enum origin)origin);
		free_window((enum origin)origin);
	}
	MPI_Group_free(&other);
	MPI_Group_free(&world);
	return bench_stop();
}
