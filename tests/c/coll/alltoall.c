/* Alltoall, alltoallv and alltoallw, with MPI_IN_PLACE, zero counts, different types. */
#include "coll_forms.h"

static int cell(int from, int to, int i) {
    return item(from * 64 + to, i);
}

static void plain(const place *p, int count, enum form form, int in_place) {
    long long total = (long long)count * p->size;
    int *out = ints(total), *in = blank(total);
    for (int r = 0; r < p->size; r++)
        for (int i = 0; i < count; i++)
            out[r * count + i] = cell(p->rank, r, i);
    if (in_place)
        memcpy(in, out, sizeof(int) * (size_t)total);
    COLL(form, Alltoall, alltoall, in_place ? MPI_IN_PLACE : out, count, MPI_INT, in, count, MPI_INT, p->comm);
    for (int r = 0; r < p->size; r++)
        for (int i = 0; i < count; i++)
            CHECK_AT(i, in[r * count + i], cell(r, p->rank, i));
    free(out);
    free(in);
}

/* How much `from` sends to `to`: symmetric, because of MPI_IN_PLACE; zero for some pairs. */
static int pair_count(int from, int to, int count) {
    return (from + to) % 3 == 2 ? 0 : count / (1 + (from + to) % 4);
}

static void varying(const place *p, int count, enum form form, int in_place) {
    int *counts = ints(p->size), *offsets = ints(p->size), at = 0;
    for (int r = p->size - 1; r >= 0; r--) {
        counts[r] = pair_count(p->rank, r, count);
        offsets[r] = at + 1;
        at += counts[r] + 1;
    }
    int *out = blank(at), *in = blank(at);
    for (int r = 0; r < p->size; r++)
        for (int i = 0; i < counts[r]; i++)
            out[offsets[r] + i] = cell(p->rank, r, i);
    if (in_place)
        memcpy(in, out, sizeof(int) * (size_t)at);
    COLL(form, Alltoallv, alltoallv, in_place ? MPI_IN_PLACE : out, counts, offsets, MPI_INT, in, counts, offsets,
         MPI_INT, p->comm);
    for (int r = 0; r < p->size; r++) {
        CHECK_AT(r, in[offsets[r] - 1], -1);
        for (int i = 0; i < counts[r]; i++)
            CHECK_AT(i, in[offsets[r] + i], cell(r, p->rank, i));
    }
    free(out);
    free(in);
    free(counts);
    free(offsets);
}

/* Sent as ints, received as bytes or as a vector with a gap, by the parity of the sender. */
static void typed(const place *p, int count, enum form form) {
    int n = p->size, *counts = ints(n), *sdispls = ints(n), *rcounts = ints(n), *rdispls = ints(n), at = 0;
    MPI_Datatype *stypes = t_alloc(sizeof *stypes * (size_t)n), *rtypes = t_alloc(sizeof *rtypes * (size_t)n), spread;
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread));
    OK(MPI_Type_commit(&spread));
    for (int r = 0; r < n; r++) {
        counts[r] = pair_count(p->rank, r, count);
        stypes[r] = MPI_INT;
        sdispls[r] = at * (int)sizeof(int);
        rdispls[r] = 2 * at * (int)sizeof(int);
        rtypes[r] = r % 2 ? spread : MPI_INT;
        rcounts[r] = counts[r];
        at += counts[r];
    }
    int *out = ints(at), *in = blank(2 * (long long)at);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < counts[r]; i++)
            out[sdispls[r] / 4 + i] = cell(p->rank, r, i);
    COLL(form, Alltoallw, alltoallw, out, counts, sdispls, stypes, in, rcounts, rdispls, rtypes, p->comm);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < counts[r]; i++) {
            CHECK_AT(i, in[rdispls[r] / 4 + (r % 2 ? 2 * i : i)], cell(r, p->rank, i));
            if (r % 2)
                CHECK_AT(i, in[rdispls[r] / 4 + 2 * i + 1], -1);
        }
    OK(MPI_Type_free(&spread));
    void *all[] = {counts, sdispls, rcounts, rdispls, stypes, rtypes, out, in};
    for (int i = 0; i < 8; i++)
        free(all[i]);
}

static void body(const place *p, int count, enum form form) {
    for (int in_place = 0; in_place < 2; in_place++) {
        plain(p, count, form, in_place);
        varying(p, count, form, in_place);
    }
    typed(p, count, form);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    coll_all(body);
    return t_end();
}
