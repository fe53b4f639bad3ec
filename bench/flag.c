/* The limit: two processes on two cores hand each other a flag in shared memory, without MPI.
 * `one_line`: both write the same cache line. `two_lines`: each writes its own, as a pair of
 * message rings does. The value is half a round trip. It also tells how the cores are placed at
 * this moment (virtual machines move), which is why it runs beside every benchmark. */
#define _GNU_SOURCE
#include "stats.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCHES = 31, STOP = -1, APART = 512 };

static atomic_long *flag(char *page, int index)
{
	return (atomic_long *)(page + index * APART);
}

static void await(atomic_long *f, long value)
{
	while (atomic_load_explicit(f, memory_order_acquire) != value)
		;
}

/* Answers every odd number seen in `in` with the next even one in `out`. */
static void answer(atomic_long *in, atomic_long *out)
{
	for (;;) {
		long seen = atomic_load_explicit(in, memory_order_acquire);
		if (seen == STOP)
			return;
		if (seen & 1)
			atomic_store_explicit(out, seen + 1, memory_order_release);
		while (atomic_load_explicit(in, memory_order_acquire) == seen)
			;
	}
}

static void measure(const char *variant, int lines, long rounds)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		perror("flag: mmap");
		exit(1);
	}
	atomic_long *there = flag(page, 0), *back = flag(page, lines - 1);
	pid_t child = fork();
	if (child < 0) {
		perror("flag: fork");
		exit(1);
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin_to(1);
		answer(there, back);
		_exit(0);
	}
	double readings[BATCHES + 1];
	long value = 1;
	for (int b = 0; b <= BATCHES; b++) {
		double start = now();
		for (long i = 0; i < rounds; i++, value += 2) {
			atomic_store_explicit(there, value, memory_order_release);
			await(back, value + 1);
		}
		readings[b] = (now() - start) / (double)rounds / 2;
	}
	atomic_store(there, STOP);
	waitpid(child, NULL, 0);
	munmap(page, 4096);
	emit("flag", variant, 8, scaled(spread_of(readings + 1, BATCHES), 1e6), "us");
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 2000;
	if (rounds <= 0) {
		fprintf(stderr, "usage: flag [ROUNDS]\n");
		return 2;
	}
	if (cores_allowed() < 2) {
		fprintf(stderr, "flag: needs two cores\n");
		return 1;
	}
	pin_to(0);
	measure("one_line", 1, rounds);
	measure("two_lines", 2, rounds);
	return 0;
}
