/* A ring of io_uring by the kernel's own calls: no library has to be there. One thread uses a ring. */
#ifndef TERN_BENCH_URING_H
#define TERN_BENCH_URING_H

#include <linux/io_uring.h>
#include <stddef.h>

struct uring {
	int fd;
	unsigned flags; /* IORING_SETUP_... that it was made with */
	unsigned filled, entered; /* requests that were written, and those that the kernel has been told of */
	unsigned *sq_tail, *sq_flags, sq_mask;
	unsigned *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	void *memory;
	size_t memory_length, sqes_length;
	struct io_uring_buf_ring *offered; /* buffers the kernel may receive into; NULL: none */
	size_t offered_length;
	unsigned buffers, buffer_length;
};

/* Makes a ring of so many requests. Gives 0, or the error. */
int uring_open(struct uring *ring, unsigned entries, unsigned flags);

/* Offers `count` buffers (a power of two) of this length as group 0. Gives 0, or the error. */
int uring_offer(struct uring *ring, unsigned count, unsigned length);

/* Where the bytes of buffer `id` are. */
char *uring_buffer(struct uring *ring, unsigned id);

/* Offers buffer `id` again. */
void uring_give_back(struct uring *ring, unsigned id);

/* A request to be filled in, all zero. There is room as long as no more than `entries` have not been entered. */
struct io_uring_sqe *uring_request(struct uring *ring);

/* Tells the kernel of what was filled in and waits for so many completions. Gives 0, or the error. */
int uring_enter(struct uring *ring, unsigned wait);

/* Waits for a completion by looking at memory; calls the kernel only where a flag of the ring asks for it. */
void uring_spin(struct uring *ring);

/* Takes a completion, if there is one. */
int uring_take(struct uring *ring, struct io_uring_cqe *completion);

void uring_close(struct uring *ring);

#endif
