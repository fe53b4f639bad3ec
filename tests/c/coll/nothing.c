/* Collectives of no elements, and with lists of counts that are all zero, or zero for some ranks: nothing is touched, what is
 * between them arrives, and the send buffer may be NULL. With the argument `apart` each rank comes to a call without data only when
 * the one before it has left: nobody has to wait for what does not come. Between hosts lengths go through leaders, also if all
 * are zero: there nothing is expected of it. */
// args:
// args[tern]: apart
#include "coll_forms.h"

enum { ROUNDS = 4, MOST = 8, EACH = 3 };

static int counts[MOST], offsets[MOST], bytes[MOST], no[MOST];
static MPI_Datatype types[MOST], empty, empties[MOST];

/* Three elements from every rank but those that `mask` leaves out, with a gap of one before each block. */
static void layout(unsigned mask) {
    for (int i = 0; i < t_size; i++) {
        counts[i] = mask >> i & 1 ? EACH : 0;
        offsets[i] = (EACH + 1) * i + 1;
        bytes[i] = offsets[i] * (int)sizeof(int);
        types[i] = MPI_INT;
        empties[i] = empty;
    }
}

/* In `got` stand the blocks of the ranks with data and nothing else. */
static void check(const int *got, int to) {
    for (int i = 0; i < t_size; i++) {
        CHECK_AT(i, got[(EACH + 1) * i], -1);
        for (int k = 0; k < EACH; k++)
            CHECK_AT(i, got[offsets[i] + k], counts[i] ? item(i, k + to) : -1);
    }
}

static void some(unsigned mask, enum form form) {
    MPI_Comm comm = MPI_COMM_WORLD;
    int total = (EACH + 1) * t_size, own, root = (int)(mask % (unsigned)t_size);
    layout(mask);
    own = counts[t_rank];
    int *mine = contribution(t_rank, EACH), *got = blank(total), *part = blank(EACH), *all = blank(total);
    COLL(form, Gatherv, gatherv, mine, own, MPI_INT, got, counts, offsets, MPI_INT, root, comm);
    if (t_rank == root)
        check(got, 0);
    COLL(form, Scatterv, scatterv, got, counts, offsets, MPI_INT, part, own, MPI_INT, root, comm);
    for (int k = 0; k < EACH; k++)
        CHECK_AT(k, part[k], own ? item(t_rank, k) : -1);
    COLL(form, Allgatherv, allgatherv, mine, own, MPI_INT, all, counts, offsets, MPI_INT, comm);
    check(all, 0);
    memset(all, -1, sizeof(int) * (size_t)total);
    memcpy(all + offsets[t_rank], mine, sizeof(int) * (size_t)own);
    COLL(form, Allgatherv, allgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, offsets, MPI_INT, comm);
    check(all, 0);
    /* Who has nothing to give gives nothing to anybody, but takes from all others. */
    int *out = blank(total), *in = blank(total), give[MOST];
    for (int i = 0; i < t_size; i++) {
        give[i] = own;
        for (int k = 0; k < own; k++)
            out[offsets[i] + k] = item(t_rank, k + i);
    }
    COLL(form, Alltoallv, alltoallv, out, give, offsets, MPI_INT, in, counts, offsets, MPI_INT, comm);
    check(in, t_rank);
    memset(in, -1, sizeof(int) * (size_t)total);
    COLL(form, Alltoallw, alltoallw, out, give, bytes, types, in, counts, bytes, types, comm);
    check(in, t_rank);
    int *terms = ints(total), *sum = blank(EACH), at = 0;
    for (int i = 0; i < t_size; i++)
        for (int k = 0; k < counts[i]; k++)
            terms[at++] = t_rank + 10 * i + k;
    COLL(form, Reduce_scatter, reduce_scatter, terms, sum, counts, MPI_INT, MPI_SUM, comm);
    for (int k = 0; k < EACH; k++)
        CHECK_AT(k, sum[k], own ? t_size * (t_size - 1) / 2 + t_size * (10 * t_rank + k) : -1);
    free(mine), free(got), free(part), free(all), free(out), free(in), free(terms), free(sum);
}

/* No rank has data: counts that are zero, or elements of a type without any. */
static void none(enum form form, int full, int in_place) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Datatype type = full ? empty : MPI_INT;
    const int *list = full ? counts : no;
    int count = full ? EACH : 0, buffer[2 * MOST * (EACH + 1)];
    const void *from = in_place ? MPI_IN_PLACE : full ? (void *)buffer : NULL;
    void *to = buffer + MOST * (EACH + 1);
    layout(~0u);
    memset(buffer, 0x55, sizeof buffer);
    COLL(form, Gatherv, gatherv, t_rank ? to : from, count, type, to, list, offsets, type, 0, comm);
    COLL(form, Scatterv, scatterv, to, list, offsets, type,
         in_place && t_rank == 0 ? MPI_IN_PLACE : full ? (void *)buffer : NULL, count, type, 0, comm);
    COLL(form, Allgatherv, allgatherv, from, count, type, to, list, offsets, type, comm);
    COLL(form, Alltoallv, alltoallv, from, list, offsets, type, to, list, offsets, type, comm);
    COLL(form, Alltoallw, alltoallw, from, list, bytes, full ? empties : types, to, list, bytes,
         full ? empties : types, comm);
    if (!full)
        COLL(form, Reduce_scatter, reduce_scatter, from, to, list, MPI_INT, MPI_SUM, comm);
    CHECK_UNTOUCHED(buffer, sizeof buffer, 0x55);
}

/* Collectives of a count that is zero for all. Even ranks give a copy of the type and so go another way than the others: it
 * is the same call, and what follows must meet. */
static void even(enum form form, MPI_Datatype copy) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Datatype type = t_rank % 2 ? MPI_INT : copy;
    int from[1] = {0x55555555}, to[1] = {0x55555555}, one = t_rank + 1, sum = 0, root = t_size - 1;
    COLL(form, Bcast, bcast, to, 0, type, root, comm);
    COLL(form, Gather, gather, from, 0, type, to, 0, type, root, comm);
    COLL(form, Scatter, scatter, from, 0, type, to, 0, type, root, comm);
    COLL(form, Allgather, allgather, from, 0, type, to, 0, type, comm);
    COLL(form, Alltoall, alltoall, from, 0, type, to, 0, type, comm);
    COLL(form, Reduce, reduce, from, to, 0, type, MPI_SUM, root, comm);
    COLL(form, Allreduce, allreduce, from, to, 0, type, MPI_SUM, comm);
    COLL(form, Reduce_scatter_block, reduce_scatter_block, from, to, 0, type, MPI_SUM, comm);
    COLL(form, Scan, scan, from, to, 0, type, MPI_SUM, comm);
    COLL(form, Exscan, exscan, from, to, 0, type, MPI_SUM, comm);
    COLL(form, Allreduce, allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == t_size * (t_size + 1) / 2);
    CHECK(from[0] == 0x55555555 && to[0] == 0x55555555);
}

/* What a request says of a collective that moved nothing. */
static void asked(void) {
    MPI_Request request;
    MPI_Status status = {0};
    int flag = 0, count = -1;
    OK(MPI_Ibcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD, &request));
    CHECK(request != MPI_REQUEST_NULL);
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag);
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(request == MPI_REQUEST_NULL && count == 0);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
}

static int on_one_host(void) {
    MPI_Comm host;
    int size;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_size(host, &size));
    OK(MPI_Comm_free(&host));
    return size == t_size;
}

/* One rank after the other. */
static void apart(void) {
    for (int round = 0; round < ROUNDS; round++) {
        int token = round;
        if (t_rank > 0)
            OK(MPI_Recv(&token, 1, MPI_INT, t_rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        none(round % FORMS, 0, 0);
        if (t_rank + 1 < t_size)
            OK(MPI_Send(&token, 1, MPI_INT, t_rank + 1, 7, MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    OK(MPI_Type_commit(&empty));
    MPI_Datatype copy;
    OK(MPI_Type_dup(MPI_INT, &copy));
    layout(~0u);
    int one_by_one = argc > 1, here = on_one_host();
    for (int round = 0; round < ROUNDS; round++)
        for (int form = 0; form < FORMS; form++) {
            if (one_by_one) {
                if (here)
                    apart();
                continue;
            }
            even(form, copy);
            asked();
            for (unsigned mask = 0; mask < 1u << t_size; mask += t_size > 4 ? 13 : 1) {
                some(mask, form);
                none(form, mask & 1, mask >> 1 & 1);
            }
        }
    OK(MPI_Type_free(&copy));
    OK(MPI_Type_free(&empty));
    return t_end();
}
