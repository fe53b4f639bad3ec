/* Whether a message under way makes progress while one side is outside MPI (dissertation, section
 * 3.6.2, in the two arrival orders of 4.4.1): the time until the receiver has the data, for growing
 * delays on the computing side. A library that progresses independently gives the same time for
 * every delay. A delayed receiver looks into its buffer meanwhile.
 *
 * In `progress` the size is the delay in microseconds, and the variant ends in the message size.
 * `late` is the part of the longest delay by which the message came later. */
#include <stdio.h>

#include "exchange.h"

static double arrival(const struct exchange *x, struct took took)
{
	return x->sender_computes ? took.waiting : took.seen;
}

static void measure(const struct exchange *x, char *buffer, size_t size)
{
	static const int delays_us[] = { 0, 16, 64, 256, 1024 };
	enum { DELAYS = sizeof delays_us / sizeof *delays_us };
	int times = bench.quick ? 15 : 41;
	double t[DELAYS];
	char name[100];
	snprintf(name, sizeof name, "%s, %zuK", x->name, size >> 10);
	exchange_median(x, buffer, size, 0, 0, times); /* warms up */
	for (int k = 0; k < DELAYS; k++) {
		t[k] = 1e6 * arrival(x, exchange_median(x, buffer, size, 1e-6 * delays_us[k], 1, times));
		emit("progress", name, (size_t)delays_us[k], (struct spread){ t[k], t[k], t[k], times }, "us");
	}
	double late = 100 * (t[DELAYS - 1] - t[0]) / delays_us[DELAYS - 1];
	late = late < 0 ? 0 : late;
	emit("late", x->name, size, (struct spread){ late, late, late, times }, "%");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "progress", 2, 8 << 10, 1 << 20);
	exchange_all(measure);
	return bench_stop();
}
