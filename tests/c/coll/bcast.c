/* Broadcast from every root. */
#include "coll_forms.h"

static void body(const place *p, int count, enum form form) {
    for (int root = 0; root < p->size; root += root_step(count, p->size)) {
        int *data = p->rank == root ? contribution(root, count) : blank(count);
        COLL(form, Bcast, bcast, data, count, MPI_INT, root, p->comm);
        for (int i = 0; i < count; i++)
            CHECK_AT(i, data[i], item(root, i));
        free(data);
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    coll_all(body);
    return t_end();
}
