/* Reduce to every root, allreduce, reduce_scatter(_block), scan and exscan, with
 * MPI_IN_PLACE; sums wrap, which the oracle does as well (unsigned). */
#include "coll_forms.h"

typedef unsigned word;

/* The sum of what ranks first … last-1 contribute at `i`. */
static word sum(int first, int last, long long i) {
    word total = 0;
    for (int r = first; r < last; r++)
        total += (word)item(r, i);
    return total;
}

static void check_sum(const int *data, int count, int first, int last, long long from) {
    for (int i = 0; i < count; i++)
        CHECK_AT(i, (word)data[i], sum(first, last, from + i));
}

static void rooted(const place *p, int count, enum form form, int in_place) {
    for (int root = 0; root < p->size; root += root_step(count, p->size)) {
        int *out = contribution(p->rank, count), *in = in_place ? contribution(p->rank, count) : blank(count);
        const void *from = in_place && p->rank == root ? MPI_IN_PLACE : out;
        COLL(form, Reduce, reduce, from, in, count, MPI_UNSIGNED, MPI_SUM, root, p->comm);
        if (p->rank == root)
            check_sum(in, count, 0, p->size, 0);
        for (int i = 0; i < count; i++)
            CHECK_AT(i, out[i], item(p->rank, i));
        free(out);
        free(in);
    }
}

static void to_all(const place *p, int count, enum form form, int in_place) {
    int *out = contribution(p->rank, count), *in = in_place ? contribution(p->rank, count) : blank(count);
    COLL(form, Allreduce, allreduce, in_place ? MPI_IN_PLACE : out, in, count, MPI_UNSIGNED, MPI_SUM, p->comm);
    check_sum(in, count, 0, p->size, 0);
    free(out);
    free(in);
}

static void prefixes(const place *p, int count, enum form form, int in_place) {
    int *out = contribution(p->rank, count), *in = in_place ? contribution(p->rank, count) : blank(count);
    COLL(form, Scan, scan, in_place ? MPI_IN_PLACE : out, in, count, MPI_UNSIGNED, MPI_SUM, p->comm);
    check_sum(in, count, 0, p->rank + 1, 0);
    for (int i = 0; i < count; i++)
        in[i] = in_place ? item(p->rank, i) : -1;
    COLL(form, Exscan, exscan, in_place ? MPI_IN_PLACE : out, in, count, MPI_UNSIGNED, MPI_SUM, p->comm);
    if (p->rank)
        check_sum(in, count, 0, p->rank, 0);
    free(out);
    free(in);
}

static void scattered(const place *p, int count, enum form form, int in_place) {
    /* Equal blocks. */
    long long total = (long long)count * p->size;
    int *out = contribution(p->rank, total), *in = in_place ? contribution(p->rank, total) : blank(count);
    COLL(form, Reduce_scatter_block, reduce_scatter_block, in_place ? MPI_IN_PLACE : out, in, count, MPI_UNSIGNED,
         MPI_SUM, p->comm);
    check_sum(in, count, 0, p->size, (long long)count * p->rank);
    free(out);
    free(in);
    /* Blocks of different sizes, some empty. */
    int *counts = ints(p->size), before = 0;
    total = 0;
    for (int r = 0; r < p->size; r++) {
        counts[r] = r % 3 == 1 ? 0 : count / (r + 1);
        before += r < p->rank ? counts[r] : 0;
        total += counts[r];
    }
    out = contribution(p->rank, total);
    in = in_place ? contribution(p->rank, total) : blank(counts[p->rank]);
    COLL(form, Reduce_scatter, reduce_scatter, in_place ? MPI_IN_PLACE : out, in, counts, MPI_UNSIGNED, MPI_SUM,
         p->comm);
    check_sum(in, counts[p->rank], 0, p->size, before);
    free(out);
    free(in);
    free(counts);
}

static void body(const place *p, int count, enum form form) {
    for (int in_place = 0; in_place < 2; in_place++) {
        rooted(p, count, form, in_place);
        to_all(p, count, form, in_place);
        prefixes(p, count, form, in_place);
        scattered(p, count, form, in_place);
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    coll_all(body);
    return t_end();
}
