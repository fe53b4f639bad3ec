#define _GNU_SOURCE
#include "uring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *mapped(size_t length, int fd, off_t offset)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
	return mmap(NULL, length, PROT_READ | PROT_WRITE, flags, fd, offset);
}

int uring_open(struct uring *ring, unsigned entries, unsigned flags)
{
	struct io_uring_params made = { .flags = flags, .sq_thread_idle = 20 };
	*ring = (struct uring){ .fd = (int)syscall(__NR_io_uring_setup, entries, &made), .flags = flags };
	if (ring->fd < 0)
		return errno;
	size_t sq = made.sq_off.array + made.sq_entries * sizeof(unsigned);
	size_t cq = made.cq_off.cqes + made.cq_entries * sizeof(struct io_uring_cqe);
	ring->memory_length = sq > cq ? sq : cq;
	ring->sqes_length = made.sq_entries * sizeof(struct io_uring_sqe);
	ring->memory = mapped(ring->memory_length, ring->fd, IORING_OFF_SQ_RING);
	ring->sqes = mapped(ring->sqes_length, ring->fd, IORING_OFF_SQES);
	if (!(made.features & IORING_FEAT_SINGLE_MMAP) || ring->memory == MAP_FAILED || ring->sqes == MAP_FAILED) {
		close(ring->fd);
		return ENOSYS;
	}
	char *base = ring->memory;
	ring->sq_tail = (unsigned *)(base + made.sq_off.tail);
	ring->sq_flags = (unsigned *)(base + made.sq_off.flags);
	ring->sq_mask = *(unsigned *)(base + made.sq_off.ring_mask);
	ring->cq_head = (unsigned *)(base + made.cq_off.head);
	ring->cq_tail = (unsigned *)(base + made.cq_off.tail);
	ring->cq_mask = *(unsigned *)(base + made.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(base + made.cq_off.cqes);
	for (unsigned i = 0; i < made.sq_entries; i++)
		((unsigned *)(base + made.sq_off.array))[i] = i;
	return 0;
}

int uring_offer(struct uring *ring, unsigned count, unsigned length)
{
	size_t head = (count * sizeof(struct io_uring_buf) + 4095) & ~(size_t)4095;
	ring->offered_length = head + (size_t)count * length;
	ring->offered = mapped(ring->offered_length, -1, 0);
	if (ring->offered == MAP_FAILED) {
		ring->offered = NULL;
		return ENOMEM;
	}
	ring->buffers = count;
	ring->buffer_length = length;
	struct io_uring_buf_reg group = { .ring_addr = (size_t)ring->offered, .ring_entries = count };
	if (syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_PBUF_RING, &group, 1) < 0)
		return errno;
	for (unsigned id = 0; id < count; id++)
		uring_give_back(ring, id);
	return 0;
}

char *uring_buffer(struct uring *ring, unsigned id)
{
	char *end = (char *)ring->offered + ring->offered_length;
	return end - (size_t)(ring->buffers - id) * ring->buffer_length;
}

void uring_give_back(struct uring *ring, unsigned id)
{
	unsigned short tail = ring->offered->tail;
	struct io_uring_buf *place = &ring->offered->bufs[tail & (ring->buffers - 1)];
	place->addr = (size_t)uring_buffer(ring, id);
	place->len = ring->buffer_length;
	place->bid = (unsigned short)id;
	__atomic_store_n(&ring->offered->tail, (unsigned short)(tail + 1), __ATOMIC_RELEASE);
}

struct io_uring_sqe *uring_request(struct uring *ring)
{
	struct io_uring_sqe *request = &ring->sqes[ring->filled++ & ring->sq_mask];
	memset(request, 0, sizeof *request);
	return request;
}

int uring_enter(struct uring *ring, unsigned wait)
{
	unsigned submit = ring->filled - ring->entered, flags = wait > 0 || submit == 0 ? IORING_ENTER_GETEVENTS : 0;
	__atomic_store_n(ring->sq_tail, ring->filled, __ATOMIC_SEQ_CST);
	if (ring->flags & IORING_SETUP_SQPOLL) {
		ring->entered = ring->filled;
		if (__atomic_load_n(ring->sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
			flags |= IORING_ENTER_SQ_WAKEUP;
		if (flags == 0)
			return 0;
	}
	long told = syscall(__NR_io_uring_enter, ring->fd, submit, wait, flags, NULL, 0);
	if (told < 0)
		return errno == EINTR ? 0 : errno;
	if (!(ring->flags & IORING_SETUP_SQPOLL))
		ring->entered += (unsigned)told;
	return 0;
}

void uring_spin(struct uring *ring)
{
	while (__atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) == *ring->cq_head)
		if (__atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & IORING_SQ_TASKRUN)
			uring_enter(ring, 0);
}

int uring_take(struct uring *ring, struct io_uring_cqe *completion)
{
	unsigned head = *ring->cq_head;
	if (__atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) == head)
		return 0;
	*completion = ring->cqes[head & ring->cq_mask];
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return 1;
}

void uring_close(struct uring *ring)
{
	munmap(ring->memory, ring->memory_length);
	munmap(ring->sqes, ring->sqes_length);
	close(ring->fd);
	if (ring->offered)
		munmap(ring->offered, ring->offered_length);
}
