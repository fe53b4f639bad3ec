/* A link between two network namespaces that is as slow, as far and as bad as it is told to be, where the kernel has no netem:
 * a TUN device in each, and this program between them. All that goes over IP goes over it: TCP, UDP, and whoever is
 * measured beside whom.
 *
 * usage: link NAMESPACE NAMESPACE [--mbit RATE] [--delay MICROSECONDS] [--queue BYTES] [--loss PERCENT] [--double PERCENT]
 *             [--late PERCENT] [--seed NUMBER]
 *
 * Each direction has a port of that rate, in front of which so many bytes may wait; more are dropped (as by a switch). Behind
 * the port a packet is lost, comes twice, or comes late by chance, from the seed, and else after the delay. It says
 * `ready` when both devices, `link0`, are there, and what it has carried and lost when it is ended by SIGTERM. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKET_MAX = 65536, WAITING_MAX = 8192, BATCH = 64 };

struct packet {
	int64_t due_ns;
	size_t length;
	char *bytes;
};

/* Packets under way to a device, by when they are due. */
struct way {
	int into;
	int64_t port_free_ns;
	size_t count;
	struct packet packets[WAITING_MAX];
};

static struct way ways[2];
static double mbit = 1000, loss, doubled, late;
static int64_t delay_ns = 50000, queue_bytes = 256 << 10;
static uint64_t seed = 1, carried, lost, overflowed;
static volatile sig_atomic_t is_over;

static void fail(const char *what)
{
	fprintf(stderr, "link: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void end(int signal)
{
	(void)signal;
	is_over = 1;
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Numbers between 0 and 100 from the seed (splitmix64). */
static double percent(void)
{
	uint64_t x = seed += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (double)((x ^ x >> 31) >> 11) * 100 / (double)(1ULL << 53);
}

static int device(const char *namespace)
{
	char path[256];
	snprintf(path, sizeof path, "/run/netns/%s", namespace);
	int inside = open(path, O_RDONLY | O_CLOEXEC);
	if (inside < 0 || setns(inside, CLONE_NEWNET) < 0)
		fail(path);
	close(inside);
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	strcpy(request.ifr_name, "link0");
	int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tun < 0 || ioctl(tun, TUNSETIFF, &request) < 0)
		fail("a TUN device");
	return tun;
}

static void enqueue(struct way *way, const char *bytes, size_t length, int64_t due_ns)
{
	if (way->count == WAITING_MAX) {
		overflowed++;
		return;
	}
	size_t at = way->count++;
	for (; at > 0 && way->packets[at - 1].due_ns > due_ns; at--)
		way->packets[at] = way->packets[at - 1];
	char *copy = malloc(length);
	if (!copy)
		fail("memory");
	way->packets[at] = (struct packet){ due_ns, length, memcpy(copy, bytes, length) };
}

/* A packet of this length comes to the port. */
static void carry(struct way *way, const char *bytes, size_t length, int64_t now)
{
	double ns_per_byte = 8000 / mbit;
	int64_t begin = way->port_free_ns > now ? way->port_free_ns : now;
	if ((double)(begin - now) > (double)queue_bytes * ns_per_byte) {
		overflowed++;
		return;
	}
	way->port_free_ns = begin + (int64_t)((double)length * ns_per_byte);
	carried++;
	if (percent() < loss) {
		lost++;
		return;
	}
	int64_t due_ns = way->port_free_ns + delay_ns;
	if (percent() < late)
		due_ns += 4 * delay_ns;
	enqueue(way, bytes, length, due_ns);
	if (percent() < doubled)
		enqueue(way, bytes, length, due_ns);
}

static void take(int from, struct way *way)
{
	static char bytes[PACKET_MAX];
	for (int i = 0; i < BATCH; i++) {
		ssize_t got = read(from, bytes, sizeof bytes);
		if (got <= 0)
			return;
		carry(way, bytes, (size_t)got, now_ns());
	}
}

/* Delivers what is due; when the next is. */
static int64_t deliver(struct way *way)
{
	size_t done = 0;
	int64_t now = now_ns();
	while (done < way->count && way->packets[done].due_ns <= now) {
		ssize_t written = write(way->into, way->packets[done].bytes, way->packets[done].length);
		(void)written; /* what the device does not take is lost */
		free(way->packets[done++].bytes);
	}
	way->count -= done;
	memmove(way->packets, way->packets + done, way->count * sizeof way->packets[0]);
	return way->count > 0 ? way->packets[0].due_ns : INT64_MAX;
}

static void parse(int argc, char **argv)
{
	for (int i = 3; i + 1 < argc; i += 2) {
		double value = atof(argv[i + 1]);
		if (!strcmp(argv[i], "--mbit"))
			mbit = value;
		else if (!strcmp(argv[i], "--delay"))
			delay_ns = (int64_t)(value * 1000);
		else if (!strcmp(argv[i], "--queue"))
			queue_bytes = (int64_t)value;
		else if (!strcmp(argv[i], "--loss"))
			loss = value;
		else if (!strcmp(argv[i], "--double"))
			doubled = value;
		else if (!strcmp(argv[i], "--late"))
			late = value;
		else if (!strcmp(argv[i], "--seed"))
			seed = (uint64_t)value;
		else {
			fprintf(stderr, "link: %s is not known\n", argv[i]);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc % 2 == 0) {
		fprintf(stderr, "usage: link NAMESPACE NAMESPACE [--loss PERCENT ...]\n");
		return 2;
	}
	parse(argc, argv);
	struct sigaction action = { .sa_handler = end };
	sigaction(SIGTERM, &action, NULL);
	struct pollfd devices[2];
	for (int i = 0; i < 2; i++) {
		devices[i] = (struct pollfd){ device(argv[i + 1]), POLLIN, 0 };
		ways[1 - i].into = devices[i].fd;
	}
	puts("ready");
	fflush(stdout);
	while (!is_over) {
		int64_t first = deliver(&ways[0]), second = deliver(&ways[1]);
		int64_t due = first < second ? first : second, left = due - now_ns();
		if (left < 0)
			left = 0;
		struct timespec wait = { left / 1000000000, left % 1000000000 };
		if (ppoll(devices, 2, due == INT64_MAX ? NULL : &wait, NULL) < 0 && errno != EINTR)
			fail("poll");
		for (int i = 0; i < 2; i++)
			if (devices[i].revents & POLLIN)
				take(devices[i].fd, &ways[i]);
	}
	printf("%llu packets, %llu lost, %llu without room\n", (unsigned long long)carried, (unsigned long long)lost,
	       (unsigned long long)overflowed);
	return 0;
}
