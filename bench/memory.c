/* Memory per rank after every rank has talked to every other: the proportional set size of each
 * process, averaged over the ranks (pages shared by several processes are divided among them),
 * while all of them are there. `init` is the same before the first message. */
#include <stdio.h>

#include "bench.h"

static double pss_megabytes(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kilobytes = -1;
	if (!file)
		bench_fail("cannot read /proc/self/smaps_rollup");
	while (fgets(line, sizeof line, file) && sscanf(line, "Pss: %ld", &kilobytes) != 1)
		;
	fclose(file);
	if (kilobytes < 0)
		bench_fail("no Pss in /proc/self/smaps_rollup");
	return (double)kilobytes / 1024;
}

static void talk_to_all(void)
{
	char out[8] = { 0 }, in[8];
	for (int step = 1; step < bench.ranks; step++) {
		int to = (bench.rank + step) % bench.ranks;
		int from = (bench.rank + bench.ranks - step) % bench.ranks;
		MPI_Sendrecv(out, 8, MPI_CHAR, to, 1, in, 8, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void report(const char *variant)
{
	bench_sync();
	double mean = bench_mean(pss_megabytes());
	bench_sync();
	if (bench.rank == 0)
		emit("memory", variant, (size_t)bench.ranks, (struct spread){ mean, mean, mean, 1 }, "MB");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "memory", 1, 8, 8);
	report("init");
	talk_to_all();
	report("");
	return bench_stop();
}
