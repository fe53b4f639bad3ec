/* Identifiers of connections (librdmacm): what is told of each step, what is refused and how, and nothing left behind. Both sides
 * in one process. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <unistd.h>

#include "check.h"

#define REFUSED(call, why) CHECK((errno = 0, (call) == -1) && errno == (why))

static struct rdma_event_channel *here, *there;
static struct sockaddr_in server = {.sin_family = AF_INET};

/* The next event of a channel, which must be this one. */
static struct rdma_cm_event *event(struct rdma_event_channel *channel, enum rdma_cm_event_type kind) {
    struct rdma_cm_event *event;
    CHECK(rdma_get_cm_event(channel, &event) == 0);
    if (event->event != kind) fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event), rdma_event_str(kind));
    CHECK(event->event == kind);
    return event;
}

static void passed(struct rdma_event_channel *channel, enum rdma_cm_event_type kind) {
    struct rdma_cm_event *one = event(channel, kind);
    CHECK(one->status == 0 && rdma_ack_cm_event(one) == 0);
}

static struct rdma_cm_id *listener(enum rdma_port_space space) {
    struct rdma_cm_id *id;
    struct sockaddr_in at = server;
    at.sin_port = 0;
    CHECK(rdma_create_id(there, &id, &server, space) == 0);
    CHECK(rdma_bind_addr(id, (struct sockaddr *)&at) == 0 && rdma_listen(id, 3) == 0);
    CHECK(rdma_get_src_port(id) != 0);
    return id;
}

static void furnish(struct rdma_cm_id *id) {
    struct ibv_qp_init_attr attr = {.qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC, .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    CHECK(rdma_create_qp(id, NULL, &attr) == 0 && id->qp && id->pd && id->send_cq && id->recv_cq);
    REFUSED(rdma_create_qp(id, NULL, &attr), EINVAL);
}

static struct rdma_cm_id *resolved(enum rdma_port_space space, __be16 port) {
    struct rdma_cm_id *id;
    struct sockaddr_in to = server;
    to.sin_port = port;
    CHECK(rdma_create_id(here, &id, NULL, space) == 0);
    REFUSED(rdma_resolve_route(id, 1000), EINVAL);
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
    passed(here, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(rdma_resolve_route(id, 1000) == 0);
    passed(here, RDMA_CM_EVENT_ROUTE_RESOLVED);
    CHECK(id->verbs && id->port_num == 1 && rdma_get_dst_port(id) == port);
    furnish(id);
    return id;
}

static void drop(struct rdma_cm_id *id) {
    if (id->qp) rdma_destroy_qp(id);
    CHECK(rdma_destroy_id(id) == 0);
}

/* Private data of each length arrive on both sides; messages go; and both are told of the end. */
static void connected(struct rdma_cm_id *at, uint8_t length) {
    uint8_t asked[255], answered[255];
    memset(asked, 'a' + length % 26, sizeof asked);
    memset(answered, 'A' + length % 26, sizeof answered);
    struct rdma_cm_id *client = resolved(RDMA_PS_TCP, rdma_get_src_port(at));
    struct rdma_conn_param param = {.private_data = asked, .private_data_len = length, .responder_resources = 3, .initiator_depth = 2};
    CHECK(rdma_connect(client, &param) == 0);
    REFUSED(rdma_connect(client, &param), EINVAL);
    struct rdma_cm_event *request = event(there, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *child = request->id;
    CHECK(request->listen_id == at && child->context == &server && child->verbs == client->verbs);
    CHECK(request->param.conn.private_data_len == length && !memcmp(request->param.conn.private_data, asked, length));
    CHECK(request->param.conn.responder_resources == 2 && request->param.conn.initiator_depth == 3);
    REFUSED(rdma_accept(child, NULL), EINVAL); /* without a queue pair */
    furnish(child);
    char *memory = calloc(1, 128);
    struct ibv_mr *mr = rdma_reg_msgs(child, memory, 128);
    CHECK(mr && rdma_post_recv(child, NULL, memory, 64, mr) == 0);
    param.private_data = answered;
    CHECK(rdma_accept(child, &param) == 0 && rdma_ack_cm_event(request) == 0);
    passed(there, RDMA_CM_EVENT_ESTABLISHED);
    struct rdma_cm_event *there_now = event(here, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(there_now->param.conn.private_data_len == length && !memcmp(there_now->param.conn.private_data, answered, length));
    CHECK(rdma_ack_cm_event(there_now) == 0);
    REFUSED(rdma_accept(child, &param), EINVAL);
    REFUSED(rdma_reject(child, NULL, 0), EINVAL);

    strcpy(memory + 64, "hello");
    CHECK(client->pd == child->pd && rdma_post_send(client, NULL, memory + 64, 6, mr, 0) == 0);
    struct ibv_wc wc;
    CHECK(rdma_get_send_comp(client, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(rdma_get_recv_comp(child, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == 6 && !strcmp(memory, "hello"));
    CHECK(rdma_post_recv(child, NULL, memory, 64, mr) == 0);
    CHECK(rdma_disconnect(client) == 0);
    passed(here, RDMA_CM_EVENT_DISCONNECTED);
    passed(there, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(rdma_get_recv_comp(child, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
    CHECK(rdma_disconnect(child) == 0 && ibv_dereg_mr(mr) == 0);
    free(memory);
    drop(client);
    drop(child);
}

static void refused(struct rdma_cm_id *at) {
    struct rdma_cm_id *client = resolved(RDMA_PS_TCP, rdma_get_src_port(at));
    REFUSED(rdma_disconnect(client), EINVAL);
    CHECK(rdma_connect(client, NULL) == 0);
    struct rdma_cm_event *request = event(there, RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(rdma_reject(request->id, "go away", 7) == 0);
    CHECK(rdma_destroy_id(request->id) == 0 && rdma_ack_cm_event(request) == 0);
    struct rdma_cm_event *answer = event(here, RDMA_CM_EVENT_REJECTED);
    CHECK(answer->status == -ECONNREFUSED && answer->param.conn.private_data_len == 7);
    CHECK(!memcmp(answer->param.conn.private_data, "go away", 7) && rdma_ack_cm_event(answer) == 0);
    drop(client);

    /* A port at which nobody listens, and a listener that goes while somebody waits for its answer. */
    struct rdma_cm_id *gone = listener(RDMA_PS_TCP);
    client = resolved(RDMA_PS_TCP, rdma_get_src_port(gone));
    CHECK(rdma_connect(client, NULL) == 0);
    struct pollfd ready = {there->fd, POLLIN, 0};
    CHECK(poll(&ready, 1, 10000) == 1);
    __be16 port = rdma_get_src_port(gone);
    CHECK(rdma_destroy_id(gone) == 0);
    answer = event(here, RDMA_CM_EVENT_REJECTED);
    CHECK(answer->status < 0 && rdma_ack_cm_event(answer) == 0);
    drop(client);
    client = resolved(RDMA_PS_TCP, port);
    CHECK(rdma_connect(client, NULL) == 0);
    answer = event(here, RDMA_CM_EVENT_REJECTED);
    CHECK(answer->status == -ECONNREFUSED && rdma_ack_cm_event(answer) == 0);
    drop(client);

    struct rdma_cm_id *id;
    REFUSED(rdma_create_id(here, &id, NULL, RDMA_PS_IB), EPROTONOSUPPORT);
    CHECK(rdma_create_id(here, &id, NULL, RDMA_PS_TCP) == 0);
    struct sockaddr_in taken = server;
    taken.sin_port = rdma_get_src_port(at);
    /* The port may be held twice, but not listened at. */
    CHECK(rdma_bind_addr(id, (struct sockaddr *)&taken) != 0 || rdma_listen(id, 1) != 0);
    CHECK(errno == EADDRINUSE);
    CHECK(rdma_destroy_id(id) == 0 && rdma_create_id(here, &id, NULL, RDMA_PS_TCP) == 0);
    taken.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1: of no interface */
    REFUSED(rdma_bind_addr(id, (struct sockaddr *)&taken), ENODEV);
    taken.sin_family = AF_UNIX;
    REFUSED(rdma_bind_addr(id, (struct sockaddr *)&taken), EAFNOSUPPORT);
    REFUSED(rdma_join_multicast(id, (struct sockaddr *)&server, NULL), EOPNOTSUPP);
    struct rdma_cm_event *none;
    fcntl(here->fd, F_SETFL, fcntl(here->fd, F_GETFL) | O_NONBLOCK);
    REFUSED(rdma_get_cm_event(here, &none), EAGAIN);
    fcntl(here->fd, F_SETFL, fcntl(here->fd, F_GETFL) & ~O_NONBLOCK);
    CHECK(rdma_destroy_id(id) == 0);
}

/* Who asks for datagrams learns which queue pair answers. */
static void datagrams(void) {
    struct rdma_cm_id *at = listener(RDMA_PS_UDP), *client = resolved(RDMA_PS_UDP, rdma_get_src_port(at));
    struct rdma_conn_param param = {.private_data = "who", .private_data_len = 3};
    CHECK(rdma_connect(client, &param) == 0);
    struct rdma_cm_event *request = event(there, RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(request->param.ud.private_data_len == 3 && !memcmp(request->param.ud.private_data, "who", 3));
    struct rdma_cm_id *child = request->id;
    furnish(child);
    param = (struct rdma_conn_param){.private_data = "me", .private_data_len = 2, .qp_num = child->qp->qp_num};
    CHECK(rdma_accept(child, &param) == 0 && rdma_ack_cm_event(request) == 0);
    struct rdma_cm_event *answer = event(here, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(answer->param.ud.qp_num == child->qp->qp_num && answer->param.ud.qkey == RDMA_UDP_QKEY);
    CHECK(answer->param.ud.private_data_len == 2 && !memcmp(answer->param.ud.private_data, "me", 2));
    struct ibv_ah *ah = ibv_create_ah(client->pd, &answer->param.ud.ah_attr);
    CHECK(ah && ibv_destroy_ah(ah) == 0 && rdma_ack_cm_event(answer) == 0);
    REFUSED(rdma_disconnect(client), EINVAL);
    drop(client);
    drop(child);
    /* A port of datagrams takes no connections. */
    client = resolved(RDMA_PS_TCP, rdma_get_src_port(at));
    CHECK(rdma_connect(client, NULL) == 0);
    answer = event(here, RDMA_CM_EVENT_REJECTED);
    CHECK(rdma_ack_cm_event(answer) == 0);
    drop(client);
    drop(at);
}

int main(int argc, char **argv) {
    CHECK(inet_pton(AF_INET, argc > 1 ? argv[1] : "127.0.0.1", &server.sin_addr) == 1);
    CHECK((here = rdma_create_event_channel()) && (there = rdma_create_event_channel()));
    struct rdma_cm_id *at = listener(RDMA_PS_TCP);
    for (int length = 0; length <= 255; length += length < 3 || length > 250 ? 1 : 31) connected(at, length);
    refused(at);
    datagrams();
    connected(at, 9);
    CHECK(rdma_destroy_id(at) == 0);
    rdma_destroy_event_channel(here);
    rdma_destroy_event_channel(there);
    puts("right");
    return 0;
}
