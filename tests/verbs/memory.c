/* What a queue pair (RC) that is connected and idle takes of this process's memory: 1000 pairs of them, each joined with another of
 * the same process. Prints bytes for each queue pair. */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "join.h"

enum { PAIRS = 1000, WORK = 16 };

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid gid;
static struct ibv_qp *all[2 * PAIRS];

/* Bytes of memory that are this process's own. */
static long resident(void) {
    long pages = 0, own = 0;
    FILE *told = fopen("/proc/self/statm", "r");
    CHECK(told && fscanf(told, "%ld %ld", &pages, &own) == 2);
    fclose(told);
    return own * sysconf(_SC_PAGESIZE);
}

static struct ibv_qp *create(void) {
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
                                    .cap = {.max_send_wr = WORK, .max_recv_wr = WORK, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    CHECK(qp);
    return qp;
}

/* A message each way, so that all of it is there that a connection makes when it is used. */
static void speak(struct ibv_qp *from, struct ibv_qp *to, struct ibv_mr *mr) {
    struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
    CHECK(!ibv_post_recv(to, &receive, &bad_receive) && !ibv_post_send(from, &send, &bad_send));
    for (int ended = 0; ended < 2;) {
        struct ibv_wc wc;
        int got = ibv_poll_cq(cq, 1, &wc);
        CHECK(got == 0 || wc.status == IBV_WC_SUCCESS);
        ended += got;
    }
}

int main(int argc, char **argv) {
    int count;
    struct ibv_context *context = NULL;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count; i++)
        if (argc > 1 && !strcmp(ibv_get_device_name(list[i]), argv[1])) context = ibv_open_device(list[i]);
    CHECK(context && !ibv_query_gid(context, 1, 0, &gid));
    CHECK((pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 256, NULL, NULL, 0)));
    void *memory = aligned_alloc(4096, 4096);
    memset(memory, 0, 4096);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr);
    long before = resident();
    for (int i = 0; i < PAIRS; i++) {
        struct ibv_qp *a = all[2 * i] = create(), *b = all[2 * i + 1] = create();
        join(a, b->qp_num, gid);
        join(b, a->qp_num, gid);
        speak(a, b, mr);
        speak(b, a, mr);
    }
    long each = (resident() - before) / (2 * PAIRS);
    printf("%ld bytes for each of %d queue pairs\n", each, 2 * PAIRS);
    CHECK(each > 0 && each <= 4096);
    for (int i = 0; i < 2 * PAIRS; i++) CHECK(!ibv_destroy_qp(all[i]));
    puts("right");
    return 0;
}
