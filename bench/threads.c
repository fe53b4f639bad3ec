/* Several threads of each rank in blocking collectives at once (MPI_THREAD_MULTIPLE), each with a communicator of its own: the time
 * that each waits for an allreduce of one number, by the number of threads (the size). `beside_1`: beside one more thread of each
 * rank that only computes. `in_work`: each thread computes for some 40 us before it. */
#include <pthread.h>
#include <stdatomic.h>

#include "bench.h"

enum { MOST = 4 };

static MPI_Comm own[MOST];
static const double work_seconds = 40e-6;
static int computing; /* threads beside those that communicate */
static int in_work;

static struct {
	long count;
	atomic_int ended;
	double took[MOST];
} task;

static void *reduce_often(void *at)
{
	int thread = *(int *)at;
	double start = now();
	for (long i = 0; i < task.count; i++) {
		int one = bench.rank + thread, sum = 0;
		if (in_work)
			bench_compute(work_seconds);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own[thread]);
		if (sum != bench.ranks * (bench.ranks - 1) / 2 + bench.ranks * thread)
			bench_fail("a sum is wrong");
	}
	task.took[thread] = now() - start;
	return NULL;
}

static void *compute(void *unused)
{
	while (!atomic_load(&task.ended))
		bench_compute(10e-6);
	return unused;
}

static void begin(pthread_t *thread, void *(*body)(void *), void *argument)
{
	if (pthread_create(thread, NULL, body, argument) != 0)
		bench_fail("no thread can be made");
}

/* In `size` threads: the longest of their times. */
static double reduce(size_t size, long count)
{
	pthread_t threads[MOST], beside;
	int numbers[MOST];
	task.count = count;
	atomic_store(&task.ended, 0);
	if (computing)
		begin(&beside, compute, NULL);
	for (size_t i = 0; i < size; i++) {
		numbers[i] = (int)i;
		begin(&threads[i], reduce_often, &numbers[i]);
	}
	double longest = 0;
	for (size_t i = 0; i < size; i++) {
		pthread_join(threads[i], NULL);
		longest = task.took[i] > longest ? task.took[i] : longest;
	}
	atomic_store(&task.ended, 1);
	if (computing)
		pthread_join(beside, NULL);
	return longest;
}

static void measure(const char *variant)
{
	if (!bench_wanted(variant))
		return;
	for (size_t size = 1; size <= MOST; size *= 2) {
		struct spread s = bench_measure(reduce, size, 0);
		if (bench.rank == 0)
			emit("threads", variant, size, scaled(s, 1e6), "us");
	}
}

int main(int argc, char **argv)
{
	bench_threads = MPI_THREAD_MULTIPLE;
	bench_start(&argc, &argv, "threads", 2, 1, MOST);
	for (int i = 0; i < MOST; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
	bench_compute(work_seconds); /* finds out how fast this core is, before there are threads */
	measure("allreduce");
	in_work = 1;
	measure("in_work");
	in_work = 0;
	computing = 1;
	measure("beside_1");
	return bench_stop();
}
