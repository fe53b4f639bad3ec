/* A sort of new keys, `size` bytes of them to each rank, by four digits of 8 bits. For each digit all tell all how many keys of each
 * value they have (1 KB), and send the keys to their places, a message from each to each. */
#include <string.h>

#include "kernels.h"

enum { BITS = 8, DIGITS = 1 << BITS, WORD = 32 };

/* Some bytes on their way. */
struct piece {
	void *at;
	int bytes;
};

static struct {
	int n;                                  /* keys of a rank */
	uint32_t *keys, *by_digit, *arrived;    /* as they are, by the digit of this pass, and from others */
	int (*count)[DIGITS], (*first)[DIGITS]; /* of each rank: keys of each digit, and their places among all keys */
	struct piece *out, *in;                 /* by rank */
	MPI_Request *requests;
	uint64_t state, sums[2];                /* sums of the keys as they were made */
} radix;

static void radix_swap(void)
{
	int n = 0;
	double begin = now();
	for (int step = 1; step < bench.ranks; step++) {
		int from = (bench.rank + bench.ranks - step) % bench.ranks;
		MPI_Irecv(radix.in[from].at, radix.in[from].bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &radix.requests[n++]);
	}
	for (int step = 1; step < bench.ranks; step++) {
		int to = (bench.rank + step) % bench.ranks;
		MPI_Isend(radix.out[to].at, radix.out[to].bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &radix.requests[n++]);
	}
	MPI_Waitall(n, radix.requests, MPI_STATUSES_IGNORE);
	in_mpi += now() - begin;
}

/* Sorts by a digit what this rank has, and tells all how many keys of each it is. */
static void radix_count(int shift)
{
	int *mine = radix.count[bench.rank], at[DIGITS], sum = 0;
	memset(mine, 0, sizeof radix.count[0]);
	for (int i = 0; i < radix.n; i++)
		mine[radix.keys[i] >> shift & (DIGITS - 1)]++;
	for (int d = 0; d < DIGITS; d++) {
		at[d] = sum;
		sum += mine[d];
	}
	for (int i = 0; i < radix.n; i++)
		radix.by_digit[at[radix.keys[i] >> shift & (DIGITS - 1)]++] = radix.keys[i];
	for (int rank = 0; rank < bench.ranks; rank++) {
		radix.out[rank] = (struct piece){ mine, sizeof radix.count[0] };
		radix.in[rank] = (struct piece){ radix.count[rank], sizeof radix.count[0] };
	}
	radix_swap();
	sum = 0;
	for (int d = 0; d < DIGITS; d++)
		for (int rank = 0; rank < bench.ranks; rank++) {
			radix.first[rank][d] = sum;
			sum += radix.count[rank][d];
		}
}

/* How many keys of a digit go from one rank to another, and the place of the first of them among those of the other. */
static int radix_common(int from, int digit, int to, int *place)
{
	int begin = radix.first[from][digit], end = begin + radix.count[from][digit];
	int low = to * radix.n, high = low + radix.n;
	begin = begin > low ? begin : low;
	end = end < high ? end : high;
	*place = begin - low;
	return end > begin ? end - begin : 0;
}

static int radix_between(int from, int to)
{
	int sum = 0, place;
	for (int d = 0; d < DIGITS; d++)
		sum += radix_common(from, d, to, &place);
	return sum * (int)sizeof(uint32_t);
}

/* What goes to a rank lies together, for places rise with digits; what comes from one is put into its places digit by digit. */
static void radix_move(void)
{
	char *out = (char *)radix.by_digit, *in = (char *)radix.arrived;
	for (int rank = 0; rank < bench.ranks; rank++) {
		radix.out[rank] = (struct piece){ out, radix_between(bench.rank, rank) };
		radix.in[rank] = (struct piece){ in, radix_between(rank, bench.rank) };
		out += radix.out[rank].bytes;
		in += radix.in[rank].bytes;
	}
	radix_swap();
	for (int rank = 0; rank < bench.ranks; rank++) {
		const uint32_t *from = rank == bench.rank ? radix.out[rank].at : radix.in[rank].at;
		for (int d = 0; d < DIGITS; d++) {
			int place, count = radix_common(rank, d, bench.rank, &place);
			if (count > 0)
				memcpy(radix.keys + place, from, (size_t)count * sizeof *from);
			from += count;
		}
	}
}

static void radix_sums(uint64_t sums[2])
{
	sums[0] = sums[1] = 0;
	for (int i = 0; i < radix.n; i++) {
		sums[0] += radix.keys[i];
		sums[1] += (uint64_t)radix.keys[i] * radix.keys[i];
	}
}

static void radix_step(void)
{
	for (int i = 0; i < radix.n; i++) {
		radix.state = radix.state * 6364136223846793005u + 1442695040888963407u;
		radix.keys[i] = (uint32_t)(radix.state >> 32);
	}
	radix_sums(radix.sums);
	for (int shift = 0; shift < WORD; shift += BITS) {
		radix_count(shift);
		radix_move();
	}
}

static void radix_begin(size_t size)
{
	size_t ranks = (size_t)bench.ranks;
	radix.n = (int)(size / sizeof *radix.keys);
	radix.keys = claim(size);
	radix.by_digit = claim(size);
	radix.arrived = claim(size);
	radix.count = claim(ranks * sizeof *radix.count);
	radix.first = claim(ranks * sizeof *radix.first);
	radix.out = claim(ranks * sizeof *radix.out);
	radix.in = claim(ranks * sizeof *radix.in);
	radix.requests = claim(2 * ranks * sizeof *radix.requests);
	radix.state = (uint64_t)bench.rank + 1;
}

/* What was sorted last: in order here and towards the next rank, and the same keys. */
static void radix_verify(void)
{
	radix_step();
	uint32_t next = UINT32_MAX, *keys = radix.keys;
	uint64_t sums[4], all[4];
	int before = bench.rank > 0 ? bench.rank - 1 : MPI_PROC_NULL;
	int behind = bench.rank + 1 < bench.ranks ? bench.rank + 1 : MPI_PROC_NULL;
	MPI_Sendrecv(keys, 1, MPI_UINT32_T, before, TAG, &next, 1, MPI_UINT32_T, behind, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < radix.n; i++)
		if (keys[i] > (i + 1 < radix.n ? keys[i + 1] : next))
			bench_fail("keys are out of order");
	radix_sums(sums);
	memcpy(sums + 2, radix.sums, sizeof radix.sums);
	MPI_Allreduce(sums, all, 4, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (all[0] != all[2] || all[1] != all[3])
		bench_fail("keys have got lost");
}

const struct kernel kernel_radix = {
	"Radix", "Radix, in MPI", "Radix, beside its data", 4 << 10, 1 << 20, radix_begin, radix_step, radix_verify,
};
