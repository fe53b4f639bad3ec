#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_CONTROL = 9001, MOST_READINGS = 200, LEAST_READINGS = 5, TRIPS = 16, MOST_RANKS = 64 };

int bench_threads = MPI_THREAD_SINGLE;
struct bench bench;

static int pinning = 1;
static double loops_per_second;

static size_t parse_size(const char *text)
{
	char *end;
	size_t value = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		value <<= 10;
	else if (*end == 'M' || *end == 'm')
		value <<= 20;
	return value;
}

static void usage(void)
{
	if (bench.rank == 0)
		fprintf(stderr,
		        "usage: %s [--quick] [--seconds S] [--min SIZE] [--max SIZE] [--only VARIANT,...] [--no-pin]\n",
		        bench.name);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (strcmp(argv[i], "--quick") == 0)
			bench.quick = 1;
		else if (strcmp(argv[i], "--no-pin") == 0)
			pinning = 0;
		else if (value && strcmp(argv[i], "--seconds") == 0)
			bench.seconds = atof(argv[++i]);
		else if (value && strcmp(argv[i], "--min") == 0)
			bench.min = parse_size(argv[++i]);
		else if (value && strcmp(argv[i], "--max") == 0)
			bench.max = parse_size(argv[++i]);
		else if (value && strcmp(argv[i], "--only") == 0)
			bench.only = argv[++i];
		else
			usage();
	}
	if (!(bench.seconds > 0))
		usage();
}

void bench_start(int *argc, char ***argv, const char *name, int least_ranks, size_t min, size_t max)
{
	int provided;
	MPI_Init_thread(argc, argv, bench_threads, &provided);
	bench = (struct bench){ .name = name, .seconds = 0.2, .min = min, .max = max };
	MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &bench.ranks);
	parse(*argc, *argv);
	bench.cores = cores_allowed();
	if (provided < bench_threads)
		bench_fail("the library has no such thread support");
	if (bench.ranks < least_ranks)
		bench_fail("not enough ranks");
	/* After MPI_Init, because the rank is not known before; threads that the library has
	 * started by then stay where the launcher has put them, the same for every library. */
	if (pinning && bench.ranks <= bench.cores && pin_to(bench.rank) != 0)
		fprintf(stderr, "%s: rank %d cannot be pinned\n", name, bench.rank);
}

int bench_stop(void)
{
	MPI_Finalize();
	return 0;
}

void bench_fail(const char *text)
{
	fprintf(stderr, "%s: rank %d: %s\n", bench.name, bench.rank, text);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

int bench_wanted(const char *variant)
{
	size_t length = strlen(variant);
	for (const char *name = bench.only; name; name = *name ? name + 1 : NULL) {
		size_t its = strcspn(name, ",");
		if (its == length && strncmp(name, variant, length) == 0)
			return 1;
		name += its;
	}
	return !bench.only;
}

size_t bench_first(void)
{
	return bench.min;
}

size_t bench_next(size_t size)
{
	static const size_t few[] = { 8, 64, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20 };
	if (bench.quick)
		for (size_t i = 0; i < sizeof few / sizeof *few; i++)
			if (few[i] > size)
				return few[i];
	return size ? 2 * size : 1;
}

char *bench_buffer(size_t size)
{
	void *memory = NULL;
	if (posix_memalign(&memory, 4096, size ? size : 1) != 0)
		bench_fail("out of memory");
	memset(memory, 1, size ? size : 1);
	return memory;
}

static char pattern(size_t index, int seed)
{
	return (char)((index * 31 + (index >> 12) + (size_t)seed * 7) & 0xff);
}

void bench_fill(char *buffer, size_t size, int seed)
{
	for (size_t i = 0; i < size; i++)
		buffer[i] = pattern(i, seed);
}

void bench_check(const char *buffer, size_t size, int seed)
{
	for (size_t i = 0; i < size; i++)
		if (buffer[i] != pattern(i, seed))
			bench_fail("received data is wrong");
}

void bench_write(uint64_t *words, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size / sizeof *words; i++)
		words[i] = seed + i;
}

uint64_t bench_sum(const uint64_t *words, size_t size)
{
	uint64_t first = 0, second = 0, third = 0, fourth = 0;
	/* Four sums, so that reading waits for memory and not for the addition before. */
	for (size_t i = 0; i < size / sizeof *words; i += 4) {
		first += words[i];
		second += words[i + 1];
		third += words[i + 2];
		fourth += words[i + 3];
	}
	return first + second + third + fourth;
}

uint64_t bench_sum_of(size_t size, uint64_t seed)
{
	uint64_t n = size / sizeof seed;
	return n * seed + n * (n - 1) / 2;
}

double bench_share(double value)
{
	if (bench.rank != 0) {
		MPI_Recv(&value, 1, MPI_DOUBLE, 0, TAG_CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return value;
	}
	for (int peer = 1; peer < bench.ranks; peer++)
		MPI_Send(&value, 1, MPI_DOUBLE, peer, TAG_CONTROL, MPI_COMM_WORLD);
	return value;
}

double bench_mean(double value)
{
	if (bench.rank != 0) {
		MPI_Send(&value, 1, MPI_DOUBLE, 0, TAG_CONTROL, MPI_COMM_WORLD);
		return value;
	}
	double sum = value;
	for (int peer = 1; peer < bench.ranks; peer++) {
		MPI_Recv(&value, 1, MPI_DOUBLE, peer, TAG_CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sum += value;
	}
	return sum / bench.ranks;
}

void bench_sync(void)
{
	bench_mean(0);
	bench_share(0);
}

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

double bench_memory(void)
{
	bench_sync();
	double mean = bench_mean(pss_megabytes());
	bench_sync();
	return mean;
}

/* One batch on all ranks; its seconds on rank 0. */
static double batch(bench_body *body, size_t size, long count, int average)
{
	bench_share((double)count);
	bench_sync();
	double seconds = body(size, count);
	return average ? bench_mean(seconds) : seconds;
}

static void follow(bench_body *body, size_t size, int average)
{
	for (;;) {
		long count = (long)bench_share(0);
		if (count == 0)
			return;
		bench_sync();
		double seconds = body(size, count);
		if (average)
			bench_mean(seconds);
	}
}

struct spread bench_measure(bench_body *body, size_t size, int average)
{
	double readings[MOST_READINGS];
	if (bench.rank != 0) {
		follow(body, size, average);
		return (struct spread){ 0, 0, 0, 0 };
	}
	/* Double the count until a batch is a twentieth of the time; that also warms up. */
	double begin = now();
	long count = 1;
	double took = batch(body, size, count, average);
	while (took < bench.seconds / 20 && now() - begin < bench.seconds) {
		count *= took < bench.seconds / 200 ? 4 : 2;
		took = batch(body, size, count, average);
	}
	int n = 0;
	begin = now();
	while (n < LEAST_READINGS || (n < MOST_READINGS && now() - begin < bench.seconds)) {
		readings[n++] = batch(body, size, count, average) / (double)count;
		if (now() - begin > 20 * bench.seconds)
			break; /* very slow: what there is must do */
	}
	bench_share(0);
	return spread_of(readings, n);
}

int bench_is_apart(void)
{
	static int apart = -1;
	if (apart < 0) {
		MPI_Comm host;
		int here;
		MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
		MPI_Comm_size(host, &here);
		MPI_Comm_free(&host);
		/* Who is with all others is on the only host there is, and so are they. */
		apart = here < bench.ranks;
	}
	return apart;
}

/* What the clock of a rank is ahead of rank 0's, which reads it; `shortest` is the time of the round trip that says so. */
static double clock_ahead(int peer, double *shortest)
{
	double ahead = 0;
	*shortest = 1;
	for (int trip = 0; trip < TRIPS; trip++) {
		double begin = now(), theirs;
		MPI_Send(&begin, 1, MPI_DOUBLE, peer, TAG_CONTROL, MPI_COMM_WORLD);
		MPI_Recv(&theirs, 1, MPI_DOUBLE, peer, TAG_CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		double end = now();
		if (end - begin < *shortest) {
			*shortest = end - begin;
			ahead = theirs - (begin + end) / 2;
		}
	}
	return ahead;
}

static double moment_apart(int stop)
{
	double ahead[MOST_RANKS], told, own, farthest = 0;
	if (bench.rank != 0) {
		for (int trip = 0; trip < TRIPS; trip++) {
			MPI_Recv(&told, 1, MPI_DOUBLE, 0, TAG_CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			own = now();
			MPI_Send(&own, 1, MPI_DOUBLE, 0, TAG_CONTROL, MPI_COMM_WORLD);
		}
		MPI_Recv(&told, 1, MPI_DOUBLE, 0, TAG_CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return told;
	}
	if (bench.ranks > MOST_RANKS)
		bench_fail("too many ranks whose clocks differ");
	for (int peer = 1; peer < bench.ranks; peer++) {
		double trip;
		ahead[peer] = clock_ahead(peer, &trip);
		farthest = trip > farthest ? trip : farthest;
	}
	own = stop ? -1 : now() + 50e-6 * bench.ranks + 4 * farthest;
	for (int peer = 1; peer < bench.ranks; peer++) {
		told = stop ? -1 : own + ahead[peer];
		MPI_Send(&told, 1, MPI_DOUBLE, peer, TAG_CONTROL, MPI_COMM_WORLD);
	}
	return own;
}

double bench_moment(int stop)
{
	bench_sync(); /* nobody is still preparing when the moment is chosen */
	return bench_is_apart() ? moment_apart(stop) : bench_share(stop ? -1.0 : now() + 50e-6);
}

void bench_wait_until(double moment)
{
	while (now() < moment)
		;
}

static void work(long loops)
{
	unsigned long x = 1;
	for (long i = 0; i < loops; i++) {
		x = x * 6364136223846793005UL + 1442695040888963407UL;
		__asm__ volatile("" : "+r"(x));
	}
}

void bench_compute(double seconds)
{
	if (loops_per_second == 0) {
		const long loops = 100000;
		double best = 1;
		for (int i = 0; i < 50; i++) {
			double begin = now();
			work(loops);
			double took = now() - begin;
			best = took < best ? took : best;
		}
		loops_per_second = (double)loops / best;
	}
	work((long)(seconds * loops_per_second));
}
