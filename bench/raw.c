/* The limit between two hosts: sockets without MPI, both sides spinning. `latency` is half a ping-pong over TCP and over
 * UDP, `bandwidth` a stream over TCP in writes of the given size, `rate` messages of 8 bytes, each in a system call of its own.
 *
 * usage: raw ADDRESS PORT [--quick] [--seconds S] [--max BYTES], started twice by a launcher that tells each its rank
 * (PMI_RANK). Rank 0 must have ADDRESS; rank 1 comes to it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stats.h"

enum { BATCHES = 31, DATAGRAM_MAX = 1472, PATIENCE_S = 10, TOKEN = 8, RATE_BATCH = 4096 };

static int rank, stream, datagrams, quick;
static double seconds = 0.2;
static size_t largest = 4 << 20;
static char *memory;
static double last_heard;

static void fail(const char *what)
{
	fprintf(stderr, "raw: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Nothing here waits for ever. */
static void check_patience(void)
{
	if (now() - last_heard > PATIENCE_S) {
		errno = ETIMEDOUT;
		fail("the other side");
	}
}

static void heard(void)
{
	last_heard = now();
}

static void send_all(const char *data, size_t length)
{
	heard();
	while (length > 0) {
		ssize_t sent = send(stream, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN)
			fail("send");
		if (sent > 0) {
			data += sent;
			length -= (size_t)sent;
		} else {
			check_patience();
		}
	}
}

static void receive_all(char *data, size_t length)
{
	heard();
	while (length > 0) {
		ssize_t got = recv(stream, data, length, MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno != EAGAIN))
			fail("recv");
		if (got > 0) {
			data += got;
			length -= (size_t)got;
		} else {
			check_patience();
		}
	}
}

static void send_datagram(size_t length)
{
	while (send(datagrams, memory, length, 0) < 0)
		if (errno != EAGAIN && errno != ENOBUFS && errno != ECONNREFUSED)
			fail("send of a datagram");
}

/* One lost datagram ends the measurement: on a cable that is a pair of namespaces there is none. */
static void receive_datagram(size_t length)
{
	heard();
	while (recv(datagrams, memory, length, MSG_DONTWAIT) < 0) {
		if (errno != EAGAIN && errno != ECONNREFUSED)
			fail("recv of a datagram");
		check_patience();
	}
}

static void tcp_round(size_t size)
{
	if (rank == 0)
		send_all(memory, size);
	receive_all(memory, size);
	if (rank == 1)
		send_all(memory, size);
}

static void udp_round(size_t size)
{
	if (rank == 0)
		send_datagram(size);
	receive_datagram(size);
	if (rank == 1)
		send_datagram(size);
}

/* Data of rank 0 in writes of `size`, and an answer. */
static void stream_round(size_t size)
{
	size_t writes = size < 65536 ? 1024 * 1024 / size : 16;
	for (size_t i = 0; i < writes; i++) {
		if (rank == 0)
			send_all(memory, size);
		else
			receive_all(memory, size);
	}
	char token[TOKEN] = { 0 };
	if (rank == 0)
		receive_all(token, TOKEN);
	else
		send_all(token, TOKEN);
}

static void rate_round(size_t size)
{
	if (rank == 0)
		for (int i = 0; i < RATE_BATCH; i++)
			send_all(memory, size);
	else
		receive_all(memory, size * RATE_BATCH);
	char token[TOKEN] = { 0 };
	if (rank == 0)
		receive_all(token, TOKEN);
	else
		send_all(token, TOKEN);
}

/* Rounds per batch so that all batches take the time wanted: rank 0 says. */
static uint64_t agreed(uint64_t count)
{
	if (rank == 0)
		send_all((char *)&count, sizeof count);
	else
		receive_all((char *)&count, sizeof count);
	return count;
}

static struct spread measured(void (*round)(size_t), size_t size)
{
	double readings[BATCHES];
	double start = now();
	for (int i = 0; i < 3; i++)
		round(size);
	double each = (now() - start) / 3;
	uint64_t count = agreed((uint64_t)(seconds / BATCHES / each) + 1);
	for (int b = 0; b < BATCHES; b++) {
		start = now();
		for (uint64_t i = 0; i < count; i++)
			round(size);
		readings[b] = (now() - start) / (double)count;
	}
	return spread_of(readings, BATCHES);
}

static void report(const char *name, const char *variant, size_t size, struct spread s, const char *unit)
{
	if (rank == 0)
		emit(name, variant, size, s, unit);
}

static struct sockaddr_in address_of(const char *text, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
		errno = EINVAL;
		fail(text);
	}
	return address;
}

/* Both sides of a TCP connection, and UDP sockets at the same addresses and ports. */
static void connect_both(struct sockaddr_in address)
{
	struct sockaddr_in other;
	socklen_t length = sizeof other;
	int one = 1;
	heard();
	if (rank == 0) {
		int listener = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1))
			fail("listen");
		struct pollfd wait = { .fd = listener, .events = POLLIN };
		if (poll(&wait, 1, PATIENCE_S * 1000) != 1)
			fail("nobody came");
		stream = accept(listener, (struct sockaddr *)&other, &length);
		close(listener);
	} else {
		for (;;) {
			stream = socket(AF_INET, SOCK_STREAM, 0);
			if (connect(stream, (struct sockaddr *)&address, sizeof address) == 0)
				break;
			close(stream);
			check_patience();
			usleep(10000);
		}
		other = address;
	}
	if (stream < 0)
		fail("connection");
	setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct sockaddr_in own;
	length = sizeof own;
	datagrams = socket(AF_INET, SOCK_DGRAM, 0);
	if (getsockname(stream, (struct sockaddr *)&own, &length) ||
	    bind(datagrams, (struct sockaddr *)&own, sizeof own) ||
	    connect(datagrams, (struct sockaddr *)&other, sizeof other))
		fail("datagrams");
	agreed(0);
	tcp_round(1); /* both have a socket for datagrams now */
}

static void options(int argc, char **argv)
{
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0)
			quick = 1;
		else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
			seconds = atof(argv[++i]);
		else if (strcmp(argv[i], "--max") == 0 && i + 1 < argc)
			largest = strtoul(argv[++i], NULL, 10);
		else {
			fprintf(stderr, "raw: unknown option %s\n", argv[i]);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	const char *told = getenv("PMI_RANK");
	if (argc < 3 || !told) {
		fprintf(stderr, "usage: raw ADDRESS PORT [--quick] [--seconds S] [--max BYTES], as two ranks\n");
		return 2;
	}
	rank = atoi(told);
	options(argc, argv);
	cores_allowed();
	pin_to(rank);
	memory = calloc(1, largest > 65536 ? largest : 65536);
	if (!memory)
		fail("memory");
	connect_both(address_of(argv[1], atoi(argv[2])));
	for (size_t size = 8; size <= largest; size *= quick ? 8 : 2)
		report("latency", "tcp", size, scaled(measured(tcp_round, size), 0.5e6), "us");
	for (size_t size = 8; size <= DATAGRAM_MAX; size *= quick ? 8 : 2)
		report("latency", "udp", size, scaled(measured(udp_round, size), 0.5e6), "us");
	report("rate", "tcp", 8, rate_of(measured(rate_round, 8), RATE_BATCH * 1e-6), "M/s");
	for (size_t size = 4096; size <= largest; size *= quick ? 8 : 2) {
		double bytes = size < 65536 ? 1024.0 * 1024 : 16.0 * (double)size;
		report("bandwidth", "tcp", size, rate_of(measured(stream_round, size), bytes * 1e-9), "GB/s");
	}
	return 0;
}
