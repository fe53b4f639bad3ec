#define _GNU_SOURCE
#include "stats.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct spread spread_of(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, ascending);
	double mid = values[count / 2];
	if (count % 2 == 0)
		mid = 0.5 * (mid + values[count / 2 - 1]);
	return (struct spread){ mid, values[count / 10], values[count - 1 - count / 10], count };
}

struct spread scaled(struct spread s, double factor)
{
	return (struct spread){ s.mid * factor, s.low * factor, s.high * factor, s.readings };
}

struct spread rate_of(struct spread s, double amount)
{
	return (struct spread){ amount / s.mid, amount / s.high, amount / s.low, s.readings };
}

int cores_allowed(void)
{
	/* Asking for all cores gives those the container or the administrator allows. */
	cpu_set_t set;
	memset(&set, 0xff, sizeof set);
	sched_setaffinity(0, sizeof set, &set);
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	return CPU_COUNT(&set);
}

int pin_to(int n)
{
	cpu_set_t allowed, one;
	if (cores_allowed() <= n || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		return -1;
	int core = 0;
	while (!CPU_ISSET(core, &allowed) || n-- > 0)
		core++;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	return sched_setaffinity(0, sizeof one, &one);
}

void emit(const char *bench, const char *variant, size_t size, struct spread s, const char *unit)
{
	printf("{\"bench\":\"%s\",\"variant\":\"%s\",\"size\":%zu,\"value\":%.6g,\"unit\":\"%s\","
	       "\"low\":%.6g,\"high\":%.6g,\"readings\":%d}\n",
	       bench, variant ? variant : "", size, s.mid, unit, s.low, s.high, s.readings);
	fflush(stdout);
}
