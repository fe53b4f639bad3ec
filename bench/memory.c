/* Memory per rank after every rank has talked to every other: the proportional set size of each
 * process, averaged over the ranks (pages shared by several processes are divided among them),
 * while all of them are there. `init` is the same before the first message, `neighbours` after one exchange with the
 * ranks beside this one and those a quarter of the job away, as on a grid; `peer` what each of the farther half of
 * the peers has added: with four hosts or more and ranks in blocks these are all on other hosts. `used` is what a job
 * takes that has spoken for longer: after 16 exchanges of 8 bytes with everybody, and after 16 more of 4 KB. */
#include "bench.h"

enum { OFTEN = 16, SHORT = 8, LONG = 4096 };

/* Exchanges with the ranks that are at least `first`, and fewer than `end`, places away in either direction. */
static void talk(int first, int end, int len)
{
	char out[LONG] = { 0 }, in[LONG];
	for (int step = first; step < end; step++) {
		int to = (bench.rank + step) % bench.ranks;
		int from = (bench.rank + bench.ranks - step) % bench.ranks;
		MPI_Sendrecv(out, len, MPI_CHAR, to, 1, in, len, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

/* What a job takes in which everybody has exchanged messages of this length with everybody often. */
static double used(int len)
{
	for (int time = 0; time < OFTEN; time++)
		talk(1, bench.ranks / 2 + 1, len);
	return bench_memory();
}

static void print(const char *variant, double value, const char *unit)
{
	if (bench.rank == 0)
		emit("memory", variant, (size_t)bench.ranks, (struct spread){ value, value, value, 1 }, unit);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "memory", 1, 8, 8);
	int quarter = bench.ranks / 4, half = bench.ranks / 2;
	print("init", bench_memory(), "MB");
	talk(1, 2, SHORT);
	talk(quarter, quarter + 1, SHORT);
	print("neighbours", bench_memory(), "MB");
	talk(1, quarter + 1, SHORT);
	double near = bench_memory();
	/* Each step up to the half has two new peers, and what is beyond has none. */
	talk(quarter + 1, half + 1, SHORT);
	double all = bench_memory();
	print("", all, "MB");
	if (half > quarter)
		print("peer", (all - near) * 1024 / (bench.ranks - 1 - 2 * quarter), "KB");
	print("used, 8 B", used(SHORT), "MB");
	print("used, 4 KB", used(LONG), "MB");
	return bench_stop();
}
