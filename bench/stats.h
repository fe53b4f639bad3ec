/* Clock, statistics, pinning and output: all that a benchmark needs besides MPI. */
#ifndef TERN_BENCH_STATS_H
#define TERN_BENCH_STATS_H

#include <stddef.h>

/* The middle of the readings of one point, and how far they spread. */
struct spread {
	double mid;
	double low;  /* tenth percentile */
	double high; /* ninetieth percentile */
	int readings;
};

/* Seconds on the monotonic clock, which all processes of a host share. */
double now(void);

/* Sorts `values` and gives its median and percentiles. */
struct spread spread_of(double *values, int count);

/* The same spread in another unit: every figure times `factor`. */
struct spread scaled(struct spread s, double factor);

/* From the time one piece of work takes to the amount done in a second. */
struct spread rate_of(struct spread seconds, double amount);

/* Number of cores this process may run on; undoes a binding made by a launcher. */
int cores_allowed(void);

/* Binds the calling thread to the n-th core allowed. Gives 0, or -1 if the system refuses. */
int pin_to(int n);

/* Prints one measured point as a line of JSON. `variant` may be NULL. */
void emit(const char *bench, const char *variant, size_t size, struct spread s, const char *unit);

#endif
