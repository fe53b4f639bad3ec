/* How evenly threads get on with MPI_THREAD_MULTIPLE: each thread of rank 0 has a ping-pong of 8 bytes with its partner
 * of rank 1, all at the same time, for a given time. `world`: told apart by tag; `own`: by communicator.
 * `share` is the round trips of the fastest thread over those of the slowest, `rate` those of all in a second. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

enum { MOST_THREADS = 64 };

static struct partner {
	pthread_t thread;
	MPI_Comm comm;
	int tag;
	long trips;
} partners[MOST_THREADS];

static int rank, threads = 8;
static double seconds = 5, until;
static pthread_barrier_t all_here;

static void fail(const char *text)
{
	fprintf(stderr, "fair: rank %d: %s\n", rank, text);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

/* Rank 0 counts until the time is over, which it says by a negative number. */
static void *lead(void *argument)
{
	struct partner *me = argument;
	long trip = 0, back;
	pthread_barrier_wait(&all_here);
	while (trip >= 0) {
		trip = now() < until ? me->trips + 1 : -1;
		MPI_Send(&trip, 1, MPI_LONG, 1, me->tag, me->comm);
		MPI_Recv(&back, 1, MPI_LONG, 1, me->tag, me->comm, MPI_STATUS_IGNORE);
		if (back != trip)
			fail("received data is wrong");
		me->trips += trip >= 0;
	}
	return NULL;
}

static void *follow(void *argument)
{
	struct partner *me = argument;
	long trip = 0;
	pthread_barrier_wait(&all_here);
	while (trip >= 0) {
		MPI_Recv(&trip, 1, MPI_LONG, 0, me->tag, me->comm, MPI_STATUS_IGNORE);
		MPI_Send(&trip, 1, MPI_LONG, 0, me->tag, me->comm);
	}
	return NULL;
}

static void run(const char *variant, int own)
{
	char name[64];
	for (int i = 0; i < threads; i++) {
		partners[i] = (struct partner){ .comm = MPI_COMM_WORLD, .tag = i };
		if (own)
			MPI_Comm_dup(MPI_COMM_WORLD, &partners[i].comm);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	until = now() + seconds;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&partners[i].thread, NULL, rank == 0 ? lead : follow, &partners[i]) != 0)
			fail("a thread could not be started");
	long least = -1, most = 0, sum = 0;
	for (int i = 0; i < threads; i++) {
		pthread_join(partners[i].thread, NULL);
		long trips = partners[i].trips;
		least = least < 0 || trips < least ? trips : least;
		most = trips > most ? trips : most;
		sum += trips;
		if (own)
			MPI_Comm_free(&partners[i].comm);
	}
	if (rank != 0)
		return;
	double share = (double)most / (double)(least > 0 ? least : 1), rate = (double)sum / seconds * 1e-3;
	snprintf(name, sizeof name, "%s share", variant);
	emit("fair", name, (size_t)threads, (struct spread){ share, share, share, 1 }, "ratio");
	snprintf(name, sizeof name, "%s rate", variant);
	emit("fair", name, (size_t)threads, (struct spread){ rate, rate, rate, 1 }, "k/s");
}

int main(int argc, char **argv)
{
	int provided, ranks;
	const char *only = NULL;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seconds") == 0)
			seconds = atof(argv[i + 1]);
		else if (strcmp(argv[i], "--threads") == 0)
			threads = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
		else
			fail("usage: fair [--seconds S] [--threads N] [--only world|own]");
	}
	if (ranks != 2 || threads < 1 || threads > MOST_THREADS || !(seconds > 0))
		fail("needs two ranks, 1 to 64 threads and some time");
	if (provided != MPI_THREAD_MULTIPLE)
		fail("the library has no MPI_THREAD_MULTIPLE");
	pthread_barrier_init(&all_here, NULL, (unsigned)threads);
	if (!only || strcmp(only, "world") == 0)
		run("world", 0);
	if (!only || strcmp(only, "own") == 0)
		run("own", 1);
	MPI_Finalize();
	return 0;
}
