/* Rounds of messages, all drawn from a seed: modes, lengths, tags, persistent or not, in one piece or with gaps; received by
 * name or by wildcard, posted before they are sent or found by probes, awaited in many ways or tested for beside computation;
 * by so many threads as the second argument says, each with communicators of its own. Every message comes once and whole,
 * and those of a sender that a selection matches in their order. */
// args: 1 1
// args: 2 1
// args: 3 3
// timeout: 120
#include "tern_test.h"

#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 32, COMMS = 4, TAGS = 3, EACH = 5, LARGEST = 400000, BUFFERED = 2000, BUFFER = 8 << 20 };

typedef struct {
    int from, to, tag, bytes, gaps;
    uint64_t pattern;
} message;

typedef struct { /* of a receive: what it asks for, and which message it got */
    unsigned char *memory;
    int source, tag, got;
    MPI_Status status;
} receive;

typedef struct {
    uint64_t seed;
    MPI_Comm comms[COMMS];
} own;

static int size_of(t_rng *rng) {
    switch (t_below(rng, 8)) {
    case 0:
    case 1: return 4 + (int)t_below(rng, 60);
    case 2:
    case 3: return 4 + (int)t_below(rng, 5000);
    case 4:
    case 5: return 4 + (int)t_below(rng, 70000);
    case 6: return 4 + (int)t_below(rng, 20000);
    default: return 4 + (int)t_below(rng, LARGEST - 4);
    }
}

/* The messages of a round, the same on all ranks. */
static int draw(uint64_t seed, int round, message *plan) {
    t_rng rng = t_seed(seed * 1000 + (uint64_t)round);
    int count = 1 + (int)t_below(&rng, (uint32_t)(EACH * t_size));
    for (int i = 0; i < count; i++) {
        message m = {(int)t_below(&rng, (uint32_t)t_size), (int)t_below(&rng, (uint32_t)t_size), (int)t_below(&rng, TAGS), size_of(&rng),
                     0, (seed * ROUNDS + (uint64_t)round) * 1000 + (uint64_t)i};
        m.gaps = t_below(&rng, 4) == 0;
        if (m.gaps)
            m.bytes = m.bytes / 4 * 4;
        plan[i] = m;
    }
    return count;
}

/* Whether a rank posts its receives of a round before it sends: to it, and by such a rank, sends may block. */
static int is_early(uint64_t seed, int round, int rank) {
    t_rng rng = t_seed(seed * 31 + (uint64_t)(round * 64 + rank) * 7 + 3);
    return t_below(&rng, 8) < 4;
}

/* The application computes, or does something else. */
static void work(t_rng *rng) {
    uint32_t kind = t_below(rng, 24);
    if (kind == 0)
        usleep(t_below(rng, 2000));
    double until = MPI_Wtime() + (kind < 6 ? t_below(rng, 300) * 1e-6 : 0);
    while (MPI_Wtime() < until)
        ;
}

/* The memory of a message as it leaves, with its number in front, and how it is described. */
static unsigned char *outgoing(const message *m, int index, MPI_Datatype *type, int *count) {
    unsigned char *whole = t_alloc((size_t)m->bytes);
    t_fill(whole, (size_t)m->bytes, m->pattern);
    memcpy(whole, &index, sizeof index);
    *type = MPI_BYTE, *count = m->bytes;
    if (!m->gaps)
        return whole;
    unsigned char *spread = t_alloc(2 * (size_t)m->bytes);
    for (int i = 0; i < m->bytes; i += 4)
        memcpy(spread + 2 * i, whole + i, 4);
    free(whole);
    OK(MPI_Type_vector(m->bytes / 4, 4, 8, MPI_BYTE, type));
    OK(MPI_Type_commit(type));
    *count = 1;
    return spread;
}

/* Sends, or begins to. */
static MPI_Request send(const message *m, const void *data, MPI_Datatype type, int count, int may_block, t_rng *rng, MPI_Comm comm) {
    MPI_Request request = MPI_REQUEST_NULL;
    uint32_t mode = t_below(rng, may_block ? 8 : 6);
    if (mode < 2 && m->bytes > BUFFERED)
        mode = 2;
    switch (mode) {
    case 0: OK(MPI_Bsend(data, count, type, m->to, m->tag, comm)); break;
    case 1: OK(MPI_Ibsend(data, count, type, m->to, m->tag, comm, &request)); break;
    case 2: OK(MPI_Isend(data, count, type, m->to, m->tag, comm, &request)); break;
    case 3: OK(MPI_Issend(data, count, type, m->to, m->tag, comm, &request)); break;
    case 4:
        OK(MPI_Send_init(data, count, type, m->to, m->tag, comm, &request));
        OK(MPI_Start(&request));
        break;
    case 5:
        OK(MPI_Ssend_init(data, count, type, m->to, m->tag, comm, &request));
        OK(MPI_Start(&request));
        break;
    case 6: OK(MPI_Send(data, count, type, m->to, m->tag, comm)); break;
    default: OK(MPI_Ssend(data, count, type, m->to, m->tag, comm));
    }
    return request;
}

/* Posts a receive. */
static MPI_Request post(receive *r, t_rng *rng, MPI_Comm comm) {
    MPI_Request request;
    if (t_below(rng, 3)) {
        OK(MPI_Irecv(r->memory, LARGEST, MPI_BYTE, r->source, r->tag, comm, &request));
    } else {
        OK(MPI_Recv_init(r->memory, LARGEST, MPI_BYTE, r->source, r->tag, comm, &request));
        OK(MPI_Start(&request));
    }
    return request;
}

/* Receives, one way or another. */
static void receive_now(receive *r, t_rng *rng, MPI_Comm comm) {
    int flag = 0, bytes;
    MPI_Message found;
    MPI_Request request;
    MPI_Status told;
    switch (t_below(rng, 5)) {
    case 0: OK(MPI_Recv(r->memory, LARGEST, MPI_BYTE, r->source, r->tag, comm, &r->status)); return;
    case 1: OK(MPI_Probe(r->source, r->tag, comm, &told)); break;
    case 2:
        while (!flag) {
            OK(MPI_Iprobe(r->source, r->tag, comm, &flag, &told));
            work(rng);
        }
        break;
    case 3:
        OK(MPI_Mprobe(r->source, r->tag, comm, &found, &told));
        work(rng);
        OK(MPI_Get_count(&told, MPI_BYTE, &bytes));
        OK(MPI_Mrecv(r->memory, bytes, MPI_BYTE, &found, &r->status));
        return;
    default:
        while (!flag)
            OK(MPI_Improbe(r->source, r->tag, comm, &flag, &found, &told));
        OK(MPI_Imrecv(r->memory, LARGEST, MPI_BYTE, &found, &request));
        work(rng);
        OK(MPI_Wait(&request, &r->status));
        return;
    }
    OK(MPI_Get_count(&told, MPI_BYTE, &bytes));
    OK(MPI_Recv(r->memory, bytes, MPI_BYTE, told.MPI_SOURCE, told.MPI_TAG, comm, &r->status));
}

/* Waits for all, one way or another. */
static void complete(int count, MPI_Request *requests, MPI_Status *statuses, t_rng *rng) {
    int some[count + 1], done = 0, flag = 0, index, kind = (int)t_below(rng, 6);
    MPI_Status one, few[count + 1];
    switch (kind) {
    case 0: OK(MPI_Waitall(count, requests, statuses)); return;
    case 1:
        for (int i = count - 1; i >= 0; i--)
            OK(MPI_Wait(&requests[i], &statuses[i]));
        return;
    case 2:
        while (!flag) {
            OK(MPI_Testall(count, requests, &flag, statuses));
            work(rng);
        }
        return;
    case 3:
        for (int i = 0; i < count; i++)
            for (flag = 0; !flag; work(rng))
                OK(MPI_Test(&requests[i], &flag, &statuses[i]));
        return;
    default:
        for (;;) {
            if (kind == 4) {
                OK(MPI_Waitany(count, requests, &index, &one));
                if (index == MPI_UNDEFINED)
                    return;
                statuses[index] = one;
            } else {
                OK(MPI_Testsome(count, requests, &done, some, few));
                if (done == MPI_UNDEFINED)
                    return;
                for (int i = 0; i < done; i++)
                    statuses[some[i]] = few[i];
                work(rng);
            }
        }
    }
}

/* What came is a message of the plan, and comes for the first time, to a receive that may have it. */
static void check(receive *r, const message *plan, int count, char *taken) {
    int index;
    memcpy(&index, r->memory, sizeof index);
    CHECK(index >= 0 && index < count && plan[index].to == t_rank && !taken[index]);
    const message *m = &plan[index];
    taken[index] = 1, r->got = index;
    CHECK_STATUS(r->status, m->from, m->tag, m->bytes);
    CHECK(r->source == MPI_ANY_SOURCE || r->source == m->from);
    CHECK(r->tag == MPI_ANY_TAG || r->tag == m->tag);
    for (size_t i = 0; i < sizeof index; i++)
        r->memory[i] = t_byte(m->pattern, i);
    CHECK_FILL(r->memory, m->bytes, m->pattern);
    free(r->memory);
}

/* The receives of this rank, in the order in which they are posted. All of a round select in one manner, so that none takes what another needs. */
static int receives_of(const message *plan, int count, receive *receives, t_rng *rng) {
    uint32_t manner = t_below(rng, 4);
    int all = 0;
    for (int i = 0; i < count; i++) {
        if (plan[i].to != t_rank)
            continue;
        receive r = {t_alloc(LARGEST), manner & 1 ? MPI_ANY_SOURCE : plan[i].from, manner & 2 ? MPI_ANY_TAG : plan[i].tag, -1, {0}};
        int at = (int)t_below(rng, (uint32_t)all + 1);
        if (at < all)
            receives[all] = receives[at];
        receives[at] = r;
        all++;
    }
    return all;
}

static void one_round(const own *mine, int round) {
    MPI_Comm comm = mine->comms[round % COMMS];
    message plan[EACH * t_size];
    receive receives[EACH * t_size];
    MPI_Request requests[2 * EACH * t_size];
    MPI_Status statuses[2 * EACH * t_size];
    unsigned char *out[EACH * t_size];
    char taken[EACH * t_size];
    int count = draw(mine->seed, round, plan), posted = 0;
    t_rng rng = t_seed(mine->seed * 7919 + (uint64_t)(round * 64 + t_rank + 1));
    int all = receives_of(plan, count, receives, &rng), early = is_early(mine->seed, round, t_rank), sent = 0;
    memset(taken, 0, sizeof taken);
    for (; early && posted < all; posted++)
        requests[posted] = post(&receives[posted], &rng, comm);
    int pending = posted;
    for (int i = 0; i < count; i++) {
        if (plan[i].from != t_rank)
            continue;
        MPI_Datatype type;
        int items;
        out[sent] = outgoing(&plan[i], i, &type, &items);
        int may_block = early && is_early(mine->seed, round, plan[i].to);
        requests[pending] = send(&plan[i], out[sent++], type, items, may_block, &rng, comm);
        pending += requests[pending] != MPI_REQUEST_NULL;
        if (plan[i].gaps)
            OK(MPI_Type_free(&type));
        work(&rng);
    }
    for (int i = posted; i < all; i++)
        receive_now(&receives[i], &rng, comm);
    complete(pending, requests, statuses, &rng);
    for (int i = 0; i < pending; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            OK(MPI_Request_free(&requests[i]));
    int last[TAGS + 1][t_size];
    memset(last, -1, sizeof last);
    for (int i = 0; i < all; i++) {
        if (i < posted)
            receives[i].status = statuses[i];
        check(&receives[i], plan, count, taken);
        int *before_it = &last[receives[i].tag == MPI_ANY_TAG ? TAGS : receives[i].tag][receives[i].status.MPI_SOURCE];
        CHECK(*before_it < receives[i].got);
        *before_it = receives[i].got;
    }
    while (sent > 0)
        free(out[--sent]);
}

static void *worker(void *argument) {
    const own *mine = argument;
    for (int round = 0; round < ROUNDS; round++) {
        one_round(mine, round);
        if (round % COMMS == COMMS - 1)
            OK(MPI_Barrier(mine->comms[0]));
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided = -1, threads = argc > 2 ? atoi(argv[2]) : 1;
    OK(MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    t_started();
    CHECK(threads == 1 || provided == MPI_THREAD_MULTIPLE);
    void *buffer = t_alloc(BUFFER);
    OK(MPI_Buffer_attach(buffer, BUFFER));
    own each[threads];
    pthread_t running[threads];
    for (int t = 0; t < threads; t++) {
        each[t].seed = (uint64_t)(argc > 1 ? atoi(argv[1]) : 1) * 97 + (uint64_t)t;
        for (int i = 0; i < COMMS; i++)
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &each[t].comms[i]));
    }
    for (int t = 1; t < threads; t++)
        CHECK(pthread_create(&running[t], NULL, worker, &each[t]) == 0);
    worker(&each[0]);
    for (int t = 1; t < threads; t++)
        CHECK(pthread_join(running[t], NULL) == 0);
    for (int t = 0; t < threads; t++)
        for (int i = 0; i < COMMS; i++)
            OK(MPI_Comm_free(&each[t].comms[i]));
    OK(MPI_Buffer_detach(&buffer, &(int){0}));
    free(buffer);
    return t_end();
}
