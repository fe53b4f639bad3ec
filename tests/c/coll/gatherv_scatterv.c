/* Gatherv and scatterv: counts differ by rank, some are zero, blocks lie in reverse order
 * with gaps between them that stay untouched. */
#include "coll_forms.h"

static int count_of(int rank, int count) {
    return rank % 3 == 1 ? 0 : count / (rank + 1) + (count ? rank : 0);
}

/* Counts and displacements: the last rank's block first, a gap of two before each. */
static int layout(int size, int count, int *counts, int *offsets) {
    int at = 0;
    for (int r = size - 1; r >= 0; r--) {
        counts[r] = count_of(r, count);
        offsets[r] = at + 2;
        at += 2 + counts[r];
    }
    return at;
}

static void check_blocks(const int *in, const int *counts, const int *offsets, int size) {
    int covered = 0;
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK_AT(i, in[offsets[r] + i], item(r, i));
    for (int r = size - 1; r >= 0; r--) {
        CHECK_AT(r, in[offsets[r] - 1], -1);
        CHECK_AT(r, in[offsets[r] - 2], -1);
        covered += counts[r];
    }
    CHECK(covered >= 0);
}

static void body(const place *p, int count, enum form form) {
    int *counts = ints(p->size), *offsets = ints(p->size);
    int total = layout(p->size, count, counts, offsets), own = counts[p->rank];
    for (int root = 0; root < p->size; root += root_step(count, p->size))
        for (int in_place = 0; in_place < 2; in_place++) {
            int *out = contribution(p->rank, own), *in = blank(total), *back = blank(own);
            const void *from = out;
            void *to = back;
            if (in_place && p->rank == root) {
                memcpy(in + offsets[root], out, sizeof(int) * (size_t)own);
                from = MPI_IN_PLACE;
                to = MPI_IN_PLACE;
            }
            COLL(form, Gatherv, gatherv, from, own, MPI_INT, in, counts, offsets, MPI_INT, root, p->comm);
            if (p->rank == root)
                check_blocks(in, counts, offsets, p->size);
            COLL(form, Scatterv, scatterv, in, counts, offsets, MPI_INT, to, own, MPI_INT, root, p->comm);
            if (to == back)
                for (int i = 0; i < own; i++)
                    CHECK_AT(i, back[i], item(p->rank, i));
            free(out);
            free(in);
            free(back);
        }
    free(counts);
    free(offsets);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    coll_all(body);
    return t_end();
}
