/* Allgather and allgatherv, with MPI_IN_PLACE, zero counts and gaps. */
#include "coll_forms.h"

static void plain(const place *p, int count, enum form form, int in_place) {
    int *out = contribution(p->rank, count), *in = blank((long long)count * p->size);
    if (in_place)
        memcpy(in + (size_t)count * (size_t)p->rank, out, sizeof(int) * (size_t)count);
    COLL(form, Allgather, allgather, in_place ? MPI_IN_PLACE : out, count, MPI_INT, in, count, MPI_INT, p->comm);
    for (int r = 0; r < p->size; r++)
        for (int i = 0; i < count; i++)
            CHECK_AT(i, in[(size_t)r * (size_t)count + (size_t)i], item(r, i));
    free(out);
    free(in);
}

static void varying(const place *p, int count, enum form form, int in_place) {
    int *counts = ints(p->size), *offsets = ints(p->size), at = 0;
    for (int r = p->size - 1; r >= 0; r--) {
        counts[r] = (r + 1) % 3 == 0 ? 0 : count / (r + 1);
        offsets[r] = at + 1;
        at += 1 + counts[r];
    }
    int own = counts[p->rank], *out = contribution(p->rank, own), *in = blank(at);
    if (in_place)
        memcpy(in + offsets[p->rank], out, sizeof(int) * (size_t)own);
    COLL(form, Allgatherv, allgatherv, in_place ? MPI_IN_PLACE : out, own, MPI_INT, in, counts, offsets, MPI_INT,
         p->comm);
    for (int r = 0; r < p->size; r++) {
        CHECK_AT(r, in[offsets[r] - 1], -1);
        for (int i = 0; i < counts[r]; i++)
            CHECK_AT(i, in[offsets[r] + i], item(r, i));
    }
    free(out);
    free(in);
    free(counts);
    free(offsets);
}

static void body(const place *p, int count, enum form form) {
    for (int in_place = 0; in_place < 2; in_place++) {
        plain(p, count, form, in_place);
        varying(p, count, form, in_place);
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    coll_all(body);
    return t_end();
}
