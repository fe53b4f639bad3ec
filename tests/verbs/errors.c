/* What a program does wrong is answered as libibverbs answers it, and leaves the rest unharmed. Two queue pairs of one process. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { LENGTH = 4096 };

static struct ibv_context *context;
static struct ibv_pd *pd, *other_pd;
static struct ibv_cq *cq;
static union ibv_gid gid;
static char *memory;
static struct ibv_mr *mr;

static struct ibv_qp *create(struct ibv_srq *srq) {
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 3}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    CHECK(qp && attr.cap.max_inline_data >= 64);
    return qp;
}

static int to_init(struct ibv_qp *qp) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_ready(struct ibv_qp *qp, uint32_t peer) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .rq_psn = 7,
                               .max_dest_rd_atomic = 4, .min_rnr_timer = 12,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}}};
    int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error) return error;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                        IBV_QP_MAX_QP_RD_ATOMIC);
}

static void join(struct ibv_qp *a, struct ibv_qp *b) {
    CHECK(to_init(a) == 0 && to_init(b) == 0);
    CHECK(to_ready(a, b->qp_num) == 0 && to_ready(b, a->qp_num) == 0);
}

static void part(struct ibv_qp *a, struct ibv_qp *b) {
    CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
}

static struct ibv_wc next(void) {
    struct ibv_wc wc;
    int got;
    while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    CHECK(got == 1);
    return wc;
}

/* The completion of this work: others may come before it. */
static struct ibv_wc of(uint64_t id) {
    struct ibv_wc wc;
    do
        wc = next();
    while (wc.wr_id != id);
    return wc;
}

/* What the next work is posted with. */
static struct ibv_send_wr *behind;

/* A Read goes with the next work, so that it is under way when that is refused. */
static void read_behind(uint64_t id) {
    static struct ibv_sge into;
    static struct ibv_send_wr read;
    into = (struct ibv_sge){(uintptr_t)memory + 2048, 8, mr->lkey};
    read = (struct ibv_send_wr){.wr_id = id, .sg_list = &into, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
    read.wr.rdma.remote_addr = (uintptr_t)memory, read.wr.rdma.rkey = mr->rkey;
    behind = &read;
}

static int post(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode, void *at, uint32_t length, uint32_t lkey, void *there, uint32_t rkey) {
    struct ibv_sge sge = {(uintptr_t)at, length, lkey};
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .imm_data = 0x12345678, .next = behind}, *bad = NULL;
    behind = NULL;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = (uintptr_t)there;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 5;
        wr.wr.atomic.swap = 77;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)there;
        wr.wr.rdma.rkey = rkey;
    }
    int error = ibv_post_send(qp, &wr, &bad);
    CHECK(!error == !bad);
    return error;
}

static int receive(struct ibv_qp *qp, uint64_t id, struct ibv_sge *list, int count) {
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = list, .num_sge = count}, *bad;
    return ibv_post_recv(qp, &wr, &bad);
}

/* Everything that has its right answer. */
static void fine(void) {
    struct ibv_qp *a = create(NULL), *b = create(NULL);
    join(a, b);
    struct ibv_sge pieces[3] = {{(uintptr_t)memory, 3, mr->lkey}, {(uintptr_t)memory + 100, 5, mr->lkey}, {(uintptr_t)memory + 200, 50, mr->lkey}};
    CHECK(receive(b, 1, pieces, 3) == 0);
    strcpy(memory + 1000, "over three pieces");
    CHECK(post(a, 2, IBV_WR_SEND_WITH_IMM, memory + 1000, 18, mr->lkey, NULL, 0) == 0);
    struct ibv_wc wc = of(1);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == 18 && wc.qp_num == b->qp_num);
    CHECK(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == 0x12345678);
    CHECK(!memcmp(memory, "ove", 3) && !memcmp(memory + 100, "r thr", 5) && !strcmp(memory + 200, "ee pieces"));

    CHECK(receive(b, 3, pieces, 1) == 0);
    CHECK(post(a, 4, IBV_WR_RDMA_WRITE_WITH_IMM, memory + 1000, 18, mr->lkey, memory + 2000, mr->rkey) == 0);
    wc = of(3);
    CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 18 && wc.imm_data == 0x12345678 && !strcmp(memory + 2000, "over three pieces"));

    CHECK(post(a, 5, IBV_WR_RDMA_READ, memory + 2100, 5, mr->lkey, memory + 2000, mr->rkey) == 0);
    wc = of(5);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_READ && !memcmp(memory + 2100, "over ", 5));

    uint64_t *word = (uint64_t *)(memory + 3000), *was = word + 1;
    *word = 5;
    CHECK(post(a, 6, IBV_WR_ATOMIC_FETCH_AND_ADD, was, 8, mr->lkey, word, mr->rkey) == 0);
    CHECK(of(6).status == IBV_WC_SUCCESS && *was == 5 && *word == 10);
    CHECK(post(a, 7, IBV_WR_ATOMIC_CMP_AND_SWP, was, 8, mr->lkey, word, mr->rkey) == 0);
    CHECK(of(7).status == IBV_WC_SUCCESS && *was == 10 && *word == 10);
    *word = 5;
    CHECK(post(a, 8, IBV_WR_ATOMIC_CMP_AND_SWP, was, 8, mr->lkey, word, mr->rkey) == 0);
    CHECK(of(8).status == IBV_WC_SUCCESS && *was == 5 && *word == 77);
    /* What it was may go anywhere. */
    CHECK(post(a, 9, IBV_WR_ATOMIC_FETCH_AND_ADD, memory + 3101, 8, mr->lkey, word, mr->rkey) == 0);
    CHECK(of(9).status == IBV_WC_SUCCESS && *word == 82 && memory[3101] == 77 && memory[3100] == 0 && memory[3109] == 0);
    part(a, b);
}

/* Access that is refused at the other end: the reason here, error there, and both queue pairs flush. */
static void denied(enum ibv_wr_opcode opcode, void *there, uint32_t rkey) {
    struct ibv_qp *a = create(NULL), *b = create(NULL);
    join(a, b);
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    CHECK(receive(b, 20, &sge, 1) == 0);
    /* The Write itself has left; the reason comes back to what is under way behind it. */
    read_behind(11);
    CHECK(post(a, 10, opcode, memory + 1000, 8, mr->lkey, there, rkey) == 0);
    CHECK(of(opcode == IBV_WR_RDMA_WRITE ? 11 : 10).status == IBV_WC_REM_ACCESS_ERR);
    if (opcode != IBV_WR_RDMA_WRITE) CHECK(of(11).status == IBV_WC_WR_FLUSH_ERR);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(ibv_query_qp(a, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR);
    CHECK(post(a, 12, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0);
    CHECK(of(12).status == IBV_WC_WR_FLUSH_ERR);
    part(a, b);
}

static void local(void) {
    struct ibv_qp *a = create(NULL), *b = create(NULL);
    CHECK(post(a, 30, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == EINVAL); /* in RESET */
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    CHECK(receive(a, 30, &sge, 1) == EINVAL);
    CHECK(to_ready(a, b->qp_num) == EINVAL); /* without INIT */
    join(a, b);
    CHECK(to_init(a) == EINVAL);
    struct ibv_sge many[4] = {sge, sge, sge, sge};
    struct ibv_send_wr wr = {.sg_list = many, .num_sge = 3, .opcode = IBV_WR_SEND}, *bad;
    CHECK(ibv_post_send(a, &wr, &bad) == EINVAL && bad == &wr);
    CHECK(receive(a, 30, many, 4) == EINVAL);
    for (int i = 0; i < 8; i++) CHECK(receive(b, 31, &sge, 1) == 0);
    CHECK(receive(b, 31, &sge, 1) == ENOMEM);
    CHECK(post(a, 32, IBV_WR_LOCAL_INV, memory, 8, mr->lkey, NULL, 0) == EINVAL);
    CHECK(post(a, 33, IBV_WR_SEND, memory, LENGTH + 1, mr->lkey, NULL, 0) == 0);
    CHECK(of(33).status == IBV_WC_LOC_PROT_ERR);
    part(a, b);

    /* As many as were asked for, before any can leave; and each is flushed once. */
    CHECK((a = create(NULL)) && (b = create(NULL)) && to_init(a) == 0 && to_ready(a, b->qp_num) == 0);
    for (int i = 0; i < 8; i++) CHECK(post(a, 34, IBV_WR_SEND_WITH_IMM, memory, 8, mr->lkey, NULL, 0) == 0);
    CHECK(post(a, 34, IBV_WR_SEND_WITH_IMM, memory, 8, mr->lkey, NULL, 0) == ENOMEM);
    CHECK(ibv_modify_qp(a, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE) == 0);
    for (int i = 0; i < 8; i++) CHECK(next().status == IBV_WC_WR_FLUSH_ERR);
    struct ibv_wc none_left;
    CHECK(ibv_poll_cq(cq, 1, &none_left) == 0);
    part(a, b);
    join(a = create(NULL), b = create(NULL));
    struct ibv_sge long_one = {(uintptr_t)memory, LENGTH, 0};
    struct ibv_send_wr copied = {.sg_list = &long_one, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
    CHECK(ibv_post_send(a, &copied, &bad) == EINVAL && bad == &copied);
    part(a, b);

    CHECK(!ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
    /* What came to nothing keeps no domain. */
    struct ibv_pd *unused = ibv_alloc_pd(context);
    CHECK(unused && !ibv_reg_mr(unused, memory, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE) && ibv_dealloc_pd(unused) == 0);
    CHECK(!ibv_create_cq(context, 0, NULL, NULL, 0) && errno == EINVAL);
    struct ibv_ah_attr route = {.port_num = 1};
    CHECK(!ibv_create_ah(pd, &route) && errno == EINVAL);
    union ibv_gid none;
    CHECK(ibv_query_gid(context, 1, 1, &none) != 0);
    struct ibv_port_attr port;
    CHECK(ibv_query_port(context, 2, &port) != 0);
    CHECK(ibv_dealloc_pd(pd) == EBUSY);
}

/* Memory is registered where it is, with the rights that the process has itself; and nothing in it changes by that. */
static void registered(void) {
    const size_t page = sysconf(_SC_PAGESIZE);
    const int changed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    CHECK(!ibv_reg_mr(pd, NULL, 4096, changed) && errno == EFAULT);
    CHECK(!ibv_reg_mr(pd, NULL, 4096, IBV_ACCESS_REMOTE_READ) && errno == EFAULT);
    char *at = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    memset(at, 0x5a, 3 * page);
    struct ibv_mr *whole = ibv_reg_mr(pd, at + 1, 3 * page - 2, changed);
    CHECK(whole && ibv_dereg_mr(whole) == 0 && ibv_dereg_mr(whole) == EINVAL);
    for (size_t i = 0; i < 3 * page; i++) CHECK(at[i] == 0x5a);
    CHECK(mprotect(at + 2 * page, page, PROT_READ) == 0);
    CHECK(!ibv_reg_mr(pd, at, 3 * page, changed) && errno == EFAULT);
    CHECK(!ibv_reg_mr(pd, at + 2 * page, page, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
    CHECK((whole = ibv_reg_mr(pd, at, 3 * page, IBV_ACCESS_REMOTE_READ)) && ibv_dereg_mr(whole) == 0);
    CHECK(mprotect(at + 2 * page, page, PROT_NONE) == 0);
    CHECK(!ibv_reg_mr(pd, at, 3 * page, 0) && errno == EFAULT);
    CHECK(munmap(at + page, page) == 0 && mprotect(at + 2 * page, page, PROT_READ | PROT_WRITE) == 0);
    CHECK(!ibv_reg_mr(pd, at, 3 * page, 0) && errno == EFAULT);
    CHECK(munmap(at, page) == 0 && munmap(at + 2 * page, page) == 0);
}

/* Values that no field of InfiniBand's holds, and a state that it is not in. */
static void steps(void) {
    const int ready = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    const int sends = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    struct ibv_qp *a = create(NULL), *b = create(NULL);
    CHECK(to_init(a) == 0);
    const struct ibv_qp_attr good = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = b->qp_num, .min_rnr_timer = 12,
                                     .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}}};
    struct ibv_qp_attr attr = good;
    CHECK((attr.path_mtu = 99, ibv_modify_qp(a, &attr, ready)) == EINVAL);
    attr = good;
    CHECK((attr.path_mtu = 0, ibv_modify_qp(a, &attr, ready)) == EINVAL);
    attr = good;
    CHECK((attr.ah_attr.port_num = 7, ibv_modify_qp(a, &attr, ready)) == EINVAL);
    attr = good;
    CHECK((attr.min_rnr_timer = 32, ibv_modify_qp(a, &attr, ready)) == EINVAL);
    attr = good;
    CHECK(ibv_modify_qp(a, &attr, ready) == 0);
    const struct ibv_qp_attr fine = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RTR, .timeout = 31, .retry_cnt = 7, .rnr_retry = 7};
    attr = fine;
    CHECK((attr.timeout = 32, ibv_modify_qp(a, &attr, sends)) == EINVAL);
    attr = fine;
    CHECK((attr.retry_cnt = 8, ibv_modify_qp(a, &attr, sends)) == EINVAL);
    attr = fine;
    CHECK((attr.rnr_retry = 8, ibv_modify_qp(a, &attr, sends)) == EINVAL);
    attr = fine;
    CHECK((attr.cur_qp_state = IBV_QPS_INIT, ibv_modify_qp(a, &attr, sends | IBV_QP_CUR_STATE)) == EINVAL);
    attr = fine;
    CHECK(ibv_modify_qp(a, &attr, sends | IBV_QP_CUR_STATE) == 0);
    part(a, b);

    struct ibv_pd *used = ibv_alloc_pd(context);
    struct ibv_ah_attr route = {.is_global = 1, .grh = {.dgid = gid}};
    CHECK(used && !ibv_create_ah(used, &route) && errno == EINVAL); /* port 0 */
    route.port_num = 1;
    struct ibv_ah *ah = ibv_create_ah(used, &route);
    CHECK(ah && ibv_dealloc_pd(used) == EBUSY && ibv_destroy_ah(ah) == 0 && ibv_dealloc_pd(used) == 0);
}

/* A list that is none is refused before anything of it is read. */
static void lists(void) {
    struct ibv_qp *a = create(NULL), *b = create(NULL);
    join(a, b);
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
    for (int i = 0; i < 3; i++) {
        int count = (int[]){-1, 33, 100000000}[i];
        struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = count, .opcode = IBV_WR_SEND}, *bad = NULL;
        CHECK(ibv_post_send(a, &wr, &bad) == EINVAL && bad == &wr);
        struct ibv_recv_wr taken = {.sg_list = &sge, .num_sge = count}, *bad_one = NULL;
        CHECK(ibv_post_recv(a, &taken, &bad_one) == EINVAL && bad_one == &taken);
    }
    part(a, b);
}

/* A receive buffer that may not be written is no one's: what is posted is not looked at, what would fill it is. */
static void unwritable(void *at, uint32_t length, uint32_t lkey, struct ibv_srq *srq) {
    struct ibv_qp *a = create(NULL), *b = create(srq);
    join(a, b);
    struct ibv_sge good = {(uintptr_t)memory, 64, mr->lkey}, pieces[2] = {good, {(uintptr_t)at, length, lkey}};
    struct ibv_recv_wr wr = {.wr_id = 80, .sg_list = &good, .num_sge = 1}, *bad;
    for (int i = 0; i < 3; i++) {
        CHECK((srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(b, &wr, &bad)) == 0);
        wr = (struct ibv_recv_wr){.wr_id = 81 + i, .sg_list = i ? &good : pieces, .num_sge = i ? 1 : 2};
    }
    memset(memory, 1, 64);
    memset(memory + 1000, 2, 64);
    CHECK(post(a, 83, IBV_WR_SEND, memory + 1000, 8, mr->lkey, NULL, 0) == 0);
    CHECK(of(80).status == IBV_WC_SUCCESS && memory[7] == 2);
    read_behind(85);
    CHECK(post(a, 84, IBV_WR_SEND, memory + 1000, 24, mr->lkey, NULL, 0) == 0);
    struct ibv_wc wc;
    int is_told = 0, is_flushed = srq != NULL, is_refused = 0;
    while (!is_told || !is_flushed || !is_refused) {
        wc = next();
        is_told |= wc.wr_id == 81 && wc.status == IBV_WC_LOC_PROT_ERR && wc.qp_num == b->qp_num;
        is_flushed |= wc.wr_id == 82 && wc.status == IBV_WC_WR_FLUSH_ERR && is_told;
        is_refused |= wc.wr_id == 85 && wc.status == IBV_WC_REM_INV_REQ_ERR;
        CHECK(wc.wr_id >= 83 || wc.status != IBV_WC_SUCCESS);
    }
    CHECK(memory[8] == 1);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(ibv_query_qp(b, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR);
    part(a, b);
}

static struct ibv_qp *create_datagrams(void) {
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    CHECK(qp);
    struct ibv_qp_attr step = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11};
    CHECK(ibv_modify_qp(qp, &step, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
    step.qp_state = IBV_QPS_RTR;
    CHECK(ibv_modify_qp(qp, &step, IBV_QP_STATE) == 0);
    step.qp_state = IBV_QPS_RTS;
    CHECK(ibv_modify_qp(qp, &step, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    return qp;
}

static void from(struct ibv_qp *qp, uint64_t id, void *at, uint32_t length, struct ibv_mr *of, struct ibv_ah *ah, struct ibv_qp *peer) {
    struct ibv_sge sge = {(uintptr_t)at, length, of->lkey};
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    wr.wr.ud.ah = ah, wr.wr.ud.remote_qpn = peer->qp_num, wr.wr.ud.remote_qkey = 0x11;
    CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

/* The same of datagrams. */
static void datagrams(void) {
    struct ibv_qp *a = create_datagrams(), *b = create_datagrams();
    struct ibv_ah_attr route = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid}};
    struct ibv_ah *ah = ibv_create_ah(pd, &route);
    CHECK(ah);
    struct ibv_sge good = {(uintptr_t)memory, 100, mr->lkey}, bad = {(uintptr_t)memory, 100, mr->lkey + 1};
    CHECK(receive(b, 90, &good, 1) == 0 && receive(b, 91, &bad, 1) == 0 && receive(b, 92, &good, 1) == 0);
    from(a, 93, memory, 8, mr, ah, b);
    CHECK(of(90).status == IBV_WC_SUCCESS);
    from(a, 94, memory, 8, mr, ah, b);
    CHECK(of(91).status == IBV_WC_LOC_PROT_ERR && next().status == IBV_WC_WR_FLUSH_ERR);
    part(a, b);
    /* As long as one packet, and longer. What finds a buffer that is too short is lost, and the buffer is there for the next one. */
    a = create_datagrams(), b = create_datagrams();
    struct ibv_port_attr port;
    CHECK(ibv_query_port(context, 1, &port) == 0);
    const uint32_t most = 128 << port.active_mtu;
    char *large = malloc(2 * most);
    struct ibv_mr *of_large = ibv_reg_mr(pd, large, 2 * most, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge room = {(uintptr_t)large, most + 40, of_large->lkey}, *list[] = {&good, &room};
    for (int i = 0; i < 2; i++) CHECK(receive(b, 95 + i, list[i], 1) == 0);
    from(a, 97, large, 61, of_large, ah, b);
    from(a, 97, large, 60, of_large, ah, b);
    CHECK(of(95).byte_len == 100);
    from(a, 97, large, most, of_large, ah, b);
    CHECK(of(96).byte_len == most + 40);
    from(a, 98, large, most + 1, of_large, ah, b);
    CHECK(of(98).status == IBV_WC_LOC_LEN_ERR);
    part(a, b);
    CHECK(ibv_destroy_ah(ah) == 0 && ibv_dereg_mr(of_large) == 0);
    free(large);
}

/* A message that is longer than the buffer, and a number that nobody has. */
static void lost(void) {
    struct ibv_qp *a = create(NULL), *b = create(NULL);
    join(a, b);
    struct ibv_sge sge = {(uintptr_t)memory, 4, mr->lkey};
    CHECK(receive(b, 40, &sge, 1) == 0);
    read_behind(42);
    CHECK(post(a, 41, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0);
    CHECK(of(42).status == IBV_WC_REM_INV_REQ_ERR);
    part(a, b);

    a = create(NULL);
    b = create(NULL);
    /* A port at which nobody listens; and one that is below, so that this side is not the one that connects. */
    CHECK(to_init(a) == 0 && to_ready(a, 0xfffe01) == 0 && to_init(b) == 0 && to_ready(b, 1) == 0);
    CHECK(post(b, 44, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0 && post(b, 45, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0);
    CHECK(post(a, 43, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0);
    CHECK(of(43).status == IBV_WC_RETRY_EXC_ERR);
    CHECK(of(44).status == IBV_WC_RETRY_EXC_ERR && next().status == IBV_WC_WR_FLUSH_ERR); /* 45 */
    part(a, b);
}

/* The number of the next completion within these microseconds; -1 if there is none. */
static int within(long microseconds, struct ibv_wc *wc) {
    struct timespec since, now;
    clock_gettime(CLOCK_MONOTONIC, &since);
    do {
        int got = ibv_poll_cq(cq, 1, wc);
        CHECK(got >= 0);
        if (got) return wc->wr_id;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - since.tv_sec) * 1000000 + (now.tv_nsec - since.tv_nsec) / 1000 < microseconds);
    return -1;
}

/* What is posted to a peer that has gone is tried again as long as the queue pair says, and what others have sent comes before. */
static void gone(void) {
    struct ibv_qp *a = create(NULL), *b = create(NULL), *c = create(NULL), *d = create(NULL);
    join(a, b);
    join(c, d);
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_wc wc;
    CHECK(receive(b, 70, &sge, 1) == 0 && receive(c, 71, &sge, 1) == 0);
    CHECK(post(a, 72, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0);
    for (int i = 0; i < 2; i++) CHECK(next().status == IBV_WC_SUCCESS); /* 70, 72 */
    CHECK(ibv_destroy_qp(b) == 0);
    CHECK(within(20000, &wc) == -1);
    CHECK(post(a, 73, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0 && post(a, 74, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0);
    CHECK(within(20000, &wc) == -1);
    CHECK(post(d, 75, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0);
    for (int i = 0; i < 2; i++) { /* 71, 75 */
        int which = within(200000, &wc);
        CHECK((which == 71 || which == 75) && wc.status == IBV_WC_SUCCESS);
    }
    CHECK(within(5000000, &wc) == 73 && wc.status == IBV_WC_RETRY_EXC_ERR);
    CHECK(within(0, &wc) == 74 && wc.status == IBV_WC_WR_FLUSH_ERR);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(ibv_query_qp(a, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR);
    CHECK(ibv_destroy_qp(a) == 0);
    part(c, d);

    /* Nobody is told any more once the queue pair has gone, too. */
    join(a = create(NULL), b = create(NULL));
    CHECK(ibv_destroy_qp(b) == 0 && within(20000, &wc) == -1);
    CHECK(post(a, 76, IBV_WR_SEND, memory, 8, mr->lkey, NULL, 0) == 0);
    CHECK(ibv_destroy_qp(a) == 0);
    CHECK(within(700000, &wc) == -1);
}

static void shared(void) {
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &attr);
    CHECK(srq);
    struct ibv_qp *a = create(srq), *b = create(srq);
    join(a, b);
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 50, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(ibv_post_recv(a, &wr, &bad) == EINVAL && bad == &wr);
    /* Without a buffer the message waits, and comes when there is one. */
    CHECK(post(a, 51, IBV_WR_SEND, memory + 1000, 8, mr->lkey, NULL, 0) == 0);
    CHECK(of(51).status == IBV_WC_SUCCESS);
    CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);
    struct ibv_wc wc = of(50);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 8 && wc.qp_num == b->qp_num);
    CHECK(ibv_destroy_srq(srq) == EBUSY);
    part(a, b);
    CHECK(ibv_destroy_srq(srq) == 0);
}

/* What is fenced begins when the Reads in front of it are done, of which the peer takes but four at a time. */
static void fenced(void) {
    struct ibv_qp *a = create(NULL), *b = create(NULL);
    join(a, b);
    struct ibv_sge sge = {(uintptr_t)memory + 1000, 8, mr->lkey};
    for (int again = 0; again < 20; again++) {
        CHECK(receive(b, 60, &sge, 1) == 0);
        for (int i = 0; i < 6; i++) CHECK(post(a, 61, IBV_WR_RDMA_READ, memory + 2048, 1024, mr->lkey, memory, mr->rkey) == 0);
        struct ibv_send_wr wr = {.wr_id = 62, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_FENCE}, *bad;
        CHECK(ibv_post_send(a, &wr, &bad) == 0);
        CHECK(post(a, 63, IBV_WR_RDMA_READ, memory + 2048, 8, mr->lkey, memory, mr->rkey) == 0); /* behind it */
        for (int i = 0; i < 6; i++) CHECK(next().wr_id == 61);
        for (int i = 0; i < 3; i++) { /* it has come, it has gone, and the Read behind it */
            struct ibv_wc wc = next();
            CHECK(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 60 || wc.wr_id == 62 || wc.wr_id == 63));
        }
    }
    part(a, b);
    /* What a fence keeps back is flushed with the rest. */
    join(a = create(NULL), b = create(NULL));
    CHECK(post(a, 64, IBV_WR_RDMA_READ, memory + 1000, 8, mr->lkey, memory, mr->rkey + 1) == 0);
    struct ibv_send_wr wr = {.wr_id = 65, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_FENCE}, *bad;
    CHECK(ibv_post_send(a, &wr, &bad) == 0);
    CHECK(next().status == IBV_WC_REM_ACCESS_ERR);
    CHECK(of(65).status == IBV_WC_WR_FLUSH_ERR);
    part(a, b);
}

int main(int argc, char **argv) {
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && count > 0);
    for (int i = 0; i < count; i++)
        if (argc < 2 || !strcmp(ibv_get_device_name(list[i]), argv[1])) context = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    CHECK(context);
    CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);
    CHECK((pd = ibv_alloc_pd(context)) && (other_pd = ibv_alloc_pd(context)));
    CHECK((cq = ibv_create_cq(context, 256, NULL, NULL, 0)));
    memory = aligned_alloc(4096, LENGTH);
    memset(memory, 0, LENGTH);
    const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    CHECK((mr = ibv_reg_mr(pd, memory, LENGTH, all)));
    struct ibv_mr *readable = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_REMOTE_READ);
    struct ibv_mr *elsewhere = ibv_reg_mr(other_pd, memory, LENGTH, all);
    CHECK(readable && elsewhere);

    /* A device is the same in each list. */
    list = ibv_get_device_list(&count);
    int is_known = 0;
    for (int i = 0; i < count; i++) is_known |= list[i] == context->device;
    CHECK(is_known);
    ibv_free_device_list(list);

    fine();
    denied(IBV_WR_RDMA_WRITE, memory, mr->rkey + 1);                       /* no such key */
    denied(IBV_WR_RDMA_WRITE, memory + LENGTH - 4, mr->rkey);              /* over the end */
    denied(IBV_WR_RDMA_WRITE, memory, readable->rkey);                     /* no right to write */
    denied(IBV_WR_RDMA_WRITE, memory, elsewhere->rkey);                    /* of another domain */
    denied(IBV_WR_RDMA_READ, memory - 8, mr->rkey);                        /* before the beginning */
    denied(IBV_WR_ATOMIC_FETCH_AND_ADD, memory, readable->rkey);           /* no right to change */
    local();
    lists();
    registered();
    steps();
    unwritable(memory + 2000, 64, mr->lkey + 1, NULL);
    unwritable(memory + 2000, 64, readable->lkey, NULL); /* no right to write */
    unwritable(memory + 2000, 64, elsewhere->lkey, NULL);
    unwritable(memory + LENGTH - 8, 64, mr->lkey, NULL); /* over the end */
    unwritable(NULL, 64, 12345, NULL);
    struct ibv_srq_init_attr queue = {.attr = {.max_wr = 4, .max_sge = 2}};
    struct ibv_srq *srq = ibv_create_srq(pd, &queue);
    CHECK(srq);
    unwritable(NULL, 64, mr->lkey, srq);
    CHECK(ibv_destroy_srq(srq) == 0);
    datagrams();
    lost();
    gone();
    shared();
    fenced();
    fine();

    CHECK(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(readable) == 0 && ibv_dereg_mr(elsewhere) == 0);
    CHECK(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_dealloc_pd(other_pd) == 0);
    CHECK(ibv_close_device(context) == 0 && ibv_close_device(context) == EINVAL);
    puts("right");
    return 0;
}
