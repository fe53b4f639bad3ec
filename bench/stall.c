/* How long one side is held up in a blocking operation because the other has started its own and
 * then computes for a millisecond. About 1000 µs means that it waits for the whole computation;
 * a message between two ranks that both sit in MPI takes what `alone` says. */
#include <stdio.h>

#include "exchange.h"

static const double compute = 1e-3;

static struct spread only(double seconds, int times)
{
	return (struct spread){ 1e6 * seconds, 1e6 * seconds, 1e6 * seconds, times };
}

static void measure(const struct exchange *x, char *buffer, size_t size)
{
	int times = bench.quick ? 15 : 41;
	char name[100];
	exchange_median(x, buffer, size, 0, 0, times); /* warms up */
	double alone = exchange_median(x, buffer, size, 0, 0, times).waiting;
	double held = exchange_median(x, buffer, size, compute, 0, times).waiting;
	snprintf(name, sizeof name, "%s, alone", x->name);
	emit("stall", name, size, only(alone, times), "us");
	emit("stall", x->name, size, only(held, times), "us");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "stall", 2, 8, 1 << 20);
	exchange_all(measure);
	return bench_stop();
}
