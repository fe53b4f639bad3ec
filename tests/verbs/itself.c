/* A queue pair that is its own peer, as those of UCX's connections of a process to itself: all that goes to another one goes to this one. */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>

#include "join.h"

enum { LENGTH = 1 << 20, ROUNDS = 40 };

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static union ibv_gid gid;
static char *memory;

static struct ibv_qp *create(void) {
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    CHECK(qp);
    join(qp, qp->qp_num, gid);
    return qp;
}

static void post(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode, size_t from, size_t length, size_t to, uint32_t key) {
    struct ibv_sge sge = {(uintptr_t)memory + from, (uint32_t)length, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)memory + to, wr.wr.atomic.rkey = key, wr.wr.atomic.compare_add = 5;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)memory + to, wr.wr.rdma.rkey = key;
    }
    CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void receive(struct ibv_qp *qp, uint64_t id, size_t to, size_t length) {
    struct ibv_sge sge = {(uintptr_t)memory + to, (uint32_t)length, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(qp, &wr, &bad));
}

/* Takes so many completions, all of them good. */
static void take(int count) {
    while (count > 0) {
        struct ibv_wc wc;
        int got = ibv_poll_cq(cq, 1, &wc);
        CHECK(got >= 0 && (got == 0 || wc.status == IBV_WC_SUCCESS));
        count -= got;
    }
}

static void everything(struct ibv_qp *qp, int round) {
    const size_t half = LENGTH / 2, length = round % 2 ? half - 64 : 8 + (size_t)round;
    memset(memory, round + 1, half);
    memset(memory + half, 0, half);
    receive(qp, 1, half, length);
    post(qp, 2, IBV_WR_SEND, 0, length, 0, 0);
    take(2);
    CHECK(memory[half] == round + 1 && memory[half + length - 1] == round + 1 && memory[half + length] == 0);
    memset(memory + half, 0, half);
    post(qp, 3, IBV_WR_RDMA_WRITE, 0, length, half, mr->rkey);
    post(qp, 4, IBV_WR_RDMA_READ, half - 64, 64, half, mr->rkey); /* behind the Write */
    take(2);
    CHECK(memory[half + length - 1] == round + 1 && memory[half - 64] == round + 1);
    uint64_t *word = (uint64_t *)memory;
    word[8] = 7, word[0] = 0;
    post(qp, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 64, mr->rkey);
    take(1);
    CHECK(word[0] == 7 && word[8] == 12);
}

int main(int argc, char **argv) {
    int count;
    struct ibv_device **devices = ibv_get_device_list(&count);
    struct ibv_context *context = NULL;
    for (int i = 0; argc > 1 && i < count; i++)
        if (strcmp(ibv_get_device_name(devices[i]), argv[1]) == 0)
            context = ibv_open_device(devices[i]);
    CHECK(context && !ibv_query_gid(context, 1, 0, &gid));
    CHECK((pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 64, NULL, NULL, 0)));
    CHECK((memory = calloc(1, LENGTH)));
    int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    CHECK((mr = ibv_reg_mr(pd, memory, LENGTH, rights)));
    struct ibv_qp *qp = create(), *other = create(), *unused = create();
    for (int round = 0; round < ROUNDS; round++) {
        everything(qp, round);
        everything(other, round);
    }
    /* What is denied ends this one alone. */
    receive(qp, 7, 0, 8);
    post(qp, 6, IBV_WR_RDMA_READ, 0, 8, 0, mr->rkey ^ 1);
    for (int taken = 0; taken < 2;) {
        struct ibv_wc wc;
        int got = ibv_poll_cq(cq, 1, &wc);
        CHECK(got >= 0 && (got == 0 || wc.status != IBV_WC_SUCCESS));
        taken += got;
    }
    everything(other, ROUNDS);
    CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(other) && !ibv_destroy_qp(unused));
    CHECK(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
    return 0;
}
