/* Collectives between the two groups of an intercommunicator, in every form: data goes from each group to the
 * other; MPI_ROOT and MPI_PROC_NULL say who of a group is the root. MPICH 5's Ibcast does not reach the whole
 * other group unless the root is rank 0, so only the blocking form is run there.
 * args: 0
 * args[tern]: 1
 * args[tern]: 2 */
#include "../coll_forms.h"
#include "../inter.h"

enum { COUNTS = 3 };
static const int counts[COUNTS] = {1, 5, 3000};

/* What rank `rank` of a group has at place `i`, for receiver `to`. */
static int value(int low, int rank, int to, int i) {
    return (low ? 1000003 : 17) * (rank + 1) + 101 * to + i;
}

/* What this rank gives as the root: rank `root` of the sending group is it. */
static int given(const sides *s, int sends, int root) {
    return !sends ? root : s->rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void fill(int *buffer, int low, int rank, int to, int n) {
    for (int i = 0; i < n; i++)
        buffer[i] = value(low, rank, to, i);
}

static void holds(const int *buffer, int low, int rank, int to, int n) {
    for (int i = 0; i < n; i++)
        CHECK_AT(i, buffer[i], value(low, rank, to, i));
}

static void rooted(const sides *s, int form, int from_low, int n) {
    int sends = s->low == from_low, senders = sends ? s->size : s->remote;
    int receivers = sends ? s->remote : s->size;
    int all = senders > receivers ? senders : receivers;
    int *one = t_alloc(sizeof(int) * n), *many = t_alloc(sizeof(int) * n * all * 2);
    int *amounts = t_alloc(sizeof(int) * all), *displs = t_alloc(sizeof(int) * all);
    for (int root = 0; root < senders; root++) {
        int who = given(s, sends, root);
        memset(one, 0, sizeof(int) * n);
        if (who == MPI_ROOT)
            fill(one, s->low, s->rank, 0, n);
        COLL(form, Bcast, bcast, one, n, MPI_INT, who, s->inter);
        if (!sends)
            holds(one, from_low, root, 0, n);

        for (int to = 0; who == MPI_ROOT && to < receivers; to++)
            fill(many + to * n, s->low, root, to, n);
        COLL(form, Scatter, scatter, many, n, MPI_INT, one, n, MPI_INT, who, s->inter);
        if (!sends)
            holds(one, from_low, root, s->rank, n);

        /* Rank `to` gets a share of its own, from the back. */
        for (int to = 0; to < receivers; to++) {
            amounts[to] = n * (to % 3) / 2;
            displs[to] = (receivers - 1 - to) * n;
            if (who == MPI_ROOT)
                fill(many + displs[to], s->low, root, to, amounts[to]);
        }
        int mine = sends ? 0 : amounts[s->rank];
        COLL(form, Scatterv, scatterv, many, amounts, displs, MPI_INT, one, mine, MPI_INT, who, s->inter);
        if (!sends)
            holds(one, from_low, root, s->rank, mine);
    }
    for (int root = 0; root < receivers; root++) {
        int who = given(s, !sends, root);
        fill(one, s->low, s->rank, 0, n);
        COLL(form, Gather, gather, one, n, MPI_INT, many, n, MPI_INT, who, s->inter);
        for (int from = 0; who == MPI_ROOT && from < senders; from++)
            holds(many + from * n, from_low, from, 0, n);

        for (int from = 0; from < senders; from++) {
            amounts[from] = n * (from % 3) / 2;
            displs[from] = (senders - 1 - from) * n;
        }
        int mine = sends ? amounts[s->rank] : 0;
        COLL(form, Gatherv, gatherv, one, mine, MPI_INT, many, amounts, displs, MPI_INT, who, s->inter);
        for (int from = 0; who == MPI_ROOT && from < senders; from++)
            holds(many + displs[from], from_low, from, 0, amounts[from]);

        COLL(form, Reduce, reduce, one, many, n, MPI_INT, MPI_SUM, who, s->inter);
        for (int i = 0; who == MPI_ROOT && i < n; i++) {
            int sum = 0;
            for (int from = 0; from < senders; from++)
                sum += value(from_low, from, 0, i);
            CHECK_AT(i, many[i], sum);
        }
    }
    free(one), free(many), free(amounts), free(displs);
}

/* How much rank `from` has for rank `to` where amounts differ. */
static int amount(int low, int from, int to, int n) {
    return n * ((from + 2 * to + low) % 3) / 2;
}

static void blocks(const sides *s, int form, int n) {
    int r = s->remote;
    int *one = t_alloc(sizeof(int) * n), *out = t_alloc(sizeof(int) * n * r), *in = t_alloc(sizeof(int) * n * r);
    int *sent = t_alloc(sizeof(int) * r), *got = t_alloc(sizeof(int) * r), *at = t_alloc(sizeof(int) * r);
    MPI_Datatype *types = t_alloc(sizeof *types * r);
    fill(one, s->low, s->rank, 0, n);
    COLL(form, Allgather, allgather, one, n, MPI_INT, in, n, MPI_INT, s->inter);
    for (int from = 0; from < r; from++)
        holds(in + from * n, !s->low, from, 0, n);

    /* The high group sends nothing. */
    int m = s->low ? n : 0, theirs = s->low ? 0 : n;
    COLL(form, Allgather, allgather, one, m, MPI_INT, in, theirs, MPI_INT, s->inter);
    for (int from = 0; from < r; from++)
        holds(in + from * n, !s->low, from, 0, theirs);

    for (int from = 0; from < r; from++) {
        got[from] = amount(!s->low, from, 0, n);
        at[from] = (r - 1 - from) * n;
    }
    COLL(form, Allgatherv, allgatherv, one, amount(s->low, s->rank, 0, n), MPI_INT, in, got, at, MPI_INT, s->inter);
    for (int from = 0; from < r; from++)
        holds(in + at[from], !s->low, from, 0, got[from]);

    for (int to = 0; to < r; to++)
        fill(out + to * n, s->low, s->rank, to, n);
    COLL(form, Alltoall, alltoall, out, n, MPI_INT, in, n, MPI_INT, s->inter);
    for (int from = 0; from < r; from++)
        holds(in + from * n, !s->low, from, s->rank, n);

    for (int i = 0; i < r; i++) {
        sent[i] = amount(s->low, s->rank, i, n);
        got[i] = amount(!s->low, i, s->rank, n);
        at[i] = i * n;
    }
    COLL(form, Alltoallv, alltoallv, out, sent, at, MPI_INT, in, got, at, MPI_INT, s->inter);
    for (int from = 0; from < r; from++)
        holds(in + at[from], !s->low, from, s->rank, got[from]);

    for (int i = 0; i < r; i++)
        at[i] = i * n * sizeof(int), types[i] = MPI_INT;
    memset(in, 0, sizeof(int) * n * r);
    COLL(form, Alltoallw, alltoallw, out, sent, at, types, in, got, at, types, s->inter);
    for (int from = 0; from < r; from++)
        holds(in + from * n, !s->low, from, s->rank, got[from]);
    free(one), free(out), free(in), free(sent), free(got), free(at), free(types);
}

/* A product of 2 x 2 matrices modulo a prime: the order of ranks counts. */
static void product(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    int *a = in, *b = inout;
    for (int k = 0; k < *len; k++, a += 4, b += 4) {
        int c[4];
        for (int i = 0; i < 4; i++)
            c[i] = (a[i / 2 * 2] * b[i % 2] + a[i / 2 * 2 + 1] * b[2 + i % 2]) % 10007;
        memcpy(b, c, sizeof c);
    }
}

static void matrix(int low, int rank, int i, int m[4]) {
    int v[4] = {rank + 2, i % 5 + 1, low + 1, rank + i % 3};
    memcpy(m, v, sizeof v);
}

static void reductions(const sides *s, int form, int n, MPI_Op op, MPI_Datatype quad) {
    /* Vectors that can be dealt out in both groups. */
    int total = n * s->size * s->remote, longest = total > 0 ? total : 1;
    int *in = t_alloc(sizeof(int) * longest), *out = t_alloc(sizeof(int) * longest);
    for (int i = 0; i < total; i++)
        in[i] = value(s->low, s->rank, 0, i);
    COLL(form, Allreduce, allreduce, in, out, total, MPI_INT, MPI_MAX, s->inter);
    for (int i = 0; i < total; i++)
        CHECK_AT(i, out[i], value(!s->low, s->remote - 1, 0, i));

    int each = n * s->remote;
    COLL(form, Reduce_scatter_block, reduce_scatter_block, in, out, each, MPI_INT, MPI_MAX, s->inter);
    for (int i = 0; i < each; i++)
        CHECK_AT(i, out[i], value(!s->low, s->remote - 1, 0, s->rank * each + i));

    /* The last rank gets what the others are short of. */
    int *shares = t_alloc(sizeof(int) * s->size), start = 0, left = total;
    for (int r = 0; r < s->size; r++) {
        shares[r] = r == s->size - 1 ? left : each / 2;
        left -= shares[r];
        start += r < s->rank ? shares[r] : 0;
    }
    COLL(form, Reduce_scatter, reduce_scatter, in, out, shares, MPI_INT, MPI_MAX, s->inter);
    for (int i = 0; i < shares[s->rank]; i++)
        CHECK_AT(i, out[i], value(!s->low, s->remote - 1, 0, start + i));
    free(in), free(out), free(shares);

    int *m = t_alloc(sizeof(int) * 4 * n), *got = t_alloc(sizeof(int) * 4 * n);
    for (int i = 0; i < n; i++)
        matrix(s->low, s->rank, i, m + 4 * i);
    COLL(form, Allreduce, allreduce, m, got, n, quad, op, s->inter);
    for (int i = 0; i < n; i++) {
        int want[4], next[4], one = 1;
        matrix(!s->low, s->remote - 1, i, want);
        for (int r = s->remote - 2; r >= 0; r--) {
            matrix(!s->low, r, i, next);
            product(next, want, &one, NULL);
        }
        for (int k = 0; k < 4; k++)
            CHECK_AT(i, got[4 * i + k], want[k]);
    }
    free(m), free(got);
}

/* Several at once, ended in the other order. */
static void at_once(const sides *s) {
    MPI_Request requests[3];
    int mine = value(s->low, s->rank, 0, 0), max, *all = t_alloc(sizeof(int) * s->remote);
    OK(MPI_Iallreduce(&mine, &max, 1, MPI_INT, MPI_MAX, s->inter, &requests[2]));
    OK(MPI_Ibarrier(s->inter, &requests[1]));
    OK(MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, s->inter, &requests[0]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(max, value(!s->low, s->remote - 1, 0, 0));
    for (int r = 0; r < s->remote; r++)
        CHECK_EQ(all[r], value(!s->low, r, 0, 0));
    free(all);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int form = argc > 1 ? atoi(argv[1]) : BLOCKING;
    MPI_Op op;
    MPI_Datatype quad;
    OK(MPI_Op_create(product, 0, &op));
    OK(MPI_Type_contiguous(4, MPI_INT, &quad));
    OK(MPI_Type_commit(&quad));
    sides s;
    for (int division = 0; division < DIVISIONS; division++) {
        if (!sides_make(division, &s))
            continue;
        COLL(form, Barrier, barrier, s.inter);
        for (int c = 0; c < COUNTS; c++) {
            rooted(&s, form, 0, counts[c]);
            rooted(&s, form, 1, counts[c]);
            blocks(&s, form, counts[c]);
            reductions(&s, form, counts[c], op, quad);
        }
        at_once(&s);
        sides_free(&s);
    }
    OK(MPI_Type_free(&quad));
    OK(MPI_Op_free(&op));
    return t_end();
}
