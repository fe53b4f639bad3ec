/* Kernels of applications, as section 6.6.2 of the dissertation measures them: what an iteration takes, and what of it passes
 * inside MPI (`in MPI`: from the call of a group of sends, receives and waits to its return, and the norms of MG, LU and SMG2000).
 * Both are means over the ranks. The results are checked. What the kernels do, and what their sizes are, is said in kernel_cg.c,
 * kernel_mg.c, kernel_lu.c, kernel_smg.c and kernel_radix.c.
 *
 * With `--only NAME,memory` also the proportional set size of a rank beyond the kernel's own data (`beside its data`). */
#include "kernels.h"

#include <stdlib.h>

enum { MOST_PIECES = 128, PAGE = 4096, BATCHES = 256 };

double in_mpi;

static void *pieces[MOST_PIECES];
static int n_pieces;
static size_t claimed; /* bytes of whole pages */

void *claim(size_t bytes)
{
	if (n_pieces == MOST_PIECES)
		bench_fail("too many pieces of memory");
	claimed += (bytes + PAGE - 1) / PAGE * PAGE;
	return pieces[n_pieces++] = bench_buffer(bytes);
}

double *claim_doubles(int count)
{
	return claim((size_t)count * sizeof(double));
}

static void release(void)
{
	while (n_pieces > 0)
		free(pieces[--n_pieces]);
	claimed = 0;
}

double chance(uint32_t of)
{
	return (of * 2654435761u >> 8) / (double)(1 << 24);
}

static const struct kernel *const kernels[] = { &kernel_cg, &kernel_mg, &kernel_lu, &kernel_smg, &kernel_radix };
static const struct kernel *kernel;
/* Of the last batches: seconds of an iteration that passed in MPI on this rank. */
static double within[BATCHES];
static long batches;

static double repeat(size_t size, long count)
{
	(void)size;
	in_mpi = 0;
	double begin = now();
	for (long i = 0; i < count; i++)
		kernel->step();
	double took = now() - begin;
	within[batches++ % BATCHES] = in_mpi / (double)count;
	return took;
}

/* The same of the batches that were readings, which are the last ones. */
static struct spread within_mpi(int readings)
{
	double means[BATCHES];
	readings = (int)bench_share(readings);
	for (int i = 0; i < readings; i++)
		means[i] = bench_mean(within[(batches - readings + i) % BATCHES]);
	return spread_of(means, readings);
}

static void measure(size_t size)
{
	kernel->begin(size);
	struct spread all = bench_measure(repeat, size, 1), inside = within_mpi(all.readings);
	kernel->verify();
	if (bench.rank == 0) {
		emit(bench.name, kernel->name, size, scaled(all, 1e6), "us");
		emit(bench.name, kernel->in_mpi, size, scaled(inside, 1e6), "us");
	}
	if (bench.only && bench_wanted("memory")) {
		double beside = bench_memory() - bench_mean((double)claimed / (1 << 20));
		if (bench.rank == 0)
			emit(bench.name, kernel->memory, size, (struct spread){ beside, beside, beside, 1 }, "MB");
	}
	release();
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "kernels", 1, 256, 1 << 20);
	if (bench.min == 0 || (bench.min & (bench.min - 1)) != 0)
		bench_fail("sizes must be powers of two");
	for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
		kernel = kernels[k];
		if (!bench_wanted(kernel->name))
			continue;
		for (size_t size = bench_first(); size <= bench.max && size <= kernel->most; size = bench_next(size))
			if (size >= kernel->least)
				measure(size);
	}
	return bench_stop();
}
