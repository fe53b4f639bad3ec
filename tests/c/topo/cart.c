/* Cartesian topologies: places, shifts and parts of grids against a walk over all cells. */
#include "tern_test.h"

enum { MAX = 4 };

/* The rank at these coordinates, or MPI_PROC_NULL beyond the border of what is no ring. */
static int at(int ndims, const int *dims, const int *periods, const int *coords) {
    int rank = 0;
    for (int d = 0; d < ndims; d++) {
        int c = coords[d];
        while (periods[d] && c < 0)
            c += dims[d];
        while (periods[d] && c >= dims[d])
            c -= dims[d];
        if (c < 0 || c >= dims[d])
            return MPI_PROC_NULL;
        rank = rank * dims[d] + c;
    }
    return rank;
}

static void queries(MPI_Comm cart, int ndims, const int *dims, const int *periods) {
    int kind, n, d[MAX] = {-1, -1, -1, -1}, p[MAX], mine[MAX], rank, size;
    OK(MPI_Topo_test(cart, &kind));
    CHECK_EQ(kind, MPI_CART);
    OK(MPI_Cartdim_get(cart, &n));
    CHECK_EQ(n, ndims);
    OK(MPI_Comm_rank(cart, &rank));
    OK(MPI_Comm_size(cart, &size));
    OK(MPI_Cart_get(cart, MAX, d, p, mine));
    for (int i = 0; i < ndims; i++) {
        CHECK_AT(i, d[i], dims[i]);
        CHECK_AT(i, !p[i], !periods[i]);
    }
    CHECK_EQ(at(ndims, dims, periods, mine), rank);
    for (int r = 0; r < size; r++) {
        int coords[MAX], back;
        OK(MPI_Cart_coords(cart, r, MAX, coords));
        CHECK_AT(r, at(ndims, dims, periods, coords), r);
        OK(MPI_Cart_rank(cart, coords, &back));
        CHECK_EQ(back, r);
        for (int i = 0; i < ndims; i++)
            if (periods[i]) {
                int round[MAX];
                memcpy(round, coords, sizeof round);
                round[i] += 3 * dims[i];
                OK(MPI_Cart_rank(cart, round, &back));
                CHECK_EQ(back, r);
                round[i] -= 5 * dims[i];
                OK(MPI_Cart_rank(cart, round, &back));
                CHECK_EQ(back, r);
            }
    }
    for (int i = 0; i < ndims; i++)
        for (int disp = -4; disp <= 4; disp++) {
            int from, to, coords[MAX];
            OK(MPI_Cart_shift(cart, i, disp, &from, &to));
            memcpy(coords, mine, sizeof coords);
            coords[i] = mine[i] + disp;
            CHECK_EQ(to, at(ndims, dims, periods, coords));
            coords[i] = mine[i] - disp;
            CHECK_EQ(from, at(ndims, dims, periods, coords));
        }
}

/* Whether messages on the communicator reach who they are for. */
static void speaks(MPI_Comm comm) {
    int rank, size, sum = 0;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, size * (size - 1) / 2);
}

static void parts(MPI_Comm cart, int ndims, const int *dims, const int *periods) {
    int rank, mine[MAX];
    OK(MPI_Comm_rank(cart, &rank));
    OK(MPI_Cart_coords(cart, rank, MAX, mine));
    for (int mask = 0; mask < 1 << ndims; mask++) {
        int remain[MAX], n = 0, d[MAX], p[MAX], place[MAX];
        for (int i = 0; i < ndims; i++) {
            remain[i] = mask >> i & 1;
            if (remain[i]) {
                d[n] = dims[i];
                p[n] = periods[i];
                place[n++] = mine[i];
            }
        }
        MPI_Comm sub;
        OK(MPI_Cart_sub(cart, remain, &sub));
        CHECK(sub != MPI_COMM_NULL);
        if (n > 0) {
            int got[MAX], r;
            queries(sub, n, d, p);
            OK(MPI_Comm_rank(sub, &r));
            OK(MPI_Cart_coords(sub, r, MAX, got));
            for (int i = 0; i < n; i++)
                CHECK_AT(i, got[i], place[i]);
        } else {
            int size, left = 9;
            OK(MPI_Comm_size(sub, &size));
            CHECK_EQ(size, 1);
            OK(MPI_Cartdim_get(sub, &left));
            CHECK_EQ(left, 0);
        }
        speaks(sub);
        OK(MPI_Comm_free(&sub));
    }
}

static void grid(int ndims, const int *dims, const int *periods, int reorder) {
    MPI_Comm cart, copy;
    int cells = 1, mapped = -5;
    for (int i = 0; i < ndims; i++)
        cells *= dims[i];
    OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, reorder, &cart));
    OK(MPI_Cart_map(MPI_COMM_WORLD, ndims, dims, periods, &mapped));
    if (cart == MPI_COMM_NULL) {
        CHECK(reorder || t_rank >= cells);
        return;
    }
    int size, rank;
    OK(MPI_Comm_size(cart, &size));
    OK(MPI_Comm_rank(cart, &rank));
    CHECK_EQ(size, cells);
    if (!reorder)
        CHECK_EQ(rank, t_rank);
    CHECK(mapped == MPI_UNDEFINED || (mapped >= 0 && mapped < cells));
    queries(cart, ndims, dims, periods);
    speaks(cart);
    parts(cart, ndims, dims, periods);
    OK(MPI_Comm_dup(cart, &copy));
    queries(copy, ndims, dims, periods);
    OK(MPI_Comm_free(&copy));
    MPI_Request request;
    OK(MPI_Comm_idup(cart, &copy, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    queries(copy, ndims, dims, periods);
    OK(MPI_Comm_free(&copy));
    /* A part by colour has no topology. */
    int kind;
    OK(MPI_Comm_split(cart, 0, 0, &copy));
    OK(MPI_Topo_test(copy, &kind));
    CHECK_EQ(kind, MPI_UNDEFINED);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&cart));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int kind;
    OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
    CHECK_EQ(kind, MPI_UNDEFINED);
    for (int n = 1; n <= t_size; n++)
        for (int ndims = 1; ndims <= MAX; ndims++)
            for (int rings = 0; rings < 1 << ndims; rings += 1 + 2 * (ndims == MAX)) {
                int dims[MAX] = {0}, periods[MAX];
                OK(MPI_Dims_create(n, ndims, dims));
                for (int i = 0; i < ndims; i++)
                    periods[i] = rings >> i & 1;
                grid(ndims, dims, periods, rings % 3 == 1);
            }
    /* No dimension: one cell. */
    MPI_Comm point;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &point));
    CHECK((point != MPI_COMM_NULL) == (t_rank == 0));
    if (point != MPI_COMM_NULL) {
        int ndims = 5, rank = 5;
        OK(MPI_Cartdim_get(point, &ndims));
        CHECK_EQ(ndims, 0);
        OK(MPI_Cart_rank(point, NULL, &rank));
        CHECK_EQ(rank, 0);
        OK(MPI_Comm_free(&point));
    }
    return t_end();
}
