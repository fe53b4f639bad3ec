/* Gather and scatter to and from every root, with MPI_IN_PLACE at the root as well. */
#include "coll_forms.h"

static void gather(const place *p, int count, enum form form, int root, int in_place) {
    int *out = contribution(p->rank, count), *in = NULL;
    const void *from = out;
    if (p->rank == root) {
        in = blank((long long)count * p->size);
        if (in_place) {
            memcpy(in + (size_t)count * (size_t)root, out, sizeof(int) * (size_t)count);
            from = MPI_IN_PLACE;
        }
    }
    COLL(form, Gather, gather, from, count, MPI_INT, in, count, MPI_INT, root, p->comm);
    if (p->rank == root)
        for (int r = 0; r < p->size; r++)
            for (int i = 0; i < count; i++)
                CHECK_AT(i, in[(size_t)r * (size_t)count + (size_t)i], item(r, i));
    free(in);
    free(out);
}

static void scatter(const place *p, int count, enum form form, int root, int in_place) {
    int *out = p->rank == root ? contribution(root, (long long)count * p->size) : NULL, *in = blank(count);
    void *to = p->rank == root && in_place ? MPI_IN_PLACE : in;
    COLL(form, Scatter, scatter, out, count, MPI_INT, to, count, MPI_INT, root, p->comm);
    if (to == in)
        for (int i = 0; i < count; i++)
            CHECK_AT(i, in[i], item(root, (long long)count * p->rank + i));
    if (out)
        for (long long i = 0; i < (long long)count * p->size; i++)
            CHECK_AT(i, out[i], item(root, i));
    free(out);
    free(in);
}

static void body(const place *p, int count, enum form form) {
    for (int root = 0; root < p->size; root += root_step(count, p->size))
        for (int in_place = 0; in_place < 2; in_place++) {
            gather(p, count, form, root, in_place);
            scatter(p, count, form, root, in_place);
        }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    coll_all(body);
    return t_end();
}
