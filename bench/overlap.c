/* How much computation fits beside a message without delaying it (dissertation, section 3.6.1,
 * in the two arrival orders of 4.4.1). The computation c grows in steps of a twentieth of the
 * bare communication time l0 until the communication time exceeds 1.1 l0. With l the time at the
 * last step before, the overlap is (c - (l - l0)) / l0.
 *
 * Times run from the moment both sides have arrived. A computing side that arrived early has
 * computed until then, which counts neither as computation nor as communication. */
#include "exchange.h"

enum { MOST = 101 };

/* Median communication times without and with computation. They take turns, so that what
 * disturbs one disturbs the other. */
struct pair {
	double l0;
	double l;
};

static struct pair compare(const struct exchange *x, char *buffer, size_t size, double c)
{
	double bare[MOST], computing[MOST];
	int times = bench.quick ? 15 : 41;
	for (int i = 0; i < times; i++) {
		bare[i] = exchange_lead(x, buffer, size, 0, 0).computing;
		computing[i] = exchange_lead(x, buffer, size, c, 0).computing;
	}
	return (struct pair){ spread_of(bare, times).mid, spread_of(computing, times).mid };
}

static void report(const char *name, const struct exchange *x, size_t size, double share)
{
	double percent = share < 0 ? 0 : 100 * share;
	emit(name, x->name, size, (struct spread){ percent, percent, percent, 1 }, "%");
}

static void measure(const struct exchange *x, char *buffer, size_t size)
{
	double l0 = compare(x, buffer, size, 0).l, share = 0;
	/* Two steps in a row beyond the bound end the search: one may be a disturbance. */
	for (int step = 1, beyond = 0; step <= 40 && beyond < 2; step++) {
		double c = 0.05 * step * l0;
		struct pair p = compare(x, buffer, size, c);
		if (p.l < 1.1 * p.l0) {
			share = (c - (p.l - p.l0)) / p.l0;
			beyond = 0;
		} else
			beyond++;
	}
	report("overlap", x, size, share);
	/* The same from the application's side: of a communication beside an equally long
	 * computation, the share that does not show. */
	struct pair p = compare(x, buffer, size, l0);
	report("hidden", x, size, (p.l0 + l0 - p.l) / p.l0);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "overlap", 2, 8 << 10, 1 << 20);
	exchange_all(measure);
	return bench_stop();
}
