/* Ways into the kernel for what goes over a TCP connection, side by side in one run: calls, io_uring, splice, lent pages.
 * `latency` is half a ping-pong, `stream` one way in messages of the given size with an answer behind 1 to 4 MB, `cpu` what both
 * sides took of the processor for it. Every byte is written before it is sent and looked at when it has come.
 *
 * usage: sockets ADDRESS PORT [--ways NAME,...] [--rounds N] [--seconds S] [--only latency|stream] [--seed N] [--shift BYTES]
 *
 * By itself it makes two processes of itself. Started twice by a launcher that tells each its rank (PMI_RANK), as `raw` is, rank 0
 * must have ADDRESS; rank 1 comes to it. In a round each way has its turn with each length, in an order by chance, over a connection
 * of its own. Memory that is sent begins a page, or lies so many bytes behind (a multiple of 8): by its place copies are fast or
 * slow. `ratio` is the time over that of `calls` in the same round. What the kernel does not know or allow is left out, with a line. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stats.h"
#include "ways.h"

enum { BATCHES = 15, ROUNDS_MAX = 64, WAYS_MAX = 16, TOKEN = 8, AREA = 4 << 20 };

static const struct measure {
	const char *name;
	size_t size;
	int messages; /* of a round; 0: a ping-pong */
} measures[] = {
	{ "latency", 8, 0 },	 { "latency", 1024, 0 },  { "latency", 8192, 0 },
	{ "stream", 4096, 256 }, { "stream", 65536, 32 }, { "stream", 1 << 20, 4 },
};
enum { MEASURES = sizeof measures / sizeof measures[0], TURNS_MAX = WAYS_MAX * MEASURES };

/* A turn of one way with one measure; rank 0 says which is next. */
struct turn {
	int way, measure;
};

/* What came of it: seconds of a round, and those of both processors. */
struct reading {
	double each, processor;
};

static int rank, ways_known, rounds = 9, listener = -1, control;
static unsigned seed = 1;
static size_t shift;
static double seconds = 0.1;
static const char *only, *wanted;
static char *sent, *got;
static struct sockaddr_in address;
static struct reading readings[WAYS_MAX][MEASURES][ROUNDS_MAX];

static void write_message(char *data, size_t size, int number)
{
	memset(data, number, size);
}

static void read_message(const char *data, size_t size, int number)
{
	uint64_t expected, wrong = 0;
	memset(&expected, number, sizeof expected);
	for (size_t at = 0; at < size; at += sizeof expected) {
		uint64_t word;
		memcpy(&word, data + at, sizeof word);
		wrong |= word ^ expected;
	}
	if (wrong) {
		errno = EBADMSG;
		fail(way->name);
	}
}

static void send_own(size_t size, int number)
{
	take_back_all();
	write_message(sent, size, number);
	struct iovec piece = { sent, size };
	way->send(&piece, 1, 1);
}

static void receive_own(size_t size, int number)
{
	way->receive(got, size);
	read_message(got, size, number);
}

static void exchange(size_t size, int number)
{
	if (rank == 0)
		send_own(size, number);
	receive_own(size, number);
	if (rank == 1)
		send_own(size, number);
}

/* Each message of a round has memory of its own, which is written again after the answer. */
static void stream_round(const struct measure *measure, int number)
{
	size_t size = measure->size;
	int together = way->traits & GATHERS ? TOGETHER : 1;
	if (rank == 1) {
		for (int i = 0; i < measure->messages; i++) {
			way->receive(got + (size_t)i * size, size);
			read_message(got + (size_t)i * size, size, number + i);
		}
		send_own(TOKEN, number);
		return;
	}
	take_back_all();
	for (int i = 0; i < measure->messages; i += together) {
		struct iovec pieces[TOGETHER];
		for (int k = 0; k < together; k++) {
			char *data = sent + (size_t)(i + k) * size;
			write_message(data, size, number + i + k);
			pieces[k] = (struct iovec){ data, size };
		}
		way->send(pieces, together, 0);
	}
	receive_own(TOKEN, number);
}

static void play(const struct measure *measure, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		if (measure->messages > 0)
			stream_round(measure, (int)i);
		else
			exchange(measure->size, (int)i);
}

static double processor_seconds(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Says something to the other rank beside what is measured, or hears it. */
static void tell(void *what, size_t length, int from)
{
	ssize_t done = rank == from ? send(control, what, length, MSG_NOSIGNAL) : recv(control, what, length, MSG_WAITALL);
	if (done != (ssize_t)length)
		fail("the other side");
}

static void meet(void)
{
	char nothing = 0;
	tell(&nothing, 1, 0);
	tell(&nothing, 1, 1);
}

static int connection(void)
{
	int one = 1, made = -1;
	for (int tries = 0; rank == 1 && tries < 1000; tries++) {
		made = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(made, (struct sockaddr *)&address, sizeof address) == 0)
			break;
		close(made);
		made = -1;
		usleep(10000);
	}
	if (rank == 0)
		made = accept(listener, NULL, NULL);
	if (made < 0)
		fail("connection");
	setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return made;
}

static void listen_here(void)
{
	int one = 1;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4))
		fail("listen");
}

static struct reading take_turn(struct turn turn)
{
	const struct measure *measure = &measures[turn.measure];
	double batches[BATCHES];
	alarm(PATIENCE_S); /* nothing here waits for ever */
	way = &ways[turn.way];
	stream = connection();
	int error = begin_way();
	if (error) {
		errno = error;
		fail(way->name);
	}
	meet();
	uint64_t warm = measure->messages ? 4 : 200;
	play(measure, warm);
	double start = now();
	play(measure, warm);
	uint64_t count = (uint64_t)(seconds / BATCHES / (now() - start) * (double)warm) + 1;
	settle();
	tell(&count, sizeof count, 0);
	double used = processor_seconds();
	for (int b = 0; b < BATCHES; b++) {
		start = now();
		play(measure, count);
		batches[b] = (now() - start) / (double)count;
	}
	settle();
	used = processor_seconds() - used;
	double other = used;
	tell(&other, sizeof other, 1);
	meet();
	end_way();
	return (struct reading){ spread_of(batches, BATCHES).mid, (used + other) / (double)(BATCHES * count) };
}

static int is_listed(const char *name)
{
	const char *at = wanted;
	size_t length = strlen(name);
	while (at && (at = strstr(at, name))) {
		if ((at == wanted || at[-1] == ',') && (at[length] == ',' || at[length] == 0))
			return 1;
		at += length;
	}
	return !wanted;
}

/* Which ways both sides have, by bits. */
static uint64_t ways_had(void)
{
	uint64_t own = 0, other;
	for (ways_known = 0; ways[ways_known].name; ways_known++) {
		way = &ways[ways_known];
		if (!is_listed(way->name))
			continue;
		int error = begin_way();
		if (error)
			fprintf(stderr, "sockets: %s is left out: %s\n", way->name, strerror(error));
		else
			own |= 1ULL << ways_known;
		if (!error)
			end_way();
	}
	other = own;
	tell(&other, sizeof other, 1);
	own &= other;
	tell(&own, sizeof own, 0);
	return own;
}

static int is_of_use(int w, const struct measure *measure)
{
	int is_short = measure->messages > 0 && measure->size <= 4096;
	return (!only || strcmp(only, measure->name) == 0) && (!(ways[w].traits & GATHERS) || is_short);
}

static void report(int w, int m)
{
	const struct measure *measure = &measures[m];
	double each[ROUNDS_MAX], used[ROUNDS_MAX], ratio[ROUNDS_MAX];
	double bytes = (double)measure->size * (measure->messages ? measure->messages : 2);
	for (int r = 0; r < rounds; r++) {
		each[r] = readings[w][m][r].each;
		used[r] = readings[w][m][r].processor;
		ratio[r] = each[r] / readings[0][m][r].each;
	}
	if (measure->messages)
		emit("stream", ways[w].name, measure->size, rate_of(spread_of(each, rounds), bytes * 1e-9), "GB/s");
	else
		emit("latency", ways[w].name, measure->size, scaled(spread_of(each, rounds), 0.5e6), "us");
	if (measure->messages)
		emit("cpu", ways[w].name, measure->size, scaled(spread_of(used, rounds), 1e9 / bytes), "s/GB");
	else
		emit("cpu", ways[w].name, measure->size, scaled(spread_of(used, rounds), 0.5e6), "us");
	if (readings[0][m][0].each > 0)
		emit("ratio", ways[w].name, measure->size, spread_of(ratio, rounds), measure->name);
}

static void lead(uint64_t had)
{
	struct turn turns[TURNS_MAX];
	int count = 0;
	for (int w = 0; w < ways_known; w++)
		for (int m = 0; m < MEASURES; m++)
			if (had >> w & 1 && is_of_use(w, &measures[m]))
				turns[count++] = (struct turn){ w, m };
	srand(seed);
	for (int r = 0; r < rounds; r++)
		for (int left = count; left > 0; left--) {
			int k = rand() % left;
			struct turn turn = turns[k];
			turns[k] = turns[left - 1];
			turns[left - 1] = turn;
			tell(&turn, sizeof turn, 0);
			readings[turn.way][turn.measure][r] = take_turn(turn);
		}
	struct turn end = { -1, -1 };
	tell(&end, sizeof end, 0);
	for (int m = 0; m < MEASURES; m++)
		for (int w = 0; w < ways_known; w++)
			if (readings[w][m][0].each > 0)
				report(w, m);
}

static void follow(void)
{
	struct turn turn;
	for (tell(&turn, sizeof turn, 0); turn.way >= 0; tell(&turn, sizeof turn, 0))
		take_turn(turn);
}

static void options(int argc, char **argv)
{
	for (int i = 3; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--ways") == 0)
			wanted = argv[i + 1];
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--seconds") == 0)
			seconds = atof(argv[i + 1]);
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
		else if (strcmp(argv[i], "--seed") == 0)
			seed = (unsigned)atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--shift") == 0)
			shift = strtoul(argv[i + 1], NULL, 10) % 4096;
		else {
			fprintf(stderr, "sockets: %s is not known\n", argv[i]);
			exit(2);
		}
	}
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "sockets: --rounds must be 1 to %d\n", ROUNDS_MAX);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc % 2 == 0) {
		fprintf(stderr, "usage: sockets ADDRESS PORT [--ways NAME,...] [--rounds N] [--seconds S] [--only MEASURE]\n");
		return 2;
	}
	options(argc, argv);
	address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2])) };
	if (inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
		errno = EINVAL;
		fail(argv[1]);
	}
	const char *told = getenv("PMI_RANK");
	int child = told ? -1 : fork();
	rank = told ? atoi(told) : child == 0;
	alarm(PATIENCE_S);
	cores_allowed();
	pin_to(rank);
	epoll = epoll_create1(0);
	sent = aligned_alloc(4096, AREA + 4096);
	got = aligned_alloc(4096, AREA);
	if (epoll < 0 || !sent || !got)
		fail("memory");
	sent += shift;
	if (rank == 0)
		listen_here();
	control = connection();
	uint64_t had = ways_had();
	if (rank == 0)
		lead(had);
	else
		follow();
	int status = 0;
	if (child > 0 && (wait(&status) < 0 || status != 0))
		return 1;
	return 0;
}
