/* One-sided communication from rank 0 to rank 1, 8 B to 4 MB. The times are those of rank 0.
 *
 * `put`, `get`, `accumulate` and `get_accumulate` (MPI_SUM of doubles): one operation and its synchronisation, in us, as variant `flush`
 * (in an epoch of MPI_Win_lock_all), `fence`, `pscw` (rank 1 posts and waits) or `lock` (lock, operation, unlock);
 * `fetch_add` and `swap` the same with 8 bytes. `idle`: no operation, the synchronisation alone.
 * `rput` and `rget`: MPI_Rput, MPI_Rget and the wait for the request in an epoch of MPI_Win_lock_all, as variant `wait`; with a flush behind it,
 * or a lock before it and the unlock behind it, as above.
 * `rate`, millions of operations per second, and `bandwidth`, GB/s: 64 operations before each flush, those with requests waited for together.
 * `shared`: a shared lock, taken and given back.
 * Patterns of scheduled epochs («004», docs/protocols/epochs.md): `pattern1` is 16 Puts and 16 Gets in an
 * epoch, `alternating` or `puts_first`, of `size` bytes each; `pattern2` is 8 Puts of 8 bytes and one of `size`,
 * `small_first` or `large_first`; each with fence and with pscw, us per epoch.
 * `mixed`: an accumulate of 8 bytes and a Put of `size` bytes in an epoch of each kind, `sum first` or `put first`.
 * `many`: `size` operations of 8 bytes each in an epoch, in different places of a window of MPI_Win_create, us per epoch.
 * `busy`: a Put and flush to a target that computes for 2 ms outside MPI (`computes`), and to one that waits in MPI (`free`), us.
 * By two ranks and by more, with their number for a size, in us. `counter`: all add to one counter of rank 0, per addition and
 * rank: `fetch_add`, `swap` (until it succeeds), `lock` (exclusive, get, put). `ring`: each puts 8 bytes to the next one, and a
 * fence, in a window of MPI_Win_allocate or MPI_Win_create. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 64, MANY = 16, SMALL = 8, APART = 64, MOST = 256 };

enum verb { PUT, GET, ACCUMULATE, GET_ACCUMULATE, RPUT, RGET, FETCH_ADD, SWAP, IDLE };
static const char *const verbs[] = { "put", "get", "accumulate", "get_accumulate", "rput", "rget", "fetch_add", "swap", "idle" };
enum way { FLUSH, FENCE, PSCW, LOCK, WAIT };
static const char *const ways[] = { "flush", "fence", "pscw", "lock", "wait" };

static MPI_Win win;
static MPI_Group peer;
static char *window, *mine;
static enum verb verb;
static enum way way;
static MPI_Request requests[BATCH];
static int begun;

/* Operations with requests have to be waited for, with `wait_all`. */
static void operate_at(enum verb what, char *at, size_t size, size_t where)
{
	switch (what) {
	case PUT:
		MPI_Put(at, (int)size, MPI_BYTE, 1, (MPI_Aint)where, (int)size, MPI_BYTE, win);
		break;
	case GET:
		MPI_Get(at, (int)size, MPI_BYTE, 1, (MPI_Aint)where, (int)size, MPI_BYTE, win);
		break;
	case ACCUMULATE:
		MPI_Accumulate(at, (int)(size / 8), MPI_DOUBLE, 1, (MPI_Aint)where, (int)(size / 8), MPI_DOUBLE, MPI_SUM, win);
		break;
	case GET_ACCUMULATE: {
		int count = (int)(size / 8);
		MPI_Get_accumulate(at, count, MPI_DOUBLE, at + bench.max, count, MPI_DOUBLE, 1, (MPI_Aint)where, count, MPI_DOUBLE,
		                   MPI_SUM, win);
		break;
	}
	case RPUT:
		MPI_Rput(at, (int)size, MPI_BYTE, 1, (MPI_Aint)where, (int)size, MPI_BYTE, win, &requests[begun++]);
		break;
	case RGET:
		MPI_Rget(at, (int)size, MPI_BYTE, 1, (MPI_Aint)where, (int)size, MPI_BYTE, win, &requests[begun++]);
		break;
	case FETCH_ADD: {
		static long add = 1, before;
		MPI_Fetch_and_op(&add, &before, MPI_LONG, 1, (MPI_Aint)where, MPI_SUM, win);
		break;
	}
	case SWAP: {
		static long next = 0, expected = 0, before;
		MPI_Compare_and_swap(&next, &expected, &before, MPI_LONG, 1, (MPI_Aint)where, win);
		break;
	}
	case IDLE:
		break;
	}
}

static void wait_all(void)
{
	if (begun == 1)
		MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	else if (begun)
		MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
	begun = 0;
}

/* Begins the epoch of rank 0 and rank 1. */
static void begin(void)
{
	if (way == PSCW && bench.rank == 1)
		MPI_Win_post(peer, 0, win);
	else if (way == PSCW)
		MPI_Win_start(peer, 0, win);
	else if (way == LOCK && bench.rank == 0)
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
}

static void end(void)
{
	if (way == FENCE)
		MPI_Win_fence(0, win);
	else if (way == PSCW && bench.rank == 1)
		MPI_Win_wait(win);
	else if (way == PSCW)
		MPI_Win_complete(win);
	else if (way == LOCK && bench.rank == 0)
		MPI_Win_unlock(1, win);
	else if (way == FLUSH && bench.rank == 0)
		MPI_Win_flush(1, win);
}

/* What is open around many epochs of a way. */
static void open_epoch(void)
{
	if ((way == FLUSH || way == WAIT) && bench.rank == 0)
		MPI_Win_lock_all(0, win);
	if (way == FENCE)
		MPI_Win_fence(0, win);
}

static void close_epoch(void)
{
	if ((way == FLUSH || way == WAIT) && bench.rank == 0)
		MPI_Win_unlock_all(win);
	if (way == FENCE)
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* As many epochs, in each of which rank 0 does this; of a passive target's its origin alone has any. */
static double epochs_of(void (*operate)(size_t), size_t size, long count)
{
	int is_active = way == FENCE || way == PSCW;
	open_epoch();
	double start = now();
	for (long i = 0; i < count && (is_active || bench.rank == 0); i++) {
		begin();
		if (bench.rank == 0)
			operate(size);
		end();
	}
	double took = now() - start;
	close_epoch();
	return took;
}

static void operate_one(size_t size)
{
	operate_at(verb, mine, size, 0);
	wait_all();
}

static double each(size_t size, long count)
{
	return epochs_of(operate_one, size, count);
}

static double batches(size_t size, long count)
{
	open_epoch();
	double start = now();
	for (long i = 0; i < count && bench.rank == 0; i++) {
		for (int j = 0; j < BATCH; j++)
			operate_at(verb, mine, size, 0);
		wait_all();
		MPI_Win_flush(1, win);
	}
	double took = now() - start;
	close_epoch();
	return took;
}

static double shared(size_t size, long count)
{
	(void)size;
	double start = now();
	for (long i = 0; i < count && bench.rank == 0; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
		MPI_Win_unlock(1, win);
	}
	return now() - start;
}

/* Puts and Gets of different parts of the window. */
static int puts_first;

static void operate_pattern1(size_t size)
{
	size_t room = bench.max;
	for (int j = 0; j < 2 * MANY; j++) {
		int is_put = puts_first ? j < MANY : j % 2 == 0;
		operate_at(is_put ? PUT : GET, mine + (is_put ? 0 : room), size, is_put ? 0 : room);
	}
}

static double pattern1(size_t size, long count)
{
	return epochs_of(operate_pattern1, size, count);
}

static int small_first;

static void operate_pattern2(size_t size)
{
	if (!small_first)
		operate_at(PUT, mine + APART, size, APART);
	for (size_t j = 0; j < SMALL; j++)
		operate_at(PUT, mine + 8 * j, 8, 8 * j);
	if (small_first)
		operate_at(PUT, mine + APART, size, APART);
}

static double pattern2(size_t size, long count)
{
	return epochs_of(operate_pattern2, size, count);
}

static int put_first;

static void operate_mixed(size_t size)
{
	for (int j = 0; j < 2; j++)
		if (j != put_first)
			operate_at(PUT, mine + APART, size, APART);
		else
			operate_at(ACCUMULATE, mine, sizeof(double), 0);
}

static double mixed(size_t size, long count)
{
	return epochs_of(operate_mixed, size, count);
}

static void operate_many(size_t operations)
{
	for (size_t j = 0; j < operations; j++)
		operate_at(verb, mine + APART * j, 8, APART * j);
}

static double many(size_t operations, long count)
{
	return epochs_of(operate_many, operations, count);
}

static int target_computes;

/* Of each period only the first Put and flush count: they come while the target computes. */
static double beside(size_t size, long count)
{
	double took = 0;
	way = FLUSH;
	open_epoch();
	for (long i = 0; i < count; i++) {
		double moment = bench_moment(0);
		bench_wait_until(moment);
		if (bench.rank == 0) {
			bench_compute(200e-6);
			double start = now();
			operate_at(PUT, mine, size, 0);
			MPI_Win_flush(1, win);
			took += now() - start;
		} else if (target_computes) {
			bench_compute(2e-3);
		}
	}
	close_epoch();
	return took;
}

static double counter_fetch(size_t size, long count)
{
	long one = 1, before;
	(void)size;
	MPI_Win_lock_all(0, win);
	double start = now();
	for (long i = 0; i < count; i++) {
		MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
	}
	double took = now() - start;
	MPI_Win_unlock_all(win);
	return took;
}

static double counter_swap(size_t size, long count)
{
	long next, before = 0, seen;
	(void)size;
	MPI_Win_lock_all(0, win);
	double start = now();
	for (long i = 0; i < count; i++)
		for (;;) {
			next = before + 1;
			MPI_Compare_and_swap(&next, &before, &seen, MPI_LONG, 0, 0, win);
			MPI_Win_flush(0, win);
			if (seen == before)
				break;
			before = seen;
		}
	double took = now() - start;
	MPI_Win_unlock_all(win);
	return took;
}

static double counter_lock(size_t size, long count)
{
	long value;
	(void)size;
	double start = now();
	for (long i = 0; i < count; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
		MPI_Win_flush(0, win);
		value++;
		MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
		MPI_Win_unlock(0, win);
	}
	return now() - start;
}

static double ring(size_t size, long count)
{
	int next = (bench.rank + 1) % bench.ranks;
	(void)size;
	MPI_Win_fence(0, win);
	double start = now();
	for (long i = 0; i < count; i++) {
		MPI_Put(mine, SMALL, MPI_BYTE, next, APART, SMALL, MPI_BYTE, win);
		MPI_Win_fence(0, win);
	}
	return now() - start;
}

static void report(const char *name, const char *variant, bench_body *body, size_t size, double factor, const char *unit)
{
	struct spread s = bench_measure(body, size, 0);
	if (bench.rank == 0)
		emit(name, variant, size, factor > 0 ? scaled(s, factor) : rate_of(s, -factor), unit);
}

static long counter_value(void)
{
	long value = 0;
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
	MPI_Win_unlock(0, win);
	return value;
}

/* That nothing is lost: `body` adds `count` on each rank. */
static void check_counter(bench_body *body)
{
	enum { COUNT = 200 };
	bench_sync();
	long before = counter_value();
	bench_sync();
	body(8, COUNT);
	bench_sync();
	if (counter_value() - before != (long)COUNT * bench.ranks)
		bench_fail("additions to the counter were lost");
	bench_sync();
}

static void counters(void)
{
	static const struct {
		const char *name;
		bench_body *body;
	} kinds[] = { { "fetch_add", counter_fetch }, { "swap", counter_swap }, { "lock", counter_lock } };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (bench_wanted(kinds[i].name)) {
			check_counter(kinds[i].body);
			report("counter", kinds[i].name, kinds[i].body, (size_t)bench.ranks, 1e6, "us");
		}
}

static void rings(void)
{
	if (!bench_wanted("ring"))
		return;
	report("ring", "allocate", ring, (size_t)bench.ranks, 1e6, "us");
	MPI_Win allocated = win;
	MPI_Win_create(window, 2 * APART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	report("ring", "create", ring, (size_t)bench.ranks, 1e6, "us");
	MPI_Win_free(&win);
	win = allocated;
}

static void epochs(void)
{
	static const enum verb kinds[] = { PUT, GET, ACCUMULATE };
	if (!bench_wanted("many"))
		return;
	MPI_Win allocated = win;
	char *own = mine, *memory = bench_buffer(MOST * APART), name[40];
	mine = bench_buffer(MOST * APART);
	memset(memory, 0, MOST * APART);
	memset(mine, 0, MOST * APART);
	MPI_Win_create(memory, MOST * APART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (way = FLUSH; way <= FENCE; way++)
			for (size_t operations = 1; operations <= MOST; operations *= operations < 16 ? 2 : 4) {
				verb = kinds[k];
				snprintf(name, sizeof name, "%s, %s", verbs[verb], ways[way]);
				report("many", name, many, operations, 1e6, "us");
			}
	MPI_Win_free(&win);
	win = allocated;
	mine = own;
}

/* Bytes go where they should, both ways. */
static void verify(size_t size)
{
	bench_fill(mine, size, 3);
	verb = PUT;
	each(size, 1);
	memset(mine, 0, size);
	bench_sync();
	if (bench.rank == 1)
		bench_check(window, size, 3);
	bench_sync();
	verb = GET;
	each(size, 1);
	if (bench.rank == 0)
		bench_check(mine, size, 3);
	bench_sync();
}

/* Sums are what they should be, and what was there before is fetched. */
static void verify_sum(size_t size, enum verb sum)
{
	double *own = (double *)(void *)mine, *there = (double *)(void *)window, *before = own + bench.max / sizeof *own;
	size_t count = size / sizeof *own;
	for (size_t i = 0; i < count; i++) {
		own[i] = (double)(i % 1000);
		before[i] = -1;
		there[i] = 5;
	}
	bench_sync();
	verb = sum;
	each(size, 1);
	bench_sync();
	for (size_t i = 0; i < count; i++) {
		if (bench.rank == 1 && there[i] != 5 + (double)(i % 1000))
			bench_fail("a sum is wrong");
		if (bench.rank == 0 && sum == GET_ACCUMULATE && before[i] != 5)
			bench_fail("what was fetched is wrong");
	}
	bench_sync();
}

static void sizes(size_t size)
{
	for (verb = PUT; verb <= IDLE; verb++) {
		int is_short = verb >= FETCH_ADD, asks = verb == RPUT || verb == RGET;
		if ((is_short && size != 8) || !bench_wanted(verbs[verb]))
			continue;
		memset(mine, 0, 2 * bench.max + APART);
		for (way = FLUSH; way <= WAIT; way++)
			if (asks ? way != FENCE && way != PSCW : way != WAIT)
				report(verbs[verb], ways[way], each, verb == IDLE ? 0 : size, 1e6, "us");
		way = FLUSH;
		if (verb == IDLE)
			continue;
		if (size == 8)
			report("rate", verbs[verb], batches, size, -1e-6 * BATCH, "M/s");
		if (!is_short)
			report("bandwidth", verbs[verb], batches, size, -1e-9 * BATCH * (double)size, "GB/s");
	}
	for (way = FENCE; way <= PSCW; way++) {
		if (bench_wanted("pattern1") && size <= 1 << 20)
			for (puts_first = 0; puts_first < 2; puts_first++)
				report("pattern1", way == FENCE ? (puts_first ? "fence, puts first" : "fence, alternating")
				                                : (puts_first ? "pscw, puts first" : "pscw, alternating"),
				       pattern1, size, 1e6, "us");
		if (bench_wanted("pattern2"))
			for (small_first = 0; small_first < 2; small_first++)
				report("pattern2", way == FENCE ? (small_first ? "fence, small first" : "fence, large first")
				                                : (small_first ? "pscw, small first" : "pscw, large first"),
				       pattern2, size, 1e6, "us");
	}
	static const char *const orders[][2] = { { "flush, sum first", "flush, put first" }, { "fence, sum first", "fence, put first" },
		                                 { "pscw, sum first", "pscw, put first" }, { "lock, sum first", "lock, put first" } };
	for (way = FLUSH; way <= LOCK && bench_wanted("mixed"); way++)
		for (put_first = 0; put_first < 2; put_first++)
			report("mixed", orders[way][put_first], mixed, size, 1e6, "us");
	if (bench_wanted("busy"))
		for (target_computes = 0; target_computes < 2; target_computes++)
			report("busy", target_computes ? "computes" : "free", beside, size, 1e6, "us");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "onesided", 2, 8, 4 << 20);
	MPI_Win_allocate((MPI_Aint)(2 * bench.max + APART), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
	memset(window, 0, 2 * bench.max + APART);
	mine = bench_buffer(2 * bench.max + APART);
	bench_sync();
	if (bench.ranks > 2) {
		counters();
		rings();
		MPI_Win_free(&win);
		return bench_stop();
	}
	MPI_Group world;
	int other = 1 - bench.rank;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &other, &peer);
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size)) {
		for (way = FLUSH; way <= LOCK; way++)
			verify(size);
		for (way = FLUSH; way <= LOCK; way++) {
			verify_sum(size, ACCUMULATE);
			verify_sum(size, GET_ACCUMULATE);
		}
		sizes(size);
	}
	if (bench_wanted("shared"))
		report("idle", "shared lock", shared, 0, 1e6, "us");
	counters();
	rings();
	epochs();
	MPI_Group_free(&peer);
	MPI_Group_free(&world);
	MPI_Win_free(&win);
	return bench_stop();
}
