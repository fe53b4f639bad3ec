/* Asynchronous events: each one comes once, by a descriptor that can be polled, and an object stays until its events are acknowledged. Queue
 * pairs of one process. */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { LENGTH = 4096, LONG_MS = 10000, SHORT_MS = 100 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid gid;
static char *memory;
static struct ibv_mr *mr;

static struct ibv_qp *create(struct ibv_cq *of, struct ibv_srq *srq) {
    struct ibv_qp_init_attr attr = {
        .send_cq = of, .recv_cq = of, .srq = srq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    CHECK(qp);
    return qp;
}

static void to_init(struct ibv_qp *qp) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void to_receive(struct ibv_qp *qp, uint32_t peer) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .rq_psn = 7,
                               .max_dest_rd_atomic = 4, .min_rnr_timer = 12,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}}};
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

static void to_send(struct ibv_qp *qp) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                        IBV_QP_MAX_QP_RD_ATOMIC));
}

static void join(struct ibv_qp *a, struct ibv_qp *b) {
    to_init(a), to_init(b);
    to_receive(a, b->qp_num), to_receive(b, a->qp_num);
    to_send(a), to_send(b);
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state, int more) {
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1, .en_sqd_async_notify = 1};
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | more));
}

static void post(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode, uint32_t length, uint32_t rkey) {
    struct ibv_sge sge = {(uintptr_t)memory, length, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)memory + 2048;
    wr.wr.rdma.rkey = rkey;
    CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void receive(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id, uint32_t length) {
    struct ibv_sge sge = {(uintptr_t)memory + 3072, length, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)));
}

static struct ibv_wc next(struct ibv_cq *of) {
    struct ibv_wc wc;
    int got;
    while ((got = ibv_poll_cq(of, 1, &wc)) == 0)
        ;
    CHECK(got == 1);
    return wc;
}

/* Whether there is an event within this time. */
static int comes(int milliseconds) {
    struct pollfd at = {.fd = context->async_fd, .events = POLLIN};
    int ready = poll(&at, 1, milliseconds);
    CHECK(ready >= 0 && (!ready || at.revents == POLLIN));
    return ready;
}

/* The next event, without being acknowledged. */
static struct ibv_async_event fetched(enum ibv_event_type kind, void *element) {
    struct ibv_async_event event;
    CHECK(comes(LONG_MS));
    CHECK(ibv_get_async_event(context, &event) == 0);
    if (event.event_type != kind) fprintf(stderr, "%s instead of %s\n", ibv_event_type_str(event.event_type), ibv_event_type_str(kind));
    CHECK(event.event_type == kind);
    CHECK((void *)event.element.qp == element);
    return event;
}

static void await(enum ibv_event_type kind, void *element) {
    struct ibv_async_event event = fetched(kind, element);
    ibv_ack_async_event(&event);
}

static void nothing(void) {
    struct ibv_async_event event;
    int is_one = comes(SHORT_MS);
    if (is_one && ibv_get_async_event(context, &event) == 0) fprintf(stderr, "%s came\n", ibv_event_type_str(event.event_type));
    CHECK(!is_one);
    errno = 0;
    CHECK(ibv_get_async_event(context, &event) == -1 && errno == EAGAIN);
}

/* The first message while its receiver may not send so far. */
static void established(void) {
    struct ibv_qp *a = create(cq, NULL), *b = create(cq, NULL);
    to_init(a), to_init(b);
    to_receive(a, b->qp_num), to_receive(b, a->qp_num);
    to_send(a);
    for (int i = 0; i < 2; i++) {
        receive(b, NULL, 1, 64);
        post(a, 2, IBV_WR_SEND, 8, 0);
        for (int ended = 0; ended < 2; ended++) CHECK(next(cq).status == IBV_WC_SUCCESS);
        if (i == 0) await(IBV_EVENT_COMM_EST, b);
        nothing();
    }
    to_send(b);
    receive(a, NULL, 3, 64);
    post(b, 4, IBV_WR_SEND, 8, 0);
    for (int ended = 0; ended < 2; ended++) CHECK(next(cq).status == IBV_WC_SUCCESS);
    nothing(); /* a could send when that came */
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
}

/* What is refused is told where it was refused; and to whom it was refused, if no work is there to tell it by. */
static void refused(enum ibv_wr_opcode opcode, enum ibv_event_type kind) {
    struct ibv_qp *a = create(cq, NULL), *b = create(cq, NULL);
    join(a, b);
    receive(b, NULL, 10, 4);
    post(a, 11, opcode, 8, mr->rkey + 1);
    int seen = 0;
    for (int i = 0; i < 2; i++) {
        struct ibv_async_event event;
        CHECK(comes(LONG_MS) && ibv_get_async_event(context, &event) == 0);
        if (event.element.qp == b && event.event_type == kind) seen |= 1;
        if (event.element.qp == a && event.event_type == IBV_EVENT_QP_FATAL) seen |= 2;
        ibv_ack_async_event(&event);
    }
    CHECK(seen == 3);
    nothing();
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(!ibv_query_qp(a, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR);
    CHECK(!ibv_query_qp(b, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR);
    /* The buffer comes back, also where a message had begun to fill it. */
    struct ibv_wc wc;
    int flushed = 0;
    while (ibv_poll_cq(cq, 1, &wc) > 0) flushed += wc.wr_id == 10 && wc.status == IBV_WC_WR_FLUSH_ERR;
    CHECK(flushed == 1);
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
}

static void drained(void) {
    struct ibv_qp *a = create(cq, NULL), *b = create(cq, NULL);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    join(a, b);
    post(a, 19, IBV_WR_RDMA_WRITE, 8, mr->rkey);
    CHECK(next(cq).wr_id == 19); /* connected: what is posted now is begun */
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < 8; i++) post(a, 20, IBV_WR_RDMA_WRITE, 1024, mr->rkey);
        to_state(a, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
        post(a, 21, IBV_WR_RDMA_WRITE, 8, mr->rkey); /* waits until it may be sent */
        await(IBV_EVENT_SQ_DRAINED, a);
        CHECK(!ibv_query_qp(a, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_SQD && !attr.sq_draining);
        struct ibv_wc wc;
        for (int i = 0; i < 8; i++) CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == 20 && wc.status == IBV_WC_SUCCESS);
        for (int i = 0; i < 1000; i++) CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
        to_state(a, IBV_QPS_RTS, 0);
        CHECK(next(cq).wr_id == 21);
        nothing();
    }
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
}

static void limit(struct ibv_srq *srq, uint32_t to) {
    struct ibv_srq_attr attr = {.srq_limit = to};
    CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
    CHECK(!ibv_query_srq(srq, &attr));
}

static void shared(void) {
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    CHECK(srq);
    struct ibv_qp *a = create(cq, NULL), *b = create(cq, srq);
    join(a, b);
    for (int i = 0; i < 5; i++) receive(NULL, srq, 30, 64);
    struct ibv_srq_attr attr = {.srq_limit = 9};
    CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
    limit(srq, 4);
    CHECK(!ibv_query_srq(srq, &attr) && attr.srq_limit == 4 && attr.max_wr == 8);
    for (int i = 0; i < 3; i++) {
        nothing(); /* with five, with four, and when it has been told */
        post(a, 31, IBV_WR_SEND, 8, 0);
        for (int ended = 0; ended < 2; ended++) CHECK(next(cq).status == IBV_WC_SUCCESS);
        if (i == 1) await(IBV_EVENT_SRQ_LIMIT_REACHED, srq);
    }
    CHECK(!ibv_query_srq(srq, &attr) && attr.srq_limit == 0);
    limit(srq, 3);
    await(IBV_EVENT_SRQ_LIMIT_REACHED, srq); /* there are two */
    to_state(b, IBV_QPS_ERR, 0);
    await(IBV_EVENT_QP_LAST_WQE_REACHED, b);
    to_state(b, IBV_QPS_ERR, 0);
    nothing();
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_srq(srq));
}

/* More has ended than there is room for: it is told, and nothing is lost. */
static void overrun(void) {
    struct ibv_cq *small = ibv_create_cq(context, 2, NULL, NULL, 0);
    CHECK(small);
    struct ibv_qp *a = create(small, NULL), *b = create(cq, NULL);
    join(a, b);
    for (int i = 0; i < 5; i++) post(a, 40 + i, IBV_WR_RDMA_WRITE, 8, mr->rkey);
    await(IBV_EVENT_CQ_ERR, small);
    for (int i = 0; i < 5; i++) CHECK(next(small).wr_id == 40 + i);
    nothing();
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(small));
}

static volatile int is_acknowledged;

static void *acknowledge(void *event) {
    usleep(1000 * SHORT_MS);
    is_acknowledged = 1;
    ibv_ack_async_event(event);
    return NULL;
}

/* Who gives an object up waits until its events are acknowledged; what nobody has fetched goes with it. */
static void given_up(void) {
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    for (int is_fetched = 0; is_fetched < 2; is_fetched++) {
        struct ibv_srq *srq = ibv_create_srq(pd, &init);
        struct ibv_qp *qp = create(cq, srq);
        to_init(qp);
        limit(srq, 1); /* at once: there is none */
        to_state(qp, IBV_QPS_ERR, 0);
        struct ibv_async_event events[2];
        pthread_t thread;
        for (int i = 0; i < 2; i++) {
            enum ibv_event_type kind = i ? IBV_EVENT_SRQ_LIMIT_REACHED : IBV_EVENT_QP_LAST_WQE_REACHED;
            if (is_fetched && i == 0) {
                events[1] = fetched(IBV_EVENT_SRQ_LIMIT_REACHED, srq);
                events[0] = fetched(kind, qp);
            }
            is_acknowledged = 0;
            if (is_fetched) CHECK(!pthread_create(&thread, NULL, acknowledge, &events[i]));
            CHECK(!(i ? ibv_destroy_srq(srq) : ibv_destroy_qp(qp)));
            CHECK(is_acknowledged == is_fetched);
            if (is_fetched) CHECK(!pthread_join(thread, NULL));
        }
        nothing();
    }
}

static void *acknowledge_two(void *of) {
    usleep(1000 * SHORT_MS);
    ibv_ack_cq_events(of, 1);
    usleep(1000 * SHORT_MS);
    is_acknowledged = 1;
    ibv_ack_cq_events(of, 1);
    return NULL;
}

/* The same of a completion queue and the events of its channel. */
static void told(void) {
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *of = ibv_create_cq(context, 16, NULL, channel, 0), *which;
    CHECK(channel && of);
    struct ibv_qp *qp = create(of, NULL);
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    void *context_of;
    to_state(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    for (int i = 0; i < 3; i++) {
        CHECK(!ibv_post_recv(qp, &wr, &bad) && !ibv_req_notify_cq(of, 0));
        to_state(qp, IBV_QPS_ERR, 0);
        to_state(qp, IBV_QPS_RESET, 0);
        to_state(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        /* The last one is not fetched. */
        if (i < 2) CHECK(!ibv_get_cq_event(channel, &which, &context_of) && which == of);
    }
    pthread_t thread;
    is_acknowledged = 0;
    CHECK(!ibv_destroy_qp(qp) && !pthread_create(&thread, NULL, acknowledge_two, of));
    CHECK(!ibv_destroy_cq(of) && is_acknowledged && !pthread_join(thread, NULL));
    CHECK(!ibv_destroy_comp_channel(channel));
}

static void *wait_for_one(void *event) {
    CHECK(ibv_get_async_event(context, event) == 0);
    return NULL;
}

/* Without O_NONBLOCK the call waits. */
static void waited_for(void) {
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct ibv_async_event event = {.event_type = -1};
    pthread_t thread;
    CHECK(srq && !fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) & ~O_NONBLOCK));
    CHECK(!pthread_create(&thread, NULL, wait_for_one, &event));
    usleep(1000 * SHORT_MS);
    CHECK((int)event.event_type == -1);
    limit(srq, 1);
    CHECK(!pthread_join(thread, NULL));
    CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
    ibv_ack_async_event(&event);
    CHECK(!ibv_destroy_srq(srq));
}

/* Its interface goes down and comes back. */
static void port(const char *interface) {
    char command[200];
    struct ibv_port_attr attr;
    for (int again = 0; again < 2; again++) {
        for (int is_up = 0; is_up < 2; is_up++) {
            snprintf(command, sizeof command, "ip link set dev %s %s", interface, is_up ? "up" : "down");
            CHECK(system(command) == 0);
            struct ibv_async_event event;
            CHECK(comes(LONG_MS) && ibv_get_async_event(context, &event) == 0);
            CHECK(event.event_type == (is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR) && event.element.port_num == 1);
            ibv_ack_async_event(&event);
            CHECK(!ibv_query_port(context, 1, &attr) && attr.state == (is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN));
        }
        nothing();
    }
}

int main(int argc, char **argv) {
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count; i++)
        if (argc > 1 && !strcmp(ibv_get_device_name(list[i]), argv[1])) context = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    CHECK(context && !ibv_query_gid(context, 1, 0, &gid));
    CHECK((pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 256, NULL, NULL, 0)));
    memory = aligned_alloc(4096, LENGTH);
    memset(memory, 0, LENGTH);
    CHECK((mr = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
    CHECK(!fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK));
    nothing();
    if (argc > 2) {
        port(argv[2]);
    } else {
        established();
        refused(IBV_WR_RDMA_WRITE, IBV_EVENT_QP_ACCESS_ERR); /* no such key */
        refused(IBV_WR_SEND, IBV_EVENT_QP_REQ_ERR);          /* longer than the buffer */
        drained();
        shared();
        overrun();
        given_up();
        told();
        waited_for();
    }
    CHECK(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
    puts("right");
    return 0;
}
