/* Whether a message under way makes progress while one side is outside MPI (dissertation, section
 * 3.6.2): the time until the receiver has the data, for growing delays on the computing side. A
 * library that progresses independently gives the same time for every delay. A delayed receiver
 * looks into its buffer meanwhile. Variants end in the delay in multiples of the bare time; the
 * percentage is the part of the longest delay that the message was late. */
#include <stdio.h>

#include "exchange.h"

static double arrival(const struct exchange *x, struct took took)
{
	return x->sender_computes ? took.waiting : took.seen;
}

static void measure(const struct exchange *x, char *buffer, size_t size)
{
	static const int factors[] = { 0, 1, 2, 4, 8, 16 };
	enum { FACTORS = sizeof factors / sizeof *factors };
	int times = bench.quick ? 15 : 41;
	char name[100];
	exchange_median(x, buffer, size, 0, 0, times); /* warms up */
	double bare = exchange_median(x, buffer, size, 0, 0, times).computing, base = bare, t = bare;
	for (int k = 0; k < FACTORS; k++) {
		t = arrival(x, exchange_median(x, buffer, size, factors[k] * bare, 1, times));
		if (k == 0)
			base = t;
		snprintf(name, sizeof name, "%s, delay %dx", x->name, factors[k]);
		emit("progress", name, size, (struct spread){ 1e6 * t, 1e6 * t, 1e6 * t, times }, "us");
	}
	double late = 100 * (t - base) / (factors[FACTORS - 1] * bare);
	late = late < 0 ? 0 : late;
	emit("delayed", x->name, size, (struct spread){ late, late, late, times }, "% late");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "progress", 2, 8 << 10, 1 << 20);
	exchange_all(measure);
	return bench_stop();
}
