/* What the kernels of applications and the program that measures them (kernels.c) have in common. */
#ifndef TERN_BENCH_KERNELS_H
#define TERN_BENCH_KERNELS_H

#include "bench.h"

/* A kernel, measured at powers of two of `size` from `least` to `most`. */
struct kernel {
	const char *name, *in_mpi, *memory; /* variants: its time, the part in MPI, what a rank takes beside its data */
	size_t least, most;
	void (*begin)(size_t size);
	void (*step)(void);   /* an iteration */
	void (*verify)(void); /* goes on until a result is there, and ends the job if it is wrong */
};
extern const struct kernel kernel_cg, kernel_mg, kernel_lu, kernel_smg, kernel_radix;

/* Of messages; the second for those that go the other way where one rank may be the neighbour on both sides. */
enum { TAG = 1, TAG_BACK = 2 };

/* Seconds inside MPI since the batch began: each kernel adds up its own. */
extern double in_mpi;

/* Memory of the kernel, as bench_buffer gives it, until it is done with one size. */
void *claim(size_t bytes);
double *claim_doubles(int count);

/* From 0 up to 1, by an index, the same on every rank. */
double chance(uint32_t of);

#endif
