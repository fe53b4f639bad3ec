/* The collectives with large counts: what is sent as two ints is received as one of a datatype of two, counts differ by rank and
 * displacements run backwards, so that no two arguments are alike. Each blocking, non-blocking and persistent. */
// np: 1,2,3
#include "coll_forms.h"

/* BOTH(form, Bcast, bcast, …): MPI_Bcast_c, MPI_Ibcast_c or MPI_Bcast_init_c, which is started twice. */
#define LARGE(form, Name, name, ...)                                                                \
    do {                                                                                            \
        MPI_Request request_ = MPI_REQUEST_NULL;                                                    \
        fill();                                                                                     \
        if ((form) == BLOCKING) {                                                                   \
            OK(MPI_##Name##_c(__VA_ARGS__));                                                        \
        } else if ((form) == NONBLOCKING) {                                                         \
            OK(MPI_I##name##_c(__VA_ARGS__, &request_));                                            \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                             \
        } else {                                                                                    \
            OK(MPI_##Name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &request_));                         \
            for (int times_ = 0; times_ < 2; times_++) {                                            \
                OK(MPI_Start(&request_));                                                           \
                OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                         \
            }                                                                                       \
            OK(MPI_Request_free(&request_));                                                        \
        }                                                                                           \
    } while (0)

enum { MOST = 8, ROOM = 2 * MOST * MOST + 4 };
static int a[ROOM], b[ROOM];
static MPI_Count some[MOST], twos[MOST], ones[MOST];
static MPI_Aint places[MOST], pairs_at[MOST], bytes_at[MOST], bytes_to[MOST];
static MPI_Datatype pair, ints_of[MOST], pairs_of[MOST];

static void fill(void) {
    for (int i = 0; i < ROOM; i++)
        a[i] = 1000 * t_rank + i, b[i] = -1;
}

/* `count` ints of `b` from `at` are those of `rank` from `first`, and the next is nobody's. */
static void from(int at, int rank, int first, int count) {
    for (int i = 0; i < count; i++)
        CHECK_AT(i, b[at + i], 1000 * rank + first + i);
    CHECK_AT(at + count, b[at + count] == -1 || b[at + count] % 1000 != first + count, 1);
}

static void rooted(enum form form, int root) {
    const MPI_Comm w = MPI_COMM_WORLD;
    LARGE(form, Bcast, bcast, a + 1, 2, MPI_INT, root, w);
    CHECK(a[0] == 1000 * t_rank && a[1] == 1000 * root + 1 && a[2] == 1000 * root + 2 && a[3] == 1000 * t_rank + 3);
    LARGE(form, Gather, gather, a, 2, MPI_INT, b, 1, pair, root, w);
    for (int r = 0; r < t_size && t_rank == root; r++)
        from(2 * r, r, 0, 2);
    LARGE(form, Gatherv, gatherv, a, some[t_rank], MPI_INT, b, some, places, MPI_INT, root, w);
    for (int r = 0; r < t_size && t_rank == root; r++)
        from((int)places[r], r, 0, r + 1);
    if (t_rank != root)
        CHECK_UNTOUCHED(b, sizeof b, 0xff);
    LARGE(form, Scatter, scatter, a, 1, pair, b, 2, MPI_INT, root, w);
    from(0, root, 2 * t_rank, 2);
    LARGE(form, Scatterv, scatterv, a, some, places, MPI_INT, b, some[t_rank], MPI_INT, root, w);
    from(0, root, (int)places[t_rank], t_rank + 1);
}

static void everywhere(enum form form) {
    const MPI_Comm w = MPI_COMM_WORLD;
    LARGE(form, Allgather, allgather, a, 2, MPI_INT, b, 1, pair, w);
    for (int r = 0; r < t_size; r++)
        from(2 * r, r, 0, 2);
    LARGE(form, Allgatherv, allgatherv, a, some[t_rank], MPI_INT, b, some, places, MPI_INT, w);
    for (int r = 0; r < t_size; r++)
        from((int)places[r], r, 0, r + 1);
    LARGE(form, Alltoall, alltoall, a, 2, MPI_INT, b, 1, pair, w);
    for (int r = 0; r < t_size; r++)
        from(2 * r, r, 2 * t_rank, 2);
    LARGE(form, Alltoallv, alltoallv, a, twos, pairs_at, MPI_INT, b, ones, places, pair, w);
    for (int r = 0; r < t_size; r++)
        from(2 * (int)places[r], r, 2 * (t_size - 1 - t_rank), 2);
    LARGE(form, Alltoallw, alltoallw, a, twos, bytes_to, ints_of, b, ones, bytes_at, pairs_of, w);
    CHECK_EQ(b[0], -1);
    for (int r = 0; r < t_size; r++)
        from(2 * r + 1, r, 2 * (t_size - 1 - t_rank), 2);
}

static void reductions(enum form form, int root) {
    const MPI_Comm w = MPI_COMM_WORLD;
    const int ranks = t_size * (t_size - 1) / 2, before = t_rank * (t_rank - 1) / 2;
    LARGE(form, Reduce, reduce, a, b, 3, MPI_INT, MPI_SUM, root, w);
    for (int i = 0; i < 4; i++)
        CHECK_AT(i, b[i], t_rank == root && i < 3 ? 1000 * ranks + i * t_size : -1);
    LARGE(form, Allreduce, allreduce, a, b, 3, MPI_INT, MPI_MAX, w);
    from(0, t_size - 1, 0, 3);
    LARGE(form, Reduce_scatter, reduce_scatter, a, b, some, MPI_INT, MPI_SUM, w);
    for (int i = 0; i <= t_rank + 1; i++)
        CHECK_AT(i, b[i], i <= t_rank ? 1000 * ranks + (t_rank * (t_rank + 1) / 2 + i) * t_size : -1);
    LARGE(form, Reduce_scatter_block, reduce_scatter_block, a, b, 2, MPI_INT, MPI_SUM, w);
    for (int i = 0; i < 3; i++)
        CHECK_AT(i, b[i], i < 2 ? 1000 * ranks + (2 * t_rank + i) * t_size : -1);
    LARGE(form, Scan, scan, a, b, 2, MPI_INT, MPI_SUM, w);
    CHECK(b[0] == 1000 * (before + t_rank) && b[1] == b[0] + t_rank + 1 && b[2] == -1);
    LARGE(form, Exscan, exscan, a, b, 2, MPI_INT, MPI_SUM, w);
    CHECK(t_rank == 0 || (b[0] == 1000 * before && b[1] == b[0] + t_rank && b[2] == -1));
}

/* To the next rank and to itself; from itself and from the one before. */
static void neighbours(enum form form) {
    const int right = (t_rank + 1) % t_size, left = (t_rank + t_size - 1) % t_size;
    const int sources[2] = {t_rank, left}, destinations[2] = {right, t_rank};
    const MPI_Aint back[2] = {4, 1}, to[2] = {3, 1}, bytes_back[2] = {16, 4}, to_bytes[2] = {12, 4};
    MPI_Comm comm;
    if (t_size == 1)
        return; /* of two edges from a rank to itself the order says which is which */
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &comm));
    LARGE(form, Neighbor_allgather, neighbor_allgather, a, 2, MPI_INT, b, 1, pair, comm);
    from(0, t_rank, 0, 2);
    from(2, left, 0, 2);
    LARGE(form, Neighbor_allgatherv, neighbor_allgatherv, a, 2, MPI_INT, b, twos, to, MPI_INT, comm);
    from(3, t_rank, 0, 2);
    from(1, left, 0, 2);
    LARGE(form, Neighbor_alltoall, neighbor_alltoall, a, 2, MPI_INT, b, 1, pair, comm);
    from(0, t_rank, 2, 2);
    from(2, left, 0, 2);
    LARGE(form, Neighbor_alltoallv, neighbor_alltoallv, a, twos, back, MPI_INT, b, twos, to, MPI_INT, comm);
    from(3, t_rank, 1, 2);
    from(1, left, 4, 2);
    LARGE(form, Neighbor_alltoallw, neighbor_alltoallw, a, twos, bytes_back, ints_of, b, ones, to_bytes, pairs_of, comm);
    from(3, t_rank, 1, 2);
    from(1, left, 4, 2);
    OK(MPI_Comm_free(&comm));
}

/* An operation with a large count, alone and with others. */
static int called;

static void longest(void *in, void *inout, MPI_Count *count, MPI_Datatype *datatype) {
    CHECK(*datatype == MPI_INT && *count >= 0);
    called++;
    for (MPI_Count i = 0; i < *count; i++)
        if (abs(((int *)in)[i]) > abs(((int *)inout)[i]))
            ((int *)inout)[i] = ((int *)in)[i];
}

static void operations(void) {
    MPI_Op op;
    int commutes = -1;
    OK(MPI_Op_create_c(longest, 1, &op));
    OK(MPI_Op_commutative(op, &commutes));
    CHECK(commutes);
    a[0] = -5, a[1] = 3, b[0] = 4, b[1] = -4, b[2] = -1;
    OK(MPI_Reduce_local_c(a, b, 2, MPI_INT, op));
    CHECK(called == 1 && b[0] == -5 && b[1] == -4 && b[2] == -1);
    a[0] = t_rank % 2 ? -t_rank : t_rank;
    OK(MPI_Allreduce_c(a, b, 1, MPI_INT, op, MPI_COMM_WORLD));
    CHECK_EQ(abs(b[0]), t_size - 1);
    OK(MPI_Allreduce(a, b, 1, MPI_INT, op, MPI_COMM_WORLD)); /* the width is that of the operation */
    CHECK_EQ(abs(b[0]), t_size - 1);
    OK(MPI_Op_free(&op));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    OK(MPI_Type_contiguous_c(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    CHECK(t_size <= MOST);
    for (int r = 0; r < MOST; r++) {
        const int back = t_size - 1 - r;
        some[r] = r + 1, twos[r] = 2, ones[r] = 1;
        places[r] = (t_size + 1) * back, pairs_at[r] = 2 * back;
        bytes_to[r] = 8 * back, bytes_at[r] = 4 * (2 * r + 1);
        ints_of[r] = MPI_INT, pairs_of[r] = pair;
    }
    for (int f = 0; f < FORMS; f++) {
        rooted((enum form)f, t_size - 1);
        everywhere((enum form)f);
        reductions((enum form)f, t_size - 1);
        neighbours((enum form)f);
    }
    operations();
    OK(MPI_Type_free(&pair));
    return t_end();
}
