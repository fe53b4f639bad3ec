/* A cycle of semicoarsening multigrid for Poisson's equation on a box between walls, in the manner of SMG2000 as its authors describe it
 * (Brown, Falgout and Jones, Semicoarsening multigrid on distributed memory machines, SIAM J. Sci. Comput. 21, 2000), a box of points to
 * each rank, the largest side of which has `size` bytes. Each level has half as many planes as the one above. Planes are relaxed in two
 * colours, and solved by a cycle that halves their lines in the same way, lines of two colours, too; the lines by cyclic reduction,
 * which halves their points. All that have a colour go together, and what is exchanged is sides of a box that becomes shorter along one
 * axis after the other: hundreds of messages to each neighbour in a cycle, from `size` down to 8 bytes. Ranks that have no
 * point on a level are passed over: of eight along an axis and more some have neighbours farther off. The operator has seven points on
 * all levels, where those of SMG2000 grow and take in the neighbours at edges and corners. It takes a power of two of ranks. */
#include <math.h>
#include <string.h>

#include "kernels.h"

enum { AXES = 3, SMG_LEVELS = 16, SMG_CYCLES = 6 };
/* Of points along an axis, by their numbers on a level: even ones are on the next level, too. */
enum { ODD = 1, EVEN = 2, ALL = ODD | EVEN };
/* Points of an edge of the box on which ranks together are compared with one alone, and its cycles. */
enum { SMALL = 4, SMALL_CYCLES = 2 };
#define SMG_SQUARE_BOUND 0x1p-6 /* of the norm before, in each cycle */
#define SMG_BOUND 1e-5
#define ROUNDING 1e-12

/* Points of a rank along an axis on a level: numbers, and the ranks that have what is beside them, or MPI_PROC_NULL at a wall. */
struct axis {
	int first, n, before, behind;
};

/* How many points of a rank are together, with a layer of the neighbours' or the walls' around them. */
struct box {
	int n[AXES];
};

/* u and f along axes up to the one that becomes shorter from level to level; of lines only f, which their solution replaces. */
struct grid {
	double *u, *f;
};

static struct smg {
	int m[AXES], count[AXES], place[AXES]; /* points of a rank, ranks, this rank's place */
	int levels[AXES];
	struct axis axis[AXES][SMG_LEVELS];
	struct grid grid[AXES][SMG_LEVELS];
	double *whole;          /* what is left, or a correction, at all points of a level */
	double *out[2], *in[2]; /* sides on their way */
	double norm;            /* square of the last residual's */
	int cycle;
} smg;

static int smg_step_along(struct box box, int axis)
{
	int wide = box.n[0] + 2;
	return axis == 0 ? 1 : axis == 1 ? wide : wide * (box.n[1] + 2);
}

static int smg_at(struct box box, int x, int y, int z)
{
	return (z * (box.n[1] + 2) + y) * (box.n[0] + 2) + x;
}

static int smg_colour(int number)
{
	return number % 2 ? ODD : EVEN;
}

/* The layer at `place` along an axis, into a message or out of it. */
static void smg_pack(double *v, struct box box, int axis, int place, double *message, int is_out)
{
	int first = axis == 0 ? 1 : 0, second = axis == 2 ? 1 : 2;
	int step = smg_step_along(box, first), stride = smg_step_along(box, second);
	v += place * smg_step_along(box, axis);
	for (int j = 1; j <= box.n[second]; j++)
		for (int i = 1; i <= box.n[first]; i++, message++) {
			double *at = v + j * stride + i * step;
			if (is_out)
				*message = *at;
			else
				*at = *message;
		}
}

/* What points of the colours that are `wanted` need of the ranks beside this one, as far as those have it; walls are 0. */
static void smg_exchange(double *v, struct box box, int axis, int level, int wanted)
{
	const struct axis *on = &smg.axis[axis][level];
	const int peers[2] = { on->before, on->behind }, own[2] = { 1, on->n }, theirs[2] = { 0, on->n + 1 };
	MPI_Request requests[4];
	int n = 0, count = box.n[0] * box.n[1] * box.n[2] / on->n;
	for (int side = 0; side < 2; side++) {
		if (peers[side] == MPI_PROC_NULL)
			memset(smg.in[side], 0, (size_t)count * sizeof(double));
		else if (smg_colour(on->first + theirs[side] - 1) & wanted)
			smg_pack(v, box, axis, own[side], smg.out[side], 1);
	}
	double begin = now();
	for (int side = 0; side < 2; side++)
		if (peers[side] != MPI_PROC_NULL && smg_colour(on->first + own[side] - 1) & wanted)
			MPI_Irecv(smg.in[side], count, MPI_DOUBLE, peers[side], TAG, MPI_COMM_WORLD, &requests[n++]);
	for (int side = 0; side < 2; side++)
		if (peers[side] != MPI_PROC_NULL && smg_colour(on->first + theirs[side] - 1) & wanted)
			MPI_Isend(smg.out[side], count, MPI_DOUBLE, peers[side], TAG, MPI_COMM_WORLD, &requests[n++]);
	if (n > 0)
		MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
	in_mpi += now() - begin;
	for (int side = 0; side < 2; side++)
		if (smg_colour(on->first + own[side] - 1) & wanted)
			smg_pack(v, box, axis, theirs[side], smg.in[side], 0);
}

/* The part of a box that has a colour along an axis, and which of its points is the first of them. */
static struct box smg_part(struct box box, int axis, int level, int colour, int *start)
{
	*start = smg_colour(smg.axis[axis][level].first) == colour ? 1 : 2;
	box.n[axis] = (box.n[axis] - *start + 2) / 2;
	return box;
}

static int smg_is_empty(struct box box)
{
	return box.n[0] == 0 || box.n[1] == 0 || box.n[2] == 0;
}

/* Where in the box the row is that is at y and z of its part along axis 1 or 2. */
static int smg_row(struct box box, int axis, int start, int y, int z)
{
	return smg_at(box, 0, axis == 1 ? start + 2 * (y - 1) : y, axis == 2 ? start + 2 * (z - 1) : z);
}

/* Even points go to the next level, with what odd ones leave to them. */
static void smg_reduce_down(const double *t, struct box box, double *next, struct box part, int even, double share)
{
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++) {
			const double *from = t + smg_at(box, even, y, z);
			double *to = next + smg_at(part, 1, y, z);
			for (int i = 0; i < part.n[0]; i++)
				to[i] = from[2 * i] + share * (from[2 * i - 1] + from[2 * i + 1]);
		}
}

static void smg_reduce_up(double *t, struct box box, const double *next, struct box part, int even)
{
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++) {
			double *to = t + smg_at(box, even, y, z);
			const double *from = next + smg_at(part, 1, y, z);
			for (int i = 0; i < part.n[0]; i++)
				to[2 * i] = from[i];
		}
}

/* Odd points follow from the even ones beside them. */
static void smg_divide(double *t, struct box box, int odd, double a, double c)
{
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++) {
			double *row = t + smg_at(box, 0, y, z);
			for (int x = odd; x <= box.n[0]; x += 2)
				row[x] = (row[x] + c * (row[x - 1] + row[x + 1])) / a;
		}
}

/* Solves a x - c (the x beside) = t along lines: what is left of odd points is put into the equations of even ones, which are solved on
 * the next level. */
static void smg_reduce(int level, struct box box, double a, double c)
{
	int even;
	double *t = smg.grid[0][level].f, *next = smg.grid[0][level + 1].f;
	struct box part = smg_part(box, 0, level, EVEN, &even);
	smg_exchange(t, box, 0, level, EVEN);
	if (!smg_is_empty(part)) {
		smg_reduce_down(t, box, next, part, even, c / a);
		smg_reduce(level + 1, part, a - 2 * c * c / a, c * c / a);
		smg_reduce_up(t, box, next, part, even);
	}
	smg_exchange(t, box, 0, level, ODD);
	smg_divide(t, box, 3 - even, a, c);
}

static void smg_cycle(int axis, int level, struct box box, double shift);

/* What the points beside along the axis of a level weigh: along the other ones 1. */
static double smg_weight(int level)
{
	return ldexp(1, -2 * level);
}

/* Solves for the planes, or lines, of a colour, those of the other colour being as they are. */
static void smg_relax(int axis, int level, struct box box, double shift, int colour)
{
	int start;
	double weight = smg_weight(level);
	struct box part = smg_part(box, axis, level, colour, &start);
	const struct grid *from = &smg.grid[axis][level], *to = &smg.grid[axis - 1][0];
	double *solution = axis == 1 ? to->f : to->u;
	int step = smg_step_along(box, axis);
	smg_exchange(from->u, box, axis, level, colour);
	if (smg_is_empty(part))
		return;
	for (int z = 1; z <= part.n[2]; z++)
		for (int y = 1; y <= part.n[1]; y++) {
			int row = smg_row(box, axis, start, y, z), own = smg_at(part, 0, y, z);
			const double *u = from->u + row;
			for (int x = 1; x <= part.n[0]; x++)
				to->f[own + x] = from->f[row + x] + weight * (u[x - step] + u[x + step]);
			if (axis > 1)
				memcpy(to->u + own + 1, u + 1, (size_t)part.n[0] * sizeof *u);
		}
	if (axis == 1)
		smg_reduce(0, part, shift + 2 * weight + 2, 1);
	else
		smg_cycle(axis - 1, 0, part, shift + 2 * weight);
	for (int z = 1; z <= part.n[2]; z++)
		for (int y = 1; y <= part.n[1]; y++)
			memcpy(from->u + smg_row(box, axis, start, y, z) + 1, solution + smg_at(part, 1, y, z),
			       (size_t)part.n[0] * sizeof *solution);
}

/* f - A u in a row. */
static void smg_residual(int axis, int level, struct box box, double shift, int row, double *r)
{
	const double *u = smg.grid[axis][level].u + row, *f = smg.grid[axis][level].f + row;
	double weight = smg_weight(level), diagonal = shift + 2 * axis + 2 * weight;
	int step = smg_step_along(box, axis);
	for (int x = 1; x <= box.n[0]; x++)
		r[x] = f[x] - diagonal * u[x] + weight * (u[x - step] + u[x + step]);
	for (int other = 0; other < axis; other++) {
		int its = smg_step_along(box, other);
		for (int x = 1; x <= box.n[0]; x++)
			r[x] += u[x - its] + u[x + its];
	}
}

/* The equations of the next level: what is left at its points and at half of those between, and of that the half, for a step there is
 * twice as long. */
static void smg_restrict(int axis, int level, struct box box, double shift)
{
	int start, step = smg_step_along(box, axis);
	struct box part = smg_part(box, axis, level, EVEN, &start);
	const struct grid *to = &smg.grid[axis][level + 1];
	smg_exchange(smg.grid[axis][level].u, box, axis, level, ALL);
	for (int other = 0; other < axis; other++)
		smg_exchange(smg.grid[axis][level].u, box, other, 0, ALL);
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++)
			smg_residual(axis, level, box, shift, smg_at(box, 0, y, z), smg.whole + smg_at(box, 0, y, z));
	smg_exchange(smg.whole, box, axis, level, EVEN);
	for (int z = 1; z <= part.n[2]; z++)
		for (int y = 1; y <= part.n[1]; y++) {
			int own = smg_at(part, 0, y, z);
			const double *r = smg.whole + smg_row(box, axis, start, y, z);
			for (int x = 1; x <= part.n[0]; x++) {
				to->f[own + x] = r[x] / 2 + (r[x - step] + r[x + step]) / 4;
				to->u[own + x] = 0;
			}
		}
}

/* Even points are what the next level says, odd ones half of the two beside them. */
static void smg_correct(int axis, int level, struct box box)
{
	int start;
	struct box part = smg_part(box, axis, level, EVEN, &start);
	double *u = smg.grid[axis][level].u;
	const double *from = smg.grid[axis][level + 1].u;
	for (int z = 1; z <= part.n[2]; z++)
		for (int y = 1; y <= part.n[1]; y++)
			memcpy(smg.whole + smg_row(box, axis, start, y, z) + 1, from + smg_at(part, 1, y, z), (size_t)part.n[0] * sizeof *from);
	smg_exchange(smg.whole, box, axis, level, ODD);
	for (int z = 1; z <= part.n[2]; z++)
		for (int y = 1; y <= part.n[1]; y++) {
			int row = smg_row(box, axis, start, y, z);
			for (int x = 1; x <= part.n[0]; x++)
				u[row + x] += smg.whole[row + x];
		}
	int step = smg_step_along(box, axis);
	part = smg_part(box, axis, level, ODD, &start);
	for (int z = 1; z <= part.n[2]; z++)
		for (int y = 1; y <= part.n[1]; y++) {
			int row = smg_row(box, axis, start, y, z);
			for (int x = 1; x <= part.n[0]; x++)
				u[row + x] += (smg.whole[row + x - step] + smg.whole[row + x + step]) / 2;
		}
}

/* Along axes up to this one; the others only tell how many such problems there are, and add `shift` to the diagonal. */
static void smg_cycle(int axis, int level, struct box box, double shift)
{
	int start;
	if (level + 1 == smg.levels[axis]) {
		smg_relax(axis, level, box, shift, ODD);
		return;
	}
	smg_relax(axis, level, box, shift, EVEN);
	smg_relax(axis, level, box, shift, ODD);
	smg_restrict(axis, level, box, shift);
	struct box next = smg_part(box, axis, level, EVEN, &start);
	if (!smg_is_empty(next))
		smg_cycle(axis, level + 1, next, shift);
	smg_correct(axis, level, box);
	smg_relax(axis, level, box, shift, ODD);
	smg_relax(axis, level, box, shift, EVEN);
}

static struct box smg_whole(void)
{
	return (struct box){ { smg.axis[0][0].n, smg.axis[1][0].n, smg.axis[2][0].n } };
}

/* Square of the norm of the residual over all ranks. */
static double smg_norm(void)
{
	double sum = 0, all, *r = smg.out[0];
	struct box box = smg_whole();
	for (int axis = 0; axis < AXES; axis++)
		smg_exchange(smg.grid[2][0].u, box, axis, 0, ALL);
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++) {
			smg_residual(2, 0, box, 0, smg_at(box, 0, y, z), r);
			for (int x = 1; x <= box.n[0]; x++)
				sum += r[x] * r[x];
		}
	double begin = now();
	MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	in_mpi += now() - begin;
	return all;
}

/* At a point of this rank's box or the layer around it, without asking a neighbour; 0 at walls. */
static double smg_solution(int x, int y, int z)
{
	int at[AXES] = { x, y, z }, index = 0;
	for (int axis = AXES - 1; axis >= 0; axis--) {
		int all = smg.m[axis] * smg.count[axis];
		at[axis] += smg.place[axis] * smg.m[axis];
		if (at[axis] % all == 0)
			return 0;
		index = index * all + at[axis];
	}
	return chance((uint32_t)index);
}

/* The rank that has a point of an axis, the others' places being this one's. */
static int smg_owner(int axis, int number, int stride)
{
	const int distance[AXES] = { 1, smg.count[0], smg.count[0] * smg.count[1] };
	if (number == 0 || number * stride == smg.m[axis] * smg.count[axis])
		return MPI_PROC_NULL;
	return bench.rank + ((number * stride - 1) / smg.m[axis] - smg.place[axis]) * distance[axis];
}

static void smg_levels(int axis)
{
	int begin = smg.place[axis] * smg.m[axis], end = begin + smg.m[axis], all = smg.count[axis] * smg.m[axis];
	int level = 0;
	for (int stride = 1; stride < all; stride *= 2) {
		int first = begin / stride + 1, last = end < all ? end / stride : all / stride - 1;
		int before = smg_owner(axis, first - 1, stride), behind = smg_owner(axis, last + 1, stride);
		smg.axis[axis][level++] = (struct axis){ first, last - first + 1, before, behind };
	}
	smg.levels[axis] = level;
}

static double *smg_claim(struct box box)
{
	return claim_doubles(smg_at(box, box.n[0] + 1, box.n[1] + 1, box.n[2] + 1) + 1);
}

/* A box of so many points for each of the ranks in this grid. */
static void smg_set_up(const int m[AXES], const int count[AXES])
{
	int rank = bench.rank;
	for (int axis = 0; axis < AXES; axis++) {
		smg.m[axis] = m[axis];
		smg.count[axis] = count[axis];
		smg.place[axis] = rank % count[axis];
		rank /= count[axis];
		smg_levels(axis);
	}
	struct box box = { { m[0], m[1], m[2] } };
	smg.whole = smg_claim(box);
	for (int axis = AXES - 1; axis >= 0; axis--) {
		for (int level = 0; level < smg.levels[axis]; level++) {
			box.n[axis] = smg.axis[axis][level].n;
			double *f = smg_claim(box);
			smg.grid[axis][level] = (struct grid){ axis > 0 ? smg_claim(box) : f, f };
		}
		box.n[axis] = (m[axis] + 1) / 2;
	}
	for (int side = 0; side < 2; side++) {
		int largest = m[0] * m[1] > m[0] * m[2] ? m[0] * m[1] : m[0] * m[2];
		smg.out[side] = claim_doubles(largest > m[1] * m[2] ? largest : m[1] * m[2]);
		smg.in[side] = claim_doubles(largest > m[1] * m[2] ? largest : m[1] * m[2]);
	}
}

static void smg_clear(void)
{
	struct box box = smg_whole();
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++)
			memset(smg.grid[2][0].u + smg_at(box, 1, y, z), 0, (size_t)box.n[0] * sizeof(double));
}

static void smg_right_hand(void)
{
	struct box box = smg_whole();
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++)
			for (int x = 1; x <= box.n[0]; x++)
				smg.grid[2][0].f[smg_at(box, x, y, z)] =
					6 * smg_solution(x, y, z) - smg_solution(x - 1, y, z) - smg_solution(x + 1, y, z) -
					smg_solution(x, y - 1, z) - smg_solution(x, y + 1, z) - smg_solution(x, y, z - 1) - smg_solution(x, y, z + 1);
}

static void smg_begin(size_t size)
{
	int side = (int)(size / sizeof(double)), short_edge = 1, count[AXES] = { 0 };
	if ((bench.ranks & (bench.ranks - 1)) != 0)
		bench_fail("SMG2000 needs a power of two of ranks");
	MPI_Dims_create(bench.ranks, AXES, count);
	while (4 * short_edge * short_edge <= side)
		short_edge *= 2;
	smg_set_up((int[AXES]){ side / short_edge, short_edge, short_edge }, count);
	smg_right_hand();
	smg.cycle = 0;
}

static void smg_step(void)
{
	if (smg.cycle == 0) {
		smg_clear();
		smg.norm = smg_norm();
	}
	smg_cycle(AXES - 1, 0, smg_whole(), 0);
	double before = smg.norm;
	smg.norm = smg_norm();
	if (!(smg.norm < SMG_SQUARE_BOUND * before))
		bench_fail("the residual of SMG2000 does not shrink");
	smg.cycle = (smg.cycle + 1) % SMG_CYCLES;
}

/* Some cycles from the start on a small box, by all ranks together or by each alone. */
static void smg_small(const int m[AXES], const int count[AXES])
{
	smg_set_up(m, count);
	smg_right_hand();
	smg_clear();
	for (int cycle = 0; cycle < SMALL_CYCLES; cycle++)
		smg_cycle(AXES - 1, 0, smg_whole(), 0);
}

/* What a cycle makes of a box does not depend on how many ranks share it. */
static void smg_verify_alone(void)
{
	const int *count = smg.count;
	const int all[AXES] = { count[0] * SMALL, count[1] * SMALL, count[2] * SMALL };
	smg_small((int[AXES]){ SMALL, SMALL, SMALL }, (int[AXES]){ count[0], count[1], count[2] });
	struct box box = smg_whole();
	const struct smg shared = smg;
	smg_small(all, (int[AXES]){ 1, 1, 1 });
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++)
			for (int x = 1; x <= box.n[0]; x++) {
				int at = smg_at(smg_whole(), x + shared.place[0] * SMALL, y + shared.place[1] * SMALL, z + shared.place[2] * SMALL);
				if (!(fabs(shared.grid[2][0].u[smg_at(box, x, y, z)] - smg.grid[2][0].u[at]) < ROUNDING))
					bench_fail("SMG2000 has another result than that of one rank");
			}
}

static void smg_verify(void)
{
	do
		smg_step();
	while (smg.cycle != 0);
	struct box box = smg_whole();
	for (int z = 1; z <= box.n[2]; z++)
		for (int y = 1; y <= box.n[1]; y++)
			for (int x = 1; x <= box.n[0]; x++)
				if (!(fabs(smg.grid[2][0].u[smg_at(box, x, y, z)] - smg_solution(x, y, z)) < SMG_BOUND))
					bench_fail("SMG2000 has found another solution");
	smg_verify_alone();
}

const struct kernel kernel_smg = {
	"SMG2000", "SMG2000, in MPI", "SMG2000, beside its data", 256, 16 << 10, smg_begin, smg_step, smg_verify,
};
