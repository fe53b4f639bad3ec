/* Conjugate gradients on a sparse symmetric matrix, a block of it to each rank of a grid. An iteration sums a vector along the rows of
 * the grid, a message of `size` bytes for each doubling, exchanges a part of it with the rank at the transposed place, and forms two
 * dot products. It takes a power of two of ranks. */
#include <math.h>
#include <string.h>

#include "kernels.h"

/* A row of the matrix has its diagonal and as many pairs of entries, at places that the pairs have in common. Diagonal entries are
 * half as large again as the others of the row together, so the condition is below 10, and what is wrong with the start below a
 * millionth of it after 25 iterations. */
enum { PAIRS = 64, CG_ITERATIONS = 25 };
#define CG_BOUND 1e-5

static struct {
	int rows, columns;                    /* of the grid of ranks; columns / rows is 1 or 2 */
	int row, column;                      /* this rank's place */
	int n, height, width;                 /* unknowns: all, those of this rank's block of the matrix */
	int *first, *index;                   /* where the rows of the block begin, and columns of its entries */
	double *value;                        /* of the entries */
	double *x, *b, *residual, *along, *q; /* vectors: all ranks of a column of the grid have the same part */
	double *product, *other;              /* of a row of the grid */
	double rho;
	int iteration;
} cg;

static void cg_swap(const double *out, double *in, int count, int peer)
{
	MPI_Request request;
	double begin = now();
	MPI_Irecv(in, count, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, &request);
	MPI_Send(out, count, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	in_mpi += now() - begin;
}

/* Adds up what the ranks of a row of the grid have. */
static void cg_sum(double *values, double *other, int count)
{
	for (int step = 1; step < cg.columns; step *= 2) {
		cg_swap(values, other, count, cg.row * cg.columns + (cg.column ^ step));
		for (int i = 0; i < count; i++)
			values[i] += other[i];
	}
}

static double cg_dot(const double *a, const double *b)
{
	double sum = 0, other;
	for (int i = 0; i < cg.width; i++)
		sum += a[i] * b[i];
	cg_sum(&sum, &other, 1);
	return sum;
}

/* to = A v. The sum along a row of the grid is as long as the block is high; the part of it that belongs to this rank's column is
 * with the ranks of another row, and what that one needs is here: the exchange is mutual. */
static void cg_multiply(const double *v, double *to)
{
	int ratio = cg.columns / cg.rows, half = cg.column % ratio;
	int peer = cg.column / ratio * cg.columns + cg.row * ratio + half;
	for (int i = 0; i < cg.height; i++) {
		double sum = 0;
		for (int k = cg.first[i]; k < cg.first[i + 1]; k++)
			sum += cg.value[k] * v[cg.index[k]];
		cg.product[i] = sum;
	}
	cg_sum(cg.product, cg.other, cg.height);
	if (peer == bench.rank)
		memcpy(to, cg.product + half * cg.width, (size_t)cg.width * sizeof *to);
	else
		cg_swap(cg.product + half * cg.width, to, cg.width, peer);
}

/* How many entries of row `r` of the whole matrix lie in this rank's block, and which, unless `index` is NULL. */
static int cg_entries(int r, int *index, double *value)
{
	int begin = cg.column * cg.width, found = 0;
	double sum = 0;
	for (int k = 0; k <= 2 * PAIRS; k++) {
		int pair = k / 2, distance = 1 + (int)(chance((uint32_t)pair) * (cg.n - 1));
		int c = k == 2 * PAIRS ? r : (k % 2 ? r + distance : r - distance + cg.n) % cg.n;
		double weight = 0.5 + 0.5 * chance((uint32_t)((k % 2 ? r : c) * PAIRS + pair));
		if (c >= begin && c < begin + cg.width) {
			if (index) {
				index[found] = c - begin;
				value[found] = k == 2 * PAIRS ? 1.5 * sum : -weight;
			}
			found++;
		}
		sum += weight;
	}
	return found;
}

static void cg_place(size_t size)
{
	cg.rows = cg.columns = 1;
	while (cg.rows * cg.columns < bench.ranks)
		*(cg.columns == cg.rows ? &cg.columns : &cg.rows) *= 2;
	if (cg.rows * cg.columns != bench.ranks)
		bench_fail("CG needs a power of two of ranks");
	cg.row = bench.rank / cg.columns;
	cg.column = bench.rank % cg.columns;
	cg.height = (int)(size / sizeof(double));
	cg.n = cg.height * cg.rows;
	cg.width = cg.n / cg.columns;
}

static double cg_solution(int i)
{
	return (double)(i % 16) / 16;
}

static void cg_begin(size_t size)
{
	cg_place(size);
	cg.first = claim((size_t)(cg.height + 1) * sizeof *cg.first);
	cg.first[0] = 0;
	for (int i = 0; i < cg.height; i++)
		cg.first[i + 1] = cg.first[i] + cg_entries(cg.row * cg.height + i, NULL, NULL);
	cg.index = claim((size_t)cg.first[cg.height] * sizeof *cg.index);
	cg.value = claim_doubles(cg.first[cg.height]);
	for (int i = 0; i < cg.height; i++)
		cg_entries(cg.row * cg.height + i, cg.index + cg.first[i], cg.value + cg.first[i]);
	double **vectors[] = { &cg.x, &cg.b, &cg.residual, &cg.along, &cg.q };
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
		*vectors[i] = claim_doubles(cg.width);
	cg.product = claim_doubles(cg.height);
	cg.other = claim_doubles(cg.height);
	for (int i = 0; i < cg.width; i++)
		cg.x[i] = cg_solution(cg.column * cg.width + i);
	cg_multiply(cg.x, cg.b);
	cg.iteration = 0;
}

static void cg_step(void)
{
	size_t bytes = (size_t)cg.width * sizeof(double);
	if (cg.iteration == 0) {
		memset(cg.x, 0, bytes);
		memcpy(cg.residual, cg.b, bytes);
		memcpy(cg.along, cg.b, bytes);
		cg.rho = cg_dot(cg.b, cg.b);
	}
	cg_multiply(cg.along, cg.q);
	double alpha = cg.rho / cg_dot(cg.along, cg.q), before = cg.rho;
	for (int i = 0; i < cg.width; i++) {
		cg.x[i] += alpha * cg.along[i];
		cg.residual[i] -= alpha * cg.q[i];
	}
	cg.rho = cg_dot(cg.residual, cg.residual);
	for (int i = 0; i < cg.width; i++)
		cg.along[i] = cg.residual[i] + cg.rho / before * cg.along[i];
	if (++cg.iteration < CG_ITERATIONS)
		return;
	for (int i = 0; i < cg.width; i++)
		if (!(fabs(cg.x[i] - cg_solution(cg.column * cg.width + i)) < CG_BOUND))
			bench_fail("CG has found another solution");
	cg.iteration = 0;
}

static void cg_verify(void)
{
	do
		cg_step();
	while (cg.iteration != 0);
}

const struct kernel kernel_cg = {
	"CG", "CG, in MPI", "CG, beside its data", 1 << 10, 256 << 10, cg_begin, cg_step, cg_verify,
};
