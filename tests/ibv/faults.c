/* A libibverbs between the device and Tern's own, which it is linked to: it passes everything on, and does wrong what the
 * variable TERN_TEST_FAULT says, at the rank that TERN_TEST_FAULT_RANK says:
 *
 *   status:N:S   after N sends of connections have ended the next one ends with status S, and its queue pair is in error
 *   port:N       the same with «retry exceeded», after an event that the port is down
 *   event:N:E    after N sends an event E: of the adapter, which says nothing any more, or of the connection's queue pair, which
 *                is in error
 *   small        an adapter that has little of everything, and refuses more
 *   dies:N       after N sends of any kind the rank is killed
 *   deaf         what it sends to nobody's queue pair in particular (hellos, datagrams) goes astray
 *   regions:B    registrations of more than B bytes fail for want of memory
 *   pairs:N      no more than N queue pairs of connections
 *   memlock      the adapter is one that locks memory
 *   paging:B     registrations of more than B bytes fail for want of memory, unless the adapter is to fetch pages on demand, which
 *                it says it can
 *   hca          atomic operations of the adapter are atomic among themselves alone
 *   hardware:D   the adapters are devices of a bus, as the folder D says that has a file `device`
 *   mute         there are no shared receive queues, and no reason is given
 *   siw          what siw's library does: a queue whose memory begins at a certain place is none, and no reason is given
 *   none         there are no adapters
 *   down         the port is not active
 *
 * With TERN_TEST_COUNTS each process that has posted anything says so at its end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

static int (*query_device_ex)(struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *, size_t);
static int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
static int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
/* What a small adapter has: work requests and receives in a queue, shared receives, completions, pieces of a list. */
enum { WORK = 32, BUFFERS = 64, COMPLETIONS = 512, PIECES = 2 };
static struct ibv_qp *pairs[1024];
static struct ibv_qp *broken;
static int made, sent, ended, event = -1, done, is_silent, posted, paged;

/* Of siw: its vendor, bytes of a place in a queue of completions, of receives and of work, the place whose number means that there is
 * none (SIW_INVAL_UOBJ_KEY), and the pages that there are. */
enum { BMT = 0x626d74, CQE = 32, RQE = 112, SQE = 120, NOWHERE = 0x90000, PAGE = 4096, PAGES = 1 << 16 };
static const void *holder[PAGES];

static const char *fault(const char *kind) {
    const char *rank = getenv("PMI_RANK"), *at = getenv("TERN_TEST_FAULT_RANK"), *text = getenv("TERN_TEST_FAULT");
    size_t length = strlen(kind);
    if (!text || strncmp(text, kind, length) || (text[length] && text[length] != ':'))
        return NULL;
    if (at && (!rank || strcmp(at, rank)))
        return NULL;
    return text[length] ? text + length + 1 : text + length;
}

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "faults: no %s: %s\n", name, dlerror());
        abort();
    }
    return found;
}

static void displace(const void *queue) {
    for (int i = 0; i < PAGES; i++)
        if (holder[i] == queue)
            holder[i] = NULL;
}

/* Whether a queue with so many bytes more behind it has a place: the first pages that are free and enough, as the kernel deals them out
 * (rdma_user_mmap_entry_insert). */
static int place(const void *queue, int room, size_t bytes, size_t more) {
    size_t length = 1;
    while (length < (size_t)room)
        length *= 2;
    length = (length * bytes + more + PAGE - 1) / PAGE;
    size_t first = 0;
    for (size_t i = 0; i < PAGES && i < first + length; i++)
        if (holder[i])
            first = i + 1;
    if (first + length > PAGES)
        abort();
    for (size_t i = first; i < first + length; i++)
        holder[i] = queue;
    if (first * PAGE != NOWHERE)
        return 1;
    displace(queue);
    return 0;
}

static void tell(struct ibv_context *context, int kind) {
    event = kind;
    uint64_t one = 1;
    if (write(context->async_fd, &one, sizeof one) != sizeof one)
        abort();
}

/* The connection whose queue pair has this number; NULL if it is one for datagrams. */
static struct ibv_qp *connection(uint32_t number) {
    for (int i = 0; i < made; i++)
        if (pairs[i] && pairs[i]->qp_num == number)
            return pairs[i];
    return NULL;
}

static void fail(struct ibv_wc *wc, int status) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    done = 1;
    wc->status = status;
    wc->vendor_err = 0x81;
    ibv_modify_qp(connection(wc->qp_num), &attr, IBV_QP_STATE);
}

static int post_with_faults(struct ibv_qp *qp, struct ibv_send_wr *order, struct ibv_send_wr **bad) {
    posted++;
    if (qp->qp_type == IBV_QPT_UD && fault("deaf"))
        order->wr.ud.remote_qpn ^= 0x800;
    return post_send(qp, order, bad);
}

static int poll_with_faults(struct ibv_cq *cq, int room, struct ibv_wc *wc) {
    if (is_silent)
        return 0;
    int count = poll_cq(cq, room, wc);
    const char *status = fault("status"), *port = fault("port"), *told = fault("event"), *dies = fault("dies");
    for (int i = 0; i < count; i++) {
        if (wc[i].opcode & IBV_WC_RECV || wc[i].status != IBV_WC_SUCCESS)
            continue;
        if (dies && ++sent > atoi(dies))
            raise(SIGKILL);
        if (!connection(wc[i].qp_num))
            continue;
        ended++;
        if (status && !done && ended > atoi(status))
            fail(&wc[i], atoi(strchr(status, ':') + 1));
        if (port && !done && ended > atoi(port)) {
            tell(cq->context, IBV_EVENT_PORT_ERR);
            fail(&wc[i], IBV_WC_RETRY_EXC_ERR);
        }
        if (told && !done && ended > atoi(told)) {
            int kind = atoi(strchr(told, ':') + 1);
            done = 1;
            struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
            if (kind >= IBV_EVENT_QP_FATAL && kind <= IBV_EVENT_QP_ACCESS_ERR)
                ibv_modify_qp(broken = connection(wc[i].qp_num), &attr, IBV_QP_STATE);
            else
                is_silent = 1;
            tell(cq->context, kind);
        }
    }
    return count;
}

__attribute__((destructor)) static void say_posted(void) {
    if (posted && getenv("TERN_TEST_COUNTS"))
        fprintf(stderr, "faults: work was posted to an adapter\n");
    if (paged)
        fprintf(stderr, "faults: pages are fetched on demand\n");
}

static int query_with_paging(struct ibv_context *of, const struct ibv_query_device_ex_input *in, struct ibv_device_attr_ex *out, size_t length) {
    int answer = query_device_ex(of, in, out, length);
    out->odp_caps.general_caps = IBV_ODP_SUPPORT;
    out->odp_caps.per_transport_caps.rc_odp_caps =
        IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    return answer;
}

struct ibv_context *ibv_open_device(struct ibv_device *device) {
    struct ibv_context *opened = REAL(ibv_open_device)(device);
    if (opened && fault("paging")) {
        struct verbs_context *extended = verbs_get_ctx(opened);
        query_device_ex = extended->query_device_ex;
        extended->query_device_ex = query_with_paging;
    }
    if (opened) {
        poll_cq = opened->ops.poll_cq;
        post_send = opened->ops.post_send;
        opened->ops.poll_cq = poll_with_faults;
        opened->ops.post_send = post_with_faults;
    }
    return opened;
}

int ibv_get_async_event(struct ibv_context *of, struct ibv_async_event *out) {
    if (event < 0)
        return REAL(ibv_get_async_event)(of, out);
    uint64_t count;
    if (read(of->async_fd, &count, sizeof count) != sizeof count)
        return -1;
    memset(out, 0, sizeof *out);
    out->event_type = event;
    if (event == IBV_EVENT_PORT_ERR)
        out->element.port_num = 1;
    if (broken)
        out->element.qp = broken;
    event = -1;
    return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t length, int access) {
    const char *most = fault("regions");
    if (most && length > strtoul(most, NULL, 10)) {
        errno = ENOMEM;
        return NULL;
    }
    const char *unpaged = fault("paging");
    if (unpaged && length > strtoul(unpaged, NULL, 10) && !(access & IBV_ACCESS_ON_DEMAND)) {
        errno = ENOMEM;
        return NULL;
    }
    paged += (access & IBV_ACCESS_ON_DEMAND) != 0;
    return REAL(ibv_reg_mr)(pd, at, length, access & ~IBV_ACCESS_ON_DEMAND);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    const char *most = fault("pairs");
    int there = 0;
    for (int i = 0; i < made; i++)
        there += pairs[i] != NULL;
    if (attr->qp_type == IBV_QPT_RC && most && there >= atoi(most)) {
        errno = ENOMEM;
        return NULL;
    }
    struct ibv_qp_cap *cap = &attr->cap;
    if (fault("small") && (cap->max_send_wr > WORK || cap->max_recv_wr > WORK || cap->max_send_sge > PIECES || cap->max_inline_data)) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_qp *qp = REAL(ibv_create_qp)(pd, attr);
    /* siw has connections alone. */
    if (qp && qp->qp_type == IBV_QPT_RC && fault("siw") && !place(qp, cap->max_send_wr, SQE, 0)) {
        REAL(ibv_destroy_qp)(qp);
        return NULL;
    }
    if (qp && qp->qp_type == IBV_QPT_RC)
        pairs[made++] = qp;
    return qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
    int is_too_much = mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > 1;
    is_too_much |= mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > 1;
    return fault("small") && is_too_much ? EINVAL : REAL(ibv_modify_qp)(qp, attr, mask);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr) {
    if (fault("small") && attr->attr.max_wr > BUFFERS) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_srq *queue = fault("mute") ? NULL : REAL(ibv_create_srq)(pd, attr);
    if (queue && fault("siw") && !place(queue, attr->attr.max_wr, RQE, 0)) {
        REAL(ibv_destroy_srq)(queue);
        return NULL;
    }
    return queue;
}

int ibv_destroy_srq(struct ibv_srq *queue) {
    displace(queue);
    return REAL(ibv_destroy_srq)(queue);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int room, void *own, struct ibv_comp_channel *channel, int vector) {
    if (fault("small") && room > COMPLETIONS) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_cq *queue = REAL(ibv_create_cq)(of, room, own, channel, vector);
    if (queue && fault("siw") && !place(queue, room, CQE, 8)) {
        REAL(ibv_destroy_cq)(queue);
        return NULL;
    }
    return queue;
}

int ibv_destroy_cq(struct ibv_cq *queue) {
    displace(queue);
    return REAL(ibv_destroy_cq)(queue);
}

int ibv_destroy_qp(struct ibv_qp *qp) {
    displace(qp);
    for (int i = 0; i < made; i++)
        if (pairs[i] == qp)
            pairs[i] = NULL;
    return REAL(ibv_destroy_qp)(qp);
}

int ibv_query_device(struct ibv_context *of, struct ibv_device_attr *out) {
    int answer = REAL(ibv_query_device)(of, out);
    if (fault("memlock"))
        out->vendor_id = 0x2c9;
    if (fault("siw"))
        out->vendor_id = BMT;
    if (fault("hca"))
        out->atomic_cap = IBV_ATOMIC_HCA;
    if (fault("small")) {
        out->max_qp_wr = WORK, out->max_srq_wr = BUFFERS, out->max_cqe = COMPLETIONS, out->max_sge = PIECES;
        out->max_qp_rd_atom = out->max_qp_init_rd_atom = 1;
    }
    return answer;
}

int ibv_query_port(struct ibv_context *of, uint8_t port, struct _compat_ibv_port_attr *out) {
    int answer = REAL(ibv_query_port)(of, port, out);
    if (fault("down"))
        ((struct ibv_port_attr *)out)->state = IBV_PORT_DOWN;
    return answer;
}

struct ibv_device **ibv_get_device_list(int *count) {
    struct ibv_device **list = REAL(ibv_get_device_list)(count);
    if (fault("none"))
        *count = 0;
    if (fault("hardware"))
        for (int i = 0; i < *count; i++)
            snprintf(list[i]->ibdev_path, sizeof list[i]->ibdev_path, "%s", fault("hardware"));
    return list;
}
