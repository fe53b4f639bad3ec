/* A program that polls is left alone by the adapter's thread, which each message would else take from its core for a moment; and one that
 * has polled and then sleeps is told of what comes. Both queue pairs are of this process, which keeps to one core. */
#define _GNU_SOURCE
#include <dirent.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "join.h"

enum { MESSAGES = 20000, SLEEPS = 500, LOOKS = 40 };

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static union ibv_gid gid;
static struct ibv_mr *mr;

static struct ibv_qp *create(void) {
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    CHECK(qp);
    return qp;
}

/* Turns that the adapter's thread has had and given back; -1 while it has no name. */
static long counted(void) {
    long found = -1;
    DIR *threads = opendir("/proc/self/task");
    CHECK(threads);
    for (struct dirent *one; (one = readdir(threads));) {
        char path[300], line[100];
        int is_it = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", one->d_name);
        FILE *status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            is_it |= !strcmp(line, "Name:\ttern verbs\n");
            if (is_it) sscanf(line, "voluntary_ctxt_switches: %ld", &found);
        }
        if (status) fclose(status);
    }
    closedir(threads);
    return found;
}

static long turns(void) {
    long found;
    while ((found = counted()) < 0) sched_yield();
    return found;
}

static long now_us(void) {
    struct timespec now;
    CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void speak(struct ibv_qp *from, struct ibv_qp *to) {
    struct ibv_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
    CHECK(!ibv_post_recv(to, &receive, &bad_receive) && !ibv_post_send(from, &send, &bad_send));
}

/* What has ended, until there is nothing more and so many looks were in vain. */
static int look(int in_vain) {
    int ended = 0;
    for (struct ibv_wc wc; in_vain > 0;) {
        int got = ibv_poll_cq(cq, 1, &wc);
        CHECK(got == 0 || wc.status == IBV_WC_SUCCESS);
        ended += got;
        in_vain -= got == 0;
    }
    return ended;
}

/* By the clock the thread has a turn each 200 us. */
static void polls(struct ibv_qp *a, struct ibv_qp *b) {
    long before = turns(), since_us = now_us();
    for (int i = 0; i < MESSAGES; i++) {
        speak(i % 2 ? a : b, i % 2 ? b : a);
        for (int ended = 0; ended < 2;) ended += look(4);
    }
    long taken = turns() - before;
    printf("%ld turns of the thread for %d messages\n", taken, MESSAGES);
    CHECK(taken < MESSAGES / 8 + (now_us() - since_us) / 200);
}

/* Its own message comes while it sleeps. */
static void sleeps(struct ibv_qp *a, struct ibv_qp *b) {
    for (int i = 0; i < SLEEPS; i++) {
        look(LOOKS);
        CHECK(!ibv_req_notify_cq(cq, 0));
        speak(a, b);
        for (int ended = 0; ended < 2;) {
            struct ibv_cq *told;
            void *context;
            CHECK(!ibv_get_cq_event(channel, &told, &context) && told == cq);
            ibv_ack_cq_events(cq, 1);
            CHECK(!ibv_req_notify_cq(cq, 0));
            ended += look(1);
        }
    }
}

int main(int argc, char **argv) {
    int count;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(!sched_setaffinity(0, sizeof one, &one));
    struct ibv_context *context = NULL;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count; i++)
        if (argc > 1 && !strcmp(ibv_get_device_name(list[i]), argv[1])) context = ibv_open_device(list[i]);
    CHECK(context && !ibv_query_gid(context, 1, 0, &gid));
    CHECK((pd = ibv_alloc_pd(context)) && (channel = ibv_create_comp_channel(context)));
    CHECK((cq = ibv_create_cq(context, 16, NULL, channel, 0)));
    void *memory = calloc(1, 4096);
    CHECK((mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE)));
    struct ibv_qp *a = create(), *b = create();
    join(a, b->qp_num, gid);
    join(b, a->qp_num, gid);
    polls(a, b);
    sleeps(a, b);
    polls(a, b);
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
    puts("right");
    return 0;
}
