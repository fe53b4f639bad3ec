/* The ways of `sockets`: how a message gets into the kernel and out of it again. */
#define _GNU_SOURCE
#include "ways.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uring.h"

enum { PIPE_BYTES = 1 << 20, BUFFERS = 32, BUFFER_BYTES = 65536, RING_ENTRIES = 64 };

const struct way *way;
int stream = -1, epoll = -1;

static int lent; /* calls whose pages the kernel has */
static int pipe_out[2], pipe_in[2];
static struct uring ring;
static unsigned ring_pending; /* sends that have not ended */
static int is_receiving;
static size_t received;
static struct part {
	char *data;
	size_t left;
	unsigned id;
} parts[BUFFERS]; /* what a multishot receive has brought, oldest first */
static unsigned parts_taken, parts_come;

void fail(const char *what)
{
	fprintf(stderr, "sockets: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int would_wait(ssize_t result)
{
	return result < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Leaves out of `pieces` what has gone. Gives how many are left. */
static int advance(struct iovec **pieces, int count, size_t gone)
{
	while (count > 0 && gone >= (*pieces)->iov_len) {
		gone -= (*pieces)->iov_len;
		(*pieces)++;
		count--;
	}
	if (count > 0) {
		(*pieces)->iov_base = (char *)(*pieces)->iov_base + gone;
		(*pieces)->iov_len -= gone;
	}
	return count;
}

/* Takes back pages that were lent, so many at least. */
static void take_back(int wanted)
{
	while (wanted > 0) {
		char room[128];
		struct msghdr message = { .msg_control = room, .msg_controllen = sizeof room };
		if (recvmsg(stream, &message, MSG_ERRQUEUE) < 0) {
			if (errno != EAGAIN)
				fail("error queue");
			continue;
		}
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		struct sock_extended_err *told = head ? (struct sock_extended_err *)CMSG_DATA(head) : NULL;
		if (told && told->ee_origin == SO_EE_ORIGIN_ZEROCOPY) {
			int count = (int)(told->ee_data - told->ee_info) + 1;
			wanted -= count;
			lent -= count;
		}
	}
}

static void send_by_calls(struct iovec *pieces, int count, int flags)
{
	while (count > 0) {
		struct msghdr message = { .msg_iov = pieces, .msg_iovlen = (size_t)count };
		ssize_t gone = count == 1 ? send(stream, pieces->iov_base, pieces->iov_len, flags) : sendmsg(stream, &message, flags);
		if (gone < 0 && errno == ENOBUFS && flags & MSG_ZEROCOPY)
			take_back(1);
		else if (gone < 0 && !would_wait(gone))
			fail("send");
		else if (gone > 0) {
			lent += (flags & MSG_ZEROCOPY) != 0;
			count = advance(&pieces, count, (size_t)gone);
		}
	}
}

static void send_looking(struct iovec *pieces, int count, int is_followed)
{
	(void)is_followed;
	send_by_calls(pieces, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_waiting(struct iovec *pieces, int count, int is_followed)
{
	(void)is_followed;
	send_by_calls(pieces, count, MSG_NOSIGNAL);
}

static void send_lending(struct iovec *pieces, int count, int is_followed)
{
	(void)is_followed;
	send_by_calls(pieces, count, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_ZEROCOPY);
}

static void receive_looking(char *data, size_t length)
{
	while (length > 0) {
		ssize_t came = recv(stream, data, length, MSG_DONTWAIT);
		if (came == 0 || (came < 0 && !would_wait(came)))
			fail("recv");
		if (came > 0) {
			data += came;
			length -= (size_t)came;
		}
	}
}

static void receive_waiting(char *data, size_t length)
{
	while (length > 0) {
		struct epoll_event event;
		if (epoll_wait(epoll, &event, 1, PATIENCE_S * 1000) < 0 && errno != EINTR)
			fail("epoll_wait");
		ssize_t came = recv(stream, data, length, MSG_DONTWAIT);
		if (came == 0 || (came < 0 && !would_wait(came)))
			fail("recv");
		if (came > 0) {
			data += came;
			length -= (size_t)came;
		}
	}
}

/* The pages themselves go into a pipe and from there into the socket. Nobody says when the kernel has done with them: they are
 * written again only when the other side's answer says that it has read them. */
static void send_spliced(struct iovec *pieces, int count, int is_followed)
{
	(void)is_followed;
	while (count > 0) {
		ssize_t there = vmsplice(pipe_out[1], pieces, (size_t)count, SPLICE_F_NONBLOCK);
		if (there < 0 && !would_wait(there))
			fail("vmsplice");
		if (there <= 0)
			continue;
		count = advance(&pieces, count, (size_t)there);
		while (there > 0) {
			ssize_t gone = splice(pipe_out[0], NULL, stream, NULL, (size_t)there, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
			if (gone < 0 && !would_wait(gone))
				fail("splice to the socket");
			if (gone > 0)
				there -= gone;
		}
	}
}

static void receive_spliced(char *data, size_t length)
{
	while (length > 0) {
		ssize_t there = splice(stream, NULL, pipe_in[1], NULL, length, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (there == 0 || (there < 0 && !would_wait(there)))
			fail("splice from the socket");
		while (there > 0) {
			ssize_t came = read(pipe_in[0], data, (size_t)there);
			if (came <= 0)
				fail("read of a pipe");
			there -= came;
			data += came;
			length -= (size_t)came;
		}
	}
}

/* Tells the kernel of new requests, and waits until one more has ended if one is wanted. */
static void ring_turn(unsigned wait)
{
	int is_looking = (way->traits & SPINS) != 0;
	int error = 0;
	if (ring.filled != ring.entered || !is_looking)
		error = uring_enter(&ring, is_looking ? 0 : wait);
	if (error != 0 && error != EAGAIN && error != EBUSY) {
		errno = error;
		fail("io_uring_enter");
	}
	if (is_looking && wait > 0)
		uring_spin(&ring);
}

/* What a receive has brought. */
static void note_received(const struct io_uring_cqe *completion)
{
	if (completion->res == 0)
		fail("the other side has gone");
	if (!(way->traits & MULTISHOT)) {
		is_receiving = 0;
		received = (size_t)completion->res;
		return;
	}
	is_receiving = (completion->flags & IORING_CQE_F_MORE) != 0;
	if (completion->res < 0)
		return;
	unsigned id = completion->flags >> IORING_CQE_BUFFER_SHIFT;
	parts[parts_come++ % BUFFERS] = (struct part){ uring_buffer(&ring, id), (size_t)completion->res, id };
}

/* Takes all completions. The name of one is the length of a send, and 0 of a receive. */
static void ring_take(void)
{
	struct io_uring_cqe completion;
	while (uring_take(&ring, &completion)) {
		if (completion.res < 0 && completion.res != -ENOBUFS) {
			errno = -completion.res;
			fail(completion.user_data ? "IORING_OP_SEND" : "IORING_OP_RECV");
		}
		if (completion.user_data == 0)
			note_received(&completion);
		else if ((uint64_t)completion.res != completion.user_data)
			fail("a send that was not whole");
		else
			ring_pending--;
	}
}

static void ring_settle(void)
{
	while (ring_pending > 0) {
		ring_turn(ring_pending);
		ring_take();
	}
}

/* Sends that follow each other are linked, or the kernel would be free to mix them. */
static void send_by_ring(struct iovec *pieces, int count, int is_followed)
{
	for (int i = 0; i < count; i++) {
		struct io_uring_sqe *request = uring_request(&ring);
		request->opcode = IORING_OP_SEND;
		request->fd = stream;
		request->addr = (uintptr_t)pieces[i].iov_base;
		request->len = (unsigned)pieces[i].iov_len;
		request->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
		request->flags = i + 1 < count ? IOSQE_IO_LINK : 0;
		request->user_data = pieces[i].iov_len;
		ring_pending++;
	}
	if (!is_followed)
		ring_settle();
}

/* A receive that goes with a send does not try at first: the answer cannot be there. */
static struct io_uring_sqe *ring_receive(void)
{
	struct io_uring_sqe *request = uring_request(&ring);
	request->opcode = IORING_OP_RECV;
	request->fd = stream;
	request->ioprio = ring_pending > 0 ? IORING_RECVSEND_POLL_FIRST : 0;
	is_receiving = 1;
	return request;
}

static void receive_by_ring(char *data, size_t length)
{
	while (length > 0) {
		struct io_uring_sqe *request = ring_receive();
		request->addr = (uintptr_t)data;
		request->len = (unsigned)length;
		request->msg_flags = MSG_WAITALL;
		while (is_receiving) {
			ring_turn(ring_pending + 1);
			ring_take();
		}
		data += received;
		length -= received;
	}
}

/* Where the bytes come to is the kernel's choice, so they are copied to where they belong. */
static void receive_multishot(char *data, size_t length)
{
	while (length > 0) {
		if (parts_taken == parts_come) {
			if (!is_receiving) {
				struct io_uring_sqe *request = ring_receive();
				request->flags = IOSQE_BUFFER_SELECT;
				request->ioprio |= IORING_RECV_MULTISHOT;
			}
			ring_turn(ring_pending + 1);
			ring_take();
			continue;
		}
		struct part *part = &parts[parts_taken % BUFFERS];
		size_t taken = part->left < length ? part->left : length;
		memcpy(data, part->data, taken);
		data += taken;
		length -= taken;
		part->data += taken;
		part->left -= taken;
		if (part->left == 0) {
			uring_give_back(&ring, part->id);
			parts_taken++;
		}
	}
}

#define DEFERRED (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

const struct way ways[] = {
	{ "calls", IN_EPOLL, 0, send_looking, receive_looking },
	{ "bare", 0, 0, send_looking, receive_looking },
	{ "gathered", IN_EPOLL | GATHERS, 0, send_looking, receive_looking },
	{ "blocking", IN_EPOLL, 0, send_waiting, receive_waiting },
	{ "splice", IN_EPOLL | PIPES, 0, send_spliced, receive_looking },
	{ "splice-both", IN_EPOLL | PIPES, 0, send_spliced, receive_spliced },
	{ "zerocopy", IN_EPOLL | LENDS, 0, send_lending, receive_looking },
	{ "uring", RING, DEFERRED, send_by_ring, receive_by_ring },
	{ "uring-spin", RING | SPINS, DEFERRED | IORING_SETUP_TASKRUN_FLAG, send_by_ring, receive_by_ring },
	{ "uring-signal", RING | SPINS, IORING_SETUP_SINGLE_ISSUER, send_by_ring, receive_by_ring },
	{ "uring-linked", RING | GATHERS, DEFERRED, send_by_ring, receive_by_ring },
	{ "uring-multishot", RING | MULTISHOT, DEFERRED, send_by_ring, receive_multishot },
	{ "uring-sqpoll", RING, IORING_SETUP_SQPOLL, send_by_ring, receive_by_ring },
	{ 0 },
};

int begin_way(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int one = 1, error = 0;
	lent = is_receiving = 0;
	ring_pending = parts_taken = parts_come = 0;
	if (way->traits & IN_EPOLL && stream >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, stream, &event))
		return errno;
	if (way->traits & LENDS && stream >= 0 && setsockopt(stream, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one))
		return errno;
	if (way->traits & PIPES) {
		if (pipe(pipe_out) || pipe(pipe_in))
			return errno;
		fcntl(pipe_out[1], F_SETPIPE_SZ, PIPE_BYTES);
		fcntl(pipe_in[1], F_SETPIPE_SZ, PIPE_BYTES);
		if (stream >= 0) /* into a socket splice waits unless that says not to */
			fcntl(stream, F_SETFL, O_NONBLOCK);
	}
	if (way->traits & RING)
		error = uring_open(&ring, RING_ENTRIES, way->ring_flags);
	if (!error && way->traits & MULTISHOT)
		error = uring_offer(&ring, BUFFERS, BUFFER_BYTES);
	return error;
}

void end_way(void)
{
	if (way->traits & PIPES)
		for (int i = 0; i < 2; i++) {
			close(pipe_out[i]);
			close(pipe_in[i]);
		}
	if (way->traits & RING)
		uring_close(&ring);
	if (way->ring_flags & IORING_SETUP_SQPOLL)
		usleep(50000); /* until the thread has ended */
	if (stream >= 0)
		close(stream);
	stream = -1;
}

void take_back_all(void)
{
	take_back(lent);
}

void settle(void)
{
	take_back_all();
	if (way->traits & RING)
		ring_settle();
}

