/* Intercommunicators to try things on: the world divided in two, in several ways. */
#ifndef INTER_H
#define INTER_H

#include "tern_test.h"

typedef struct {
    MPI_Comm local, inter;
    int rank, size, remote; /* in the own group, its size, that of the other one */
    int low;                /* whether this is the group of world rank 0 */
} sides;

enum { DIVISIONS = 3 };

/* Divides the world: the first rank and the rest, even and odd ranks, the last rank and the rest backwards.
 * Whether there are two groups. */
static inline int sides_make(int division, sides *s) {
    if (t_size < 2)
        return 0;
    int low = division == 0 ? t_rank == 0 : division == 1 ? t_rank % 2 == 0 : t_rank < t_size - 1;
    OK(MPI_Comm_split(MPI_COMM_WORLD, low, division == 2 ? -t_rank : t_rank, &s->local));
    OK(MPI_Comm_rank(s->local, &s->rank));
    OK(MPI_Comm_size(s->local, &s->size));
    /* The leaders are the last ranks of both groups. */
    int odd = t_size - 1 - t_size % 2, even = t_size - 1 - (t_size - 1) % 2;
    int other = division == 1 ? (low ? odd : even) : (low ? t_size - 1 : 0);
    OK(MPI_Intercomm_create(s->local, s->size - 1, MPI_COMM_WORLD, other, 7, &s->inter));
    OK(MPI_Comm_remote_size(s->inter, &s->remote));
    CHECK_EQ(s->size + s->remote, t_size);
    s->low = low;
    return 1;
}

static inline void sides_free(sides *s) {
    OK(MPI_Comm_free(&s->inter));
    OK(MPI_Comm_free(&s->local));
}

/* The world rank of a rank of either group. */
static inline int sides_world(const sides *s, int remote, int rank) {
    MPI_Group group, world;
    int found;
    if (remote)
        OK(MPI_Comm_remote_group(s->inter, &group));
    else
        OK(MPI_Comm_group(s->inter, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(group, 1, &rank, world, &found));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    return found;
}

#endif
