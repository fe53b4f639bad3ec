/* Frame of every benchmark: options, sizes, adaptive repetition, and a control channel made of
 * point-to-point messages only, so that a benchmark uses no operation but the one it measures. */
#ifndef TERN_BENCH_H
#define TERN_BENCH_H

#include <mpi.h>
#include <stdint.h>

#include "stats.h"

/* Options and identity of this process. */
struct bench {
	const char *name;
	int rank;
	int ranks;
	int cores;      /* that this process may run on */
	int quick;      /* fewer sizes */
	double seconds; /* time to spend on one point */
	size_t min;     /* smallest and largest size in bytes */
	size_t max;
	const char *only; /* these variants only, separated by commas, or NULL */
};
extern struct bench bench;

/* The level of thread support that is asked for, set before the start if it is another than MPI_THREAD_SINGLE. */
extern int bench_threads;

/* Starts MPI, reads the options and pins rank n to core n when there are enough cores. */
void bench_start(int *argc, char ***argv, const char *name, int least_ranks, size_t min, size_t max);

/* Finishes MPI; the value is main's. */
int bench_stop(void);

/* Says on rank 0 what went wrong and ends the job. */
void bench_fail(const char *text);

/* Whether `variant` is to be measured. */
int bench_wanted(const char *variant);

/* The sizes to measure: for (s = bench_first(); s <= bench.max; s = bench_next(s)). */
size_t bench_first(void);
size_t bench_next(size_t size);

/* Page-aligned memory that has been written to. */
char *bench_buffer(size_t size);

/* A pattern that depends on `seed`, and its check: ends the job if a byte is wrong. */
void bench_fill(char *buffer, size_t size, int seed);
void bench_check(const char *buffer, size_t size, int seed);

/* What an application does with its data, a word at a time: writes `seed` and the numbers behind it; the sum of all words, and what
 * that is of words so written. `size` is a multiple of 32 bytes. Compiled with loops aligned (`-falign-loops=64`): the same loop is
 * half as fast where it lies across 32 bytes of code, and it lies elsewhere in each library's program. */
void bench_write(uint64_t *words, size_t size, uint64_t seed);
uint64_t bench_sum(const uint64_t *words, size_t size);
uint64_t bench_sum_of(size_t size, uint64_t seed);

/* Runs the measured operation `count` times; gives the seconds it took on this rank. */
typedef double bench_body(size_t size, long count);

/* Seconds per operation: batches long enough for the clock, as many as the time allows.
 * The reading of a batch is rank 0's, or with `average` the mean over the ranks. */
struct spread bench_measure(bench_body *body, size_t size, int average);

/* Rank 0's value on every rank. */
double bench_share(double value);

/* Mean over the ranks of what each gives; meaningful on rank 0. */
double bench_mean(double value);

/* Returns when every rank has called it. */
void bench_sync(void);

/* Mean over the ranks of their proportional set size, in MB, while all of them are there; meaningful on rank 0. */
double bench_memory(void);

/* A moment close in the future, the same on all ranks, each of which is told it by its own clock; negative if rank 0
 * gives `stop`. Ranks of one host have one clock. Between hosts rank 0 reads that of each other rank, each time anew for
 * they drift: it was what it says half-way through a round trip, of some the shortest, and so is wrong by half of that at most. */
double bench_moment(int stop);

/* Whether ranks are on several hosts, as MPI says it. The first call is one of all ranks. */
int bench_is_apart(void);
void bench_wait_until(double moment);

/* Work that takes `seconds` on an undisturbed core. It is an amount of work, not of time: a
 * library that takes the core away for its own ends makes it last longer. */
void bench_compute(double seconds);

#endif
