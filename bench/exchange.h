/* One message between two ranks of which one computes while it is under way. Used by the overlap,
 * progress and stall benchmarks (dissertation, sections 3.6 and 4.4.1): the computing side is
 * sender or receiver, and either side can be made to arrive first. */
#ifndef TERN_BENCH_EXCHANGE_H
#define TERN_BENCH_EXCHANGE_H

#include "bench.h"

/* Seconds by which the early side is ahead: time for a handshake message to arrive, on one host and between two. */
#define AHEAD (bench_is_apart() ? 200e-6 : 20e-6)

/* Rank 0 computes, rank 1 blocks in its operation. */
struct exchange {
	const char *name;
	int sender_computes;
	int sender_is_early;
};

/* The four cases, sender and receiver in both arrival orders. */
extern const struct exchange exchanges[4];

/* What one exchange took, each from the moment both sides had arrived. */
struct took {
	double computing; /* until the computing side has completed; on rank 0 */
	double waiting;   /* until the blocking side has returned; on both ranks */
	double seen;      /* until the computing receiver saw all data in its buffer; on rank 0 */
};

/* Runs one exchange in which rank 0 computes for `compute` seconds after both have arrived. With
 * `watch` a computing receiver does not compute but looks for the data in its buffer meanwhile.
 * Rank 1 calls exchange_follow. */
struct took exchange_lead(const struct exchange *x, char *buffer, size_t size, double compute, int watch);
void exchange_follow(const struct exchange *x, char *buffer, size_t size);

/* Ends the loop of exchange_follow. */
void exchange_end(void);

/* Medians over `times` exchanges. */
struct took exchange_median(const struct exchange *x, char *buffer, size_t size, double compute, int watch, int times);

/* Measures one case at one size, on rank 0. */
typedef void exchange_measure(const struct exchange *x, char *buffer, size_t size);

/* Calls `measure` for the wanted cases and the sizes 8, 1K, 8K, 64K, 256K, 1M, 4M and 16M within the
 * bounds given on the command line; rank 1 follows. */
void exchange_all(exchange_measure *measure);

#endif
