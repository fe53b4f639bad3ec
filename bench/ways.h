/* Ways into the kernel for what goes over a TCP connection. */
#ifndef TERN_BENCH_WAYS_H
#define TERN_BENCH_WAYS_H

#include <stddef.h>
#include <sys/uio.h>

enum { PATIENCE_S = 20, TOGETHER = 16 };

/* What a way needs besides a connection. */
enum {
	IN_EPOLL = 1, /* the socket is in a set, as those of a rank are */
	GATHERS = 2,  /* TOGETHER short messages leave by one call */
	LENDS = 4,    /* MSG_ZEROCOPY */
	PIPES = 8,
	RING = 16,
	SPINS = 32,    /* looks at the ring instead of waiting in the kernel */
	MULTISHOT = 64 /* one request receives for ever, into buffers of the ring */
};

struct way {
	const char *name;
	int traits;
	unsigned ring_flags;
	/* `is_followed`: a receive is next, and the message may leave with it. */
	void (*send)(struct iovec *pieces, int count, int is_followed);
	void (*receive)(char *data, size_t length);
};

/* The first is what the others are compared with; the last has no name. */
extern const struct way ways[];

/* The way that is measured, its connection (-1: none) and the set in which that may be. */
extern const struct way *way;
extern int stream, epoll;

void fail(const char *what) __attribute__((noreturn));

/* Makes what the way needs. Gives 0, or the error. */
int begin_way(void);
void end_way(void);

/* Waits until memory that was sent may be written again, as far as the kernel says so. */
void take_back_all(void);

/* Nothing of ours is with the kernel afterwards. */
void settle(void);

#endif
