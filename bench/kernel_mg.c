/* A V-cycle of multigrid for Poisson's equation on a periodic square, a square of points to each rank. On every level edges go to
 * the four neighbours 5 times or more, half as long as on the one above; the longest has `size` bytes, the shortest one point. */
#include <math.h>
#include <string.h>

#include "kernels.h"

/* Smoothing is damped Jacobi: before and behind what the next level does, and in place of a solution on the last one. Eight cycles
 * are to halve the residual eight times at least. */
enum { LEVELS = 16, SMOOTHINGS = 2, LAST_SMOOTHINGS = 8, MG_CYCLES = 8 };
#define DAMPING 0.8
#define SQUARE_BOUND 0x1p-16 /* of its norm */
#define MG_BOUND 1e-3

/* Squares of m x m points with an edge of the neighbours' around them; f is scaled so that the operator is 4 u - (the four beside). */
struct level {
	int m;
	double *u, *f, *r;
};

static struct {
	struct level level[LEVELS];
	int last;                 /* level */
	int place[2], count[2];   /* in the grid of ranks: this one's, and of how many, down and to the right */
	int before[2], behind[2]; /* the ranks beside this one */
	double *out[2], *in[2];   /* columns on their way */
	double start;             /* square of the norm of f */
	int cycle;
} mg;

/* What goes to both neighbours in a direction, and comes from them. */
static void mg_swap(int direction, const double *first, const double *last, double *from_before, double *from_behind, int count)
{
	MPI_Request requests[4];
	int before = mg.before[direction], behind = mg.behind[direction];
	if (before == bench.rank) {
		memcpy(from_before, last, (size_t)count * sizeof *last);
		memcpy(from_behind, first, (size_t)count * sizeof *first);
		return;
	}
	double begin = now();
	MPI_Irecv(from_before, count, MPI_DOUBLE, before, TAG, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(from_behind, count, MPI_DOUBLE, behind, TAG_BACK, MPI_COMM_WORLD, &requests[1]);
	MPI_Isend(last, count, MPI_DOUBLE, behind, TAG, MPI_COMM_WORLD, &requests[2]);
	MPI_Isend(first, count, MPI_DOUBLE, before, TAG_BACK, MPI_COMM_WORLD, &requests[3]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	in_mpi += now() - begin;
}

/* Columns first: rows take the corners along. */
static void mg_edges(double *v, int m)
{
	int wide = m + 2;
	for (int i = 0; i < m; i++) {
		mg.out[0][i] = v[(i + 1) * wide + 1];
		mg.out[1][i] = v[(i + 1) * wide + m];
	}
	mg_swap(1, mg.out[0], mg.out[1], mg.in[0], mg.in[1], m);
	for (int i = 0; i < m; i++) {
		v[(i + 1) * wide] = mg.in[0][i];
		v[(i + 1) * wide + m + 1] = mg.in[1][i];
	}
	mg_swap(0, v + wide, v + m * wide, v, v + (m + 1) * wide, wide);
}

/* r = f - A u inside. */
static void mg_residual(const struct level *at)
{
	int wide = at->m + 2;
	mg_edges(at->u, at->m);
	for (int i = 1; i <= at->m; i++) {
		const double *u = at->u + i * wide, *f = at->f + i * wide;
		double *r = at->r + i * wide;
		for (int j = 1; j <= at->m; j++)
			r[j] = f[j] - 4 * u[j] + u[j - 1] + u[j + 1] + u[j - wide] + u[j + wide];
	}
}

static void mg_smooth(const struct level *at, int times)
{
	int wide = at->m + 2;
	while (times-- > 0) {
		mg_residual(at);
		for (int i = 1; i <= at->m; i++)
			for (int j = 1; j <= at->m; j++)
				at->u[i * wide + j] += DAMPING / 4 * at->r[i * wide + j];
	}
}

/* The four points that one of the next level stands for; their sum, for a step there is twice as long. */
static void mg_restrict(const struct level *fine, const struct level *coarse)
{
	int wide = coarse->m + 2, finer = fine->m + 2;
	for (int i = 1; i <= coarse->m; i++)
		for (int j = 1; j <= coarse->m; j++) {
			const double *r = fine->r + (2 * i - 1) * finer + 2 * j - 1;
			coarse->f[i * wide + j] = r[0] + r[1] + r[finer] + r[finer + 1];
		}
	memset(coarse->u, 0, (size_t)(wide * wide) * sizeof(double));
}

/* Bilinear between the four points of the next level that are nearest. */
static void mg_correct(const struct level *fine, const struct level *coarse)
{
	int wide = coarse->m + 2, finer = fine->m + 2;
	mg_edges(coarse->u, coarse->m);
	for (int i = 1; i <= fine->m; i++)
		for (int j = 1; j <= fine->m; j++) {
			int down = i % 2 ? -wide : wide, right = j % 2 ? -1 : 1;
			const double *u = coarse->u + (i + 1) / 2 * wide + (j + 1) / 2;
			fine->u[i * finer + j] += (9 * u[0] + 3 * (u[down] + u[right]) + u[down + right]) / 16;
		}
}

static void mg_cycle(int level)
{
	const struct level *at = &mg.level[level];
	if (level == mg.last) {
		mg_smooth(at, LAST_SMOOTHINGS);
		return;
	}
	mg_smooth(at, SMOOTHINGS);
	mg_residual(at);
	mg_restrict(at, at + 1);
	mg_cycle(level + 1);
	mg_correct(at, at + 1);
	mg_smooth(at, SMOOTHINGS);
}

/* Square of a norm over all ranks. */
static double mg_norm(const double *v)
{
	double sum = 0, all;
	int m = mg.level[0].m;
	for (int i = 1; i <= m; i++)
		for (int j = 1; j <= m; j++)
			sum += v[i * (m + 2) + j] * v[i * (m + 2) + j];
	double begin = now();
	MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	in_mpi += now() - begin;
	return all;
}

/* At a point of this rank's square or the edge around it, without asking a neighbour. */
static double mg_solution(int i, int j)
{
	int m = mg.level[0].m, down = mg.count[0] * m, right = mg.count[1] * m;
	i = (mg.place[0] * m + i - 1 + down) % down;
	j = (mg.place[1] * m + j - 1 + right) % right;
	return chance((uint32_t)(i * right + j));
}

static void mg_place(void)
{
	int *place = mg.place, *count = mg.count;
	memset(count, 0, sizeof mg.count);
	MPI_Dims_create(bench.ranks, 2, count);
	place[0] = bench.rank / count[1];
	place[1] = bench.rank % count[1];
	mg.before[0] = (place[0] + count[0] - 1) % count[0] * count[1] + place[1];
	mg.behind[0] = (place[0] + 1) % count[0] * count[1] + place[1];
	mg.before[1] = place[0] * count[1] + (place[1] + count[1] - 1) % count[1];
	mg.behind[1] = place[0] * count[1] + (place[1] + 1) % count[1];
}

static void mg_begin(size_t size)
{
	mg_place();
	mg.last = -1;
	for (int m = (int)(size / sizeof(double)); m >= 1; m /= 2) {
		struct level *at = &mg.level[++mg.last];
		int all = (m + 2) * (m + 2);
		*at = (struct level){ m, claim_doubles(all), claim_doubles(all), claim_doubles(all) };
	}
	int m = mg.level[0].m, wide = m + 2;
	for (int side = 0; side < 2; side++) {
		mg.out[side] = claim_doubles(m);
		mg.in[side] = claim_doubles(m);
	}
	for (int i = 1; i <= m; i++)
		for (int j = 1; j <= m; j++)
			mg.level[0].f[i * wide + j] = 4 * mg_solution(i, j) - mg_solution(i, j - 1) - mg_solution(i, j + 1) -
			                              mg_solution(i - 1, j) - mg_solution(i + 1, j);
	mg.cycle = 0;
}

static void mg_step(void)
{
	const struct level *top = &mg.level[0];
	if (mg.cycle == 0) {
		memset(top->u, 0, (size_t)((top->m + 2) * (top->m + 2)) * sizeof(double));
		mg.start = mg_norm(top->f);
	}
	mg_cycle(0);
	if (++mg.cycle < MG_CYCLES)
		return;
	mg_residual(top);
	if (!(mg_norm(top->r) < SQUARE_BOUND * mg.start))
		bench_fail("the residual of MG does not shrink");
	mg.cycle = 0;
}

/* The solution is one but for a constant. */
static void mg_verify(void)
{
	const struct level *top = &mg.level[0];
	do
		mg_step();
	while (mg.cycle != 0);
	double sum = 0;
	for (int i = 1; i <= top->m; i++)
		for (int j = 1; j <= top->m; j++)
			sum += top->u[i * (top->m + 2) + j] - mg_solution(i, j);
	double constant = bench_share(bench_mean(sum / ((double)top->m * top->m)));
	for (int i = 1; i <= top->m; i++)
		for (int j = 1; j <= top->m; j++)
			if (!(fabs(top->u[i * (top->m + 2) + j] - mg_solution(i, j) - constant) < MG_BOUND))
				bench_fail("MG has found another solution");
}

const struct kernel kernel_mg = {
	"MG", "MG, in MPI", "MG, beside its data", 256, 4 << 10, mg_begin, mg_step, mg_verify,
};
