/* Symmetric successive over-relaxation (SSOR) of five unknowns at each point of a box, in the manner of LU in the NAS Parallel
 * Benchmarks (NASA RNR-94-007): ranks are a grid in two directions, and each has all planes of the third. A sweep goes through the
 * planes from one corner of the box to the other: for each of them a rank waits for the row of the rank before it and the column of
 * the one on its left, and sends its last row and column on, so that ranks work on different planes at once; the way back is the same.
 * Each of these messages has the unknowns of as many points as `size` bytes hold. Before the sweeps the edges of all planes go to the
 * four neighbours at once, and five norms are summed. */
#include <math.h>
#include <string.h>

#include "kernels.h"

/* What one unknown of a point takes from each other one there, and DIAGONAL, are such that the diagonal is more than all else in a row
 * of the system together: 16 iterations leave a millionth of what is wrong. */
enum { UNKNOWNS = 5, PLANES = 16, LU_ITERATIONS = 16 };
#define RELAXATION 1.2
#define COUPLING 0.25
#define DIAGONAL 8.0
#define LU_SQUARE_BOUND 0x1p-40 /* of the norms, before the last iteration */
#define LU_BOUND 1e-5
#define ROUNDING 1e-12

static struct {
	int m;                         /* points of an edge of this rank's part of a plane */
	int row, plane;                /* from a point to the next one down, and to that of the next plane */
	int place[2], count[2];        /* in the grid of ranks: this one's, and of how many, down and to the right */
	int before[2], behind[2];      /* the ranks beside this one, or MPI_PROC_NULL */
	double *u, *f, *v;             /* unknowns, right-hand side, correction: planes with an edge of the neighbours' around them */
	double *out[4], *in[4];        /* rows before and behind, columns before and behind */
	double start, norms[UNKNOWNS]; /* squares: their sum at first, the last ones */
	int iteration;
} lu;

static int lu_at(int k, int i, int j)
{
	return k * lu.plane + i * lu.row + j * UNKNOWNS;
}

/* A row or a column of a plane into a message, or out of it. */
static void lu_pack(const double *v, int step, double *message)
{
	for (int i = 0; i < lu.m; i++)
		memcpy(message + i * UNKNOWNS, v + i * step, UNKNOWNS * sizeof *v);
}

static void lu_unpack(double *v, int step, const double *message)
{
	for (int i = 0; i < lu.m; i++)
		memcpy(v + i * step, message + i * UNKNOWNS, UNKNOWNS * sizeof *v);
}

/* Edges of all planes from the four neighbours. */
static void lu_edges(double *v)
{
	MPI_Request requests[8];
	int edge = lu.m * UNKNOWNS, all = edge * PLANES, n = 0;
	const int peers[4] = { lu.before[0], lu.behind[0], lu.before[1], lu.behind[1] };
	const int steps[4] = { UNKNOWNS, UNKNOWNS, lu.row, lu.row };
	const int own[4] = { lu_at(0, 1, 1), lu_at(0, lu.m, 1), lu_at(0, 1, 1), lu_at(0, 1, lu.m) };
	const int theirs[4] = { lu_at(0, 0, 1), lu_at(0, lu.m + 1, 1), lu_at(0, 1, 0), lu_at(0, 1, lu.m + 1) };
	for (int side = 0; side < 4; side++)
		for (int k = 1; k <= PLANES; k++)
			lu_pack(v + k * lu.plane + own[side], steps[side], lu.out[side] + (k - 1) * edge);
	double begin = now();
	for (int side = 0; side < 4; side++)
		MPI_Irecv(lu.in[side], all, MPI_DOUBLE, peers[side], TAG, MPI_COMM_WORLD, &requests[n++]);
	for (int side = 0; side < 4; side++)
		MPI_Isend(lu.out[side], all, MPI_DOUBLE, peers[side], TAG, MPI_COMM_WORLD, &requests[n++]);
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
	in_mpi += now() - begin;
	for (int side = 0; side < 4; side++)
		for (int k = 1; peers[side] != MPI_PROC_NULL && k <= PLANES; k++)
			lu_unpack(v + k * lu.plane + theirs[side], steps[side], lu.in[side] + (k - 1) * edge);
}

/* The solution of the equations of one point for its own unknowns: x times the inverse of (DIAGONAL + COUPLING) I - COUPLING (ones). */
static void lu_solve(const double *x, double *solution)
{
	double sum = 0;
	for (int c = 0; c < UNKNOWNS; c++)
		sum += x[c];
	sum *= COUPLING / (DIAGONAL - (UNKNOWNS - 1) * COUPLING);
	for (int c = 0; c < UNKNOWNS; c++)
		solution[c] = (x[c] + sum) / (DIAGONAL + COUPLING);
}

/* The residual, solved point by point, is what the sweeps begin with. The norms are sums over all ranks. */
static void lu_residual(void)
{
	double sums[UNKNOWNS] = { 0 };
	lu_edges(lu.u);
	for (int k = 1; k <= PLANES; k++)
		for (int i = 1; i <= lu.m; i++)
			for (int j = 1; j <= lu.m; j++) {
				int at = lu_at(k, i, j);
				const double *u = lu.u + at;
				double r[UNKNOWNS], sum = 0;
				for (int c = 0; c < UNKNOWNS; c++)
					sum += u[c];
				for (int c = 0; c < UNKNOWNS; c++) {
					r[c] = lu.f[at + c] - (DIAGONAL + COUPLING) * u[c] + COUPLING * sum + u[c - UNKNOWNS] + u[c + UNKNOWNS] +
					       u[c - lu.row] + u[c + lu.row] + u[c - lu.plane] + u[c + lu.plane];
					sums[c] += r[c] * r[c];
				}
				lu_solve(r, lu.v + at);
			}
	double begin = now();
	MPI_Allreduce(sums, lu.norms, UNKNOWNS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	in_mpi += now() - begin;
}

/* What a sweep adds to a point: `side` is -1 where it takes from the points before, 1 from those behind. */
static void lu_added(int at, int side, double *added)
{
	const double *beside = lu.v + at + side * UNKNOWNS, *down = lu.v + at + side * lu.row, *below = lu.v + at + side * lu.plane;
	double x[UNKNOWNS];
	for (int c = 0; c < UNKNOWNS; c++)
		x[c] = RELAXATION * (beside[c] + down[c] + below[c]);
	lu_solve(x, added);
}

static void lu_plane(int k, int side)
{
	double added[UNKNOWNS];
	for (int i = 1; i <= lu.m; i++)
		for (int j = 1; j <= lu.m; j++) {
			int at = side < 0 ? lu_at(k, i, j) : lu_at(k, lu.m + 1 - i, lu.m + 1 - j);
			lu_added(at, side, added);
			for (int c = 0; c < UNKNOWNS; c++)
				lu.v[at + c] += added[c];
		}
}

/* Solves with the triangle of the system below its diagonal (`side` -1) or above it (1). */
static void lu_sweep(int side)
{
	const int *from = side < 0 ? lu.before : lu.behind, *to = side < 0 ? lu.behind : lu.before;
	int edge = lu.m * UNKNOWNS, first = side < 0 ? 1 : lu.m, last = side < 0 ? lu.m : 1, theirs = first + side;
	for (int step = 1; step <= PLANES; step++) {
		int k = side < 0 ? step : PLANES + 1 - step;
		double begin = now();
		MPI_Recv(lu.v + lu_at(k, theirs, 1), edge, MPI_DOUBLE, from[0], TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(lu.in[0], edge, MPI_DOUBLE, from[1], TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		in_mpi += now() - begin;
		if (from[1] != MPI_PROC_NULL)
			lu_unpack(lu.v + lu_at(k, 1, theirs), lu.row, lu.in[0]);
		lu_plane(k, side);
		lu_pack(lu.v + lu_at(k, 1, last), lu.row, lu.out[0]);
		begin = now();
		MPI_Send(lu.v + lu_at(k, last, 1), edge, MPI_DOUBLE, to[0], TAG, MPI_COMM_WORLD);
		MPI_Send(lu.out[0], edge, MPI_DOUBLE, to[1], TAG, MPI_COMM_WORLD);
		in_mpi += now() - begin;
	}
}

/* At a point of this rank's part or the edge around it; 0 beyond the box. */
static double lu_solution(int k, int i, int j, int c)
{
	int down = lu.count[0] * lu.m, right = lu.count[1] * lu.m;
	i += lu.place[0] * lu.m - 1;
	j += lu.place[1] * lu.m - 1;
	if (k < 1 || k > PLANES || i < 0 || i >= down || j < 0 || j >= right)
		return 0;
	return chance((uint32_t)(((k * down + i) * right + j) * UNKNOWNS + c));
}

static double lu_right_hand(int k, int i, int j, int c)
{
	double sum = (DIAGONAL + COUPLING) * lu_solution(k, i, j, c);
	for (int other = 0; other < UNKNOWNS; other++)
		sum -= COUPLING * lu_solution(k, i, j, other);
	return sum - lu_solution(k, i, j - 1, c) - lu_solution(k, i, j + 1, c) - lu_solution(k, i - 1, j, c) -
	       lu_solution(k, i + 1, j, c) - lu_solution(k - 1, i, j, c) - lu_solution(k + 1, i, j, c);
}

static void lu_place(size_t size)
{
	memset(lu.count, 0, sizeof lu.count);
	MPI_Dims_create(bench.ranks, 2, lu.count);
	lu.place[0] = bench.rank / lu.count[1];
	lu.place[1] = bench.rank % lu.count[1];
	const int distance[2] = { lu.count[1], 1 };
	for (int d = 0; d < 2; d++) {
		lu.before[d] = lu.place[d] > 0 ? bench.rank - distance[d] : MPI_PROC_NULL;
		lu.behind[d] = lu.place[d] + 1 < lu.count[d] ? bench.rank + distance[d] : MPI_PROC_NULL;
	}
	lu.m = (int)(size / (UNKNOWNS * sizeof(double)));
	lu.row = (lu.m + 2) * UNKNOWNS;
	lu.plane = (lu.m + 2) * lu.row;
}

static size_t lu_bytes(void)
{
	return (size_t)(PLANES + 2) * (size_t)lu.plane * sizeof(double);
}

static void lu_begin(size_t size)
{
	lu_place(size);
	lu.u = claim(lu_bytes());
	lu.f = claim(lu_bytes());
	lu.v = claim(lu_bytes());
	for (int side = 0; side < 4; side++) {
		lu.out[side] = claim_doubles(lu.m * UNKNOWNS * PLANES);
		lu.in[side] = claim_doubles(lu.m * UNKNOWNS * PLANES);
	}
	for (int k = 1; k <= PLANES; k++)
		for (int i = 1; i <= lu.m; i++)
			for (int j = 1; j <= lu.m; j++)
				for (int c = 0; c < UNKNOWNS; c++)
					lu.f[lu_at(k, i, j) + c] = lu_right_hand(k, i, j, c);
	memset(lu.v, 0, lu_bytes());
	lu.iteration = 0;
}

static double lu_norm(void)
{
	double sum = 0;
	for (int c = 0; c < UNKNOWNS; c++)
		sum += lu.norms[c];
	return sum;
}

static void lu_step(void)
{
	if (lu.iteration == 0)
		memset(lu.u, 0, lu_bytes());
	lu_residual();
	if (lu.iteration == 0)
		lu.start = lu_norm();
	lu_sweep(-1);
	lu_sweep(1);
	for (int k = 1; k <= PLANES; k++)
		for (int i = 1; i <= lu.m; i++)
			for (int at = lu_at(k, i, 1); at < lu_at(k, i, lu.m + 1); at++)
				lu.u[at] += RELAXATION * (2 - RELAXATION) * lu.v[at];
	if (++lu.iteration < LU_ITERATIONS)
		return;
	if (!(lu_norm() < LU_SQUARE_BOUND * lu.start))
		bench_fail("the residual of LU does not shrink");
	lu.iteration = 0;
}

/* A triangular system has one solution, and a sweep is right, whatever the number of ranks, if each point has its share of those beside
 * it as they are in the end. These come another way here, as the edges of all planes. */
static void lu_verify_sweep(int side, double *before)
{
	double added[UNKNOWNS];
	memcpy(before, lu.v, lu_bytes());
	lu_sweep(side);
	lu_edges(lu.v);
	for (int k = 1; k <= PLANES; k++)
		for (int i = 1; i <= lu.m; i++)
			for (int j = 1; j <= lu.m; j++) {
				int at = lu_at(k, i, j);
				lu_added(at, side, added);
				for (int c = 0; c < UNKNOWNS; c++)
					if (!(fabs(lu.v[at + c] - before[at + c] - added[c]) < ROUNDING))
						bench_fail("a sweep of LU has another result than that of one rank");
			}
}

static void lu_verify(void)
{
	do
		lu_step();
	while (lu.iteration != 0);
	for (int k = 1; k <= PLANES; k++)
		for (int i = 1; i <= lu.m; i++)
			for (int j = 1; j <= lu.m; j++)
				for (int c = 0; c < UNKNOWNS; c++)
					if (!(fabs(lu.u[lu_at(k, i, j) + c] - lu_solution(k, i, j, c)) < LU_BOUND))
						bench_fail("LU has found another solution");
	double *before = claim(lu_bytes());
	memset(lu.u, 0, lu_bytes());
	lu_residual();
	lu_verify_sweep(-1, before);
	lu_verify_sweep(1, before);
}

const struct kernel kernel_lu = {
	"LU", "LU, in MPI", "LU, beside its data", 256, 4 << 10, lu_begin, lu_step, lu_verify,
};
