#include "exchange.h"

#include <string.h>

enum { DATA = 1, ANSWER = 2, MOST = 101, ATTEMPTS = 20 };

/* Seconds after its moment at which a side has missed it: it was preempted. */
#define MISSED 3e-6

const struct exchange exchanges[4] = {
	{ "sender computes, early sender", 1, 1 },
	{ "sender computes, early receiver", 1, 0 },
	{ "receiver computes, early sender", 0, 1 },
	{ "receiver computes, early receiver", 0, 0 },
};

/* Every exchange carries its own byte, so that a receiver can see the data arrive. */
static char token;

/* Looks until `end` for the token in the last byte of every page; gives the time it was complete,
 * or -1. */
static double watch_buffer(const volatile char *buffer, size_t size, double end)
{
	size_t at = size < 4096 ? size - 1 : 4095;
	while (now() < end) {
		while (buffer[at] == token) {
			if (at == size - 1)
				return now();
			at = at + 4096 < size ? at + 4096 : size - 1;
		}
	}
	return -1;
}

/* Waits for the moment at which this side begins; gives by how much it was missed. */
static double arrive(double moment)
{
	bench_wait_until(moment);
	return now() - moment;
}

/* One exchange; says in `missed` whether a side came too late. */
static struct took attempt(const struct exchange *x, char *buffer, size_t size, double compute, int watch, int *missed)
{
	int n = (int)size, early = x->sender_computes == x->sender_is_early;
	MPI_Request request;
	struct took took = { 0, 0, -1 };
	token++;
	memset(buffer, x->sender_computes ? token : ~token, size);
	double both = bench_moment(0) + AHEAD;
	double late = arrive(early ? both - AHEAD : both);
	if (x->sender_computes)
		MPI_Isend(buffer, n, MPI_CHAR, 1, DATA, MPI_COMM_WORLD, &request);
	else
		MPI_Irecv(buffer, n, MPI_CHAR, 1, DATA, MPI_COMM_WORLD, &request);
	if (early)
		bench_wait_until(both);
	if (watch && !x->sender_computes)
		took.seen = watch_buffer(buffer, size, both + compute);
	else
		bench_compute(compute);
	bench_wait_until(watch ? both + compute : 0);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	double end = now();
	took.computing = end - both;
	took.seen = took.seen < 0 ? took.computing : took.seen - both;
	if (!x->sender_computes && (buffer[0] != token || buffer[size - 1] != token))
		bench_fail("received data is wrong");
	double answer[2];
	MPI_Recv(answer, 2, MPI_DOUBLE, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	took.waiting = answer[0];
	*missed = late > MISSED || answer[1] > MISSED;
	return took;
}

struct took exchange_lead(const struct exchange *x, char *buffer, size_t size, double compute, int watch)
{
	struct took took;
	int missed = 1;
	for (int i = 0; i < ATTEMPTS && missed; i++)
		took = attempt(x, buffer, size, compute, watch, &missed);
	return took;
}

void exchange_follow(const struct exchange *x, char *buffer, size_t size)
{
	int n = (int)size, early = x->sender_computes != x->sender_is_early;
	for (;;) {
		token++;
		memset(buffer, x->sender_computes ? ~token : token, size);
		double start = bench_moment(0);
		if (start < 0)
			break;
		double both = start + AHEAD;
		double late = arrive(early ? start : both);
		if (x->sender_computes)
			MPI_Recv(buffer, n, MPI_CHAR, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(buffer, n, MPI_CHAR, 0, DATA, MPI_COMM_WORLD);
		/* An early sender whose message was buffered was not held up at all. */
		double end = now(), answer[2] = { end < both ? 0 : end - both, late };
		if (x->sender_computes && (buffer[0] != token || buffer[size - 1] != token))
			bench_fail("received data is wrong");
		MPI_Send(answer, 2, MPI_DOUBLE, 0, ANSWER, MPI_COMM_WORLD);
	}
	token--;
}

void exchange_end(void)
{
	bench_moment(1);
}

struct took exchange_median(const struct exchange *x, char *buffer, size_t size, double compute, int watch, int times)
{
	double computing[MOST], waiting[MOST], seen[MOST];
	times = times < MOST ? times : MOST;
	for (int i = 0; i < times; i++) {
		struct took took = exchange_lead(x, buffer, size, compute, watch);
		computing[i] = took.computing;
		waiting[i] = took.waiting;
		seen[i] = took.seen;
	}
	return (struct took){ spread_of(computing, times).mid, spread_of(waiting, times).mid, spread_of(seen, times).mid };
}

static void measure_one(exchange_measure *measure, const struct exchange *x, char *buffer, size_t size)
{
	if (bench.rank == 1) {
		exchange_follow(x, buffer, size);
		return;
	}
	measure(x, buffer, size);
	exchange_end();
}

void exchange_all(exchange_measure *measure)
{
	static const size_t sizes[] = { 8, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20 };
	if (bench.ranks != 2)
		bench_fail("needs exactly two ranks");
	if (bench.cores < 2)
		bench_fail("needs two cores: the ranks must arrive at given moments");
	char *buffer = bench_buffer(bench.max);
	bench_compute(0);
	for (size_t k = 0; k < sizeof exchanges / sizeof *exchanges; k++) {
		if (!bench_wanted(exchanges[k].name))
			continue;
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			if (sizes[i] >= bench.min && sizes[i] <= bench.max)
				measure_one(measure, &exchanges[k], buffer, sizes[i]);
	}
}
