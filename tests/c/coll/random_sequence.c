/* A long random sequence of collectives, the same on all ranks by the seed, of random
 * kinds, roots, sizes and communicators, each checked; ranks come late at random. */
// args: 11
// args: 12
#include "coll_forms.h"

#include <unistd.h>

static void one(const place *p, uint32_t kind, int count, int root, enum form form) {
    long long all = (long long)count * p->size;
    int *out = contribution(p->rank, all), *in = blank(all);
    switch (kind) {
    case 0:
        COLL(form, Bcast, bcast, p->rank == root ? out : in, count, MPI_INT, root, p->comm);
        for (int i = 0; i < count && p->rank != root; i++)
            CHECK_AT(i, in[i], item(root, i));
        break;
    case 1:
        COLL(form, Allgather, allgather, out, count, MPI_INT, in, count, MPI_INT, p->comm);
        for (long long i = 0; i < all; i++)
            CHECK_AT(i, in[i], item((int)(i / count), i % count));
        break;
    case 2:
        COLL(form, Gather, gather, out, count, MPI_INT, in, count, MPI_INT, root, p->comm);
        for (long long i = 0; i < all && p->rank == root; i++)
            CHECK_AT(i, in[i], item((int)(i / count), i % count));
        break;
    case 3:
        COLL(form, Scatter, scatter, out, count, MPI_INT, in, count, MPI_INT, root, p->comm);
        for (int i = 0; i < count; i++)
            CHECK_AT(i, in[i], item(root, (long long)p->rank * count + i));
        break;
    case 4:
        COLL(form, Alltoall, alltoall, out, count, MPI_INT, in, count, MPI_INT, p->comm);
        for (long long i = 0; i < all; i++)
            CHECK_AT(i, in[i], item((int)(i / count), (long long)p->rank * count + i % count));
        break;
    case 5:
    case 6:
        if (kind == 5)
            COLL(form, Allreduce, allreduce, out, in, count, MPI_INT, MPI_MAX, p->comm);
        else
            COLL(form, Reduce, reduce, out, in, count, MPI_INT, MPI_MAX, root, p->comm);
        for (int i = 0; i < count && (kind == 5 || p->rank == root); i++) {
            int most = item(0, i);
            for (int r = 1; r < p->size; r++)
                most = item(r, i) > most ? item(r, i) : most;
            CHECK_AT(i, in[i], most);
        }
        break;
    default:
        COLL(form, Barrier, barrier, p->comm);
    }
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    t_rng shared = t_seed((uint64_t)(argc > 1 ? atoi(argv[1]) : 1)), own = t_seed((uint64_t)t_rank + 77);
    place places[COMMS];
    coll_places(places);
    for (int round = 0; round < 300; round++) {
        const place *p = &places[t_below(&shared, COMMS)];
        uint32_t kind = t_below(&shared, 8), scale = t_below(&shared, 4);
        int count = (int)t_below(&shared, (uint32_t[]){2, 30, 3000, 60000}[scale]);
        int root = (int)t_below(&shared, 1u << 20) % p->size;
        enum form form = (enum form)t_below(&shared, FORMS);
        if (t_below(&own, 20) == 0)
            usleep(t_below(&own, 2000));
        one(p, kind, count, root, form);
    }
    coll_free(places);
    return t_end();
}
