/* Neighbourhood collectives on grids (also such with rings of one and two), graphs with several edges between the
 * same ranks, and ranks without neighbours. Which block comes from which is worked out from MPI 5.0 section 8.6.2:
 * on a grid what leaves in one direction arrives from the other; on a graph the k-th edge to a rank is the k-th from it. */
// not-on: mpich (before 5.1 it pairs several edges between two ranks in another order)
// not-on: ompi (its non-blocking forms pair the two directions of rings of one and two wrongly)
#include "../coll_forms.h"

enum { EDGES = 16, UNTOUCHED = -77 };

typedef struct {
    MPI_Comm comm;
    int in, out;
    int sources[EDGES], destinations[EDGES];
    /* For block i received: which block of the sender's send buffer it is. */
    int block[EDGES];
} hood;

static int value(int from, int block, int i) {
    return from * 10000 + block * 1000 + i % 1000;
}

static void received(const hood *h, const int *got, int i, int at, int count, int gathered) {
    for (int k = 0; k < count; k++) {
        int want = h->sources[i] == MPI_PROC_NULL ? UNTOUCHED : value(h->sources[i], gathered ? 0 : h->block[i], k);
        CHECK_AT(i, got[at + k], want);
    }
}

static int *outgoing(int rank, int blocks, int count, int stride) {
    int *data = ints((long long)blocks * stride + 1);
    for (int b = 0; b < blocks; b++)
        for (int k = 0; k < count; k++)
            data[b * stride + k] = value(rank, b, k);
    return data;
}

static int *untouched(int n) {
    int *data = ints(n + 1);
    for (int i = 0; i <= n; i++)
        data[i] = UNTOUCHED;
    return data;
}

static void even(const hood *h, int rank, int count, enum form form) {
    int *out = outgoing(rank, h->out ? h->out : 1, count, count), *got = untouched(h->in * count);
    COLL(form, Neighbor_alltoall, neighbor_alltoall, out, count, MPI_INT, got, count, MPI_INT, h->comm);
    for (int i = 0; i < h->in; i++)
        received(h, got, i, i * count, count, 0);
    CHECK_EQ(got[h->in * count], UNTOUCHED);
    free(got);
    got = untouched(h->in * count);
    COLL(form, Neighbor_allgather, neighbor_allgather, out, count, MPI_INT, got, count, MPI_INT, h->comm);
    for (int i = 0; i < h->in; i++)
        received(h, got, i, i * count, count, 1);
    free(out);
    free(got);
}

/* Blocks with gaps between them, the receive side backwards. */
static void varied(const hood *h, int rank, int count, enum form form) {
    int stride = count + 3, sc[EDGES], sd[EDGES], rc[EDGES], rd[EDGES];
    MPI_Aint sb[EDGES], rb[EDGES];
    MPI_Datatype st[EDGES], rt[EDGES];
    for (int i = 0; i < EDGES; i++) {
        sc[i] = rc[i] = count;
        sd[i] = i * stride;
        rd[i] = (h->in - 1 - i) * stride;
        sb[i] = (MPI_Aint)sizeof(int) * sd[i];
        rb[i] = (MPI_Aint)sizeof(int) * rd[i];
        st[i] = MPI_INT;
        rt[i] = MPI_INT32_T;
    }
    int *out = outgoing(rank, h->out ? h->out : 1, count, stride), *got = untouched(h->in * stride);
    COLL(form, Neighbor_alltoallv, neighbor_alltoallv, out, sc, sd, MPI_INT, got, rc, rd, MPI_INT, h->comm);
    for (int i = 0; i < h->in; i++) {
        received(h, got, i, rd[i], count, 0);
        for (int gap = count; gap < stride; gap++)
            CHECK_EQ(got[rd[i] + gap], UNTOUCHED);
    }
    free(got);
    got = untouched(h->in * stride);
    COLL(form, Neighbor_alltoallw, neighbor_alltoallw, out, sc, sb, st, got, rc, rb, rt, h->comm);
    for (int i = 0; i < h->in; i++)
        received(h, got, i, rd[i], count, 0);
    free(got);
    got = untouched(h->in * stride);
    COLL(form, Neighbor_allgatherv, neighbor_allgatherv, out, count, MPI_INT, got, rc, rd, MPI_INT, h->comm);
    for (int i = 0; i < h->in; i++)
        received(h, got, i, rd[i], count, 1);
    free(out);
    free(got);
}

/* The wide forms, and a datatype with gaps. */
static void wide(const hood *h, int rank, int count) {
    MPI_Datatype spread;
    OK(MPI_Type_vector(count, 1, 2, MPI_INT, &spread));
    MPI_Datatype whole;
    OK(MPI_Type_create_resized(spread, 0, (MPI_Aint)(2 * sizeof(int)) * count, &whole));
    OK(MPI_Type_commit(&whole));
    int *out = outgoing(rank, h->out ? h->out : 1, count, count), *got = untouched(2 * h->in * count);
    OK(MPI_Neighbor_alltoall_c(out, count, MPI_INT, got, 1, whole, h->comm));
    for (int i = 0; i < h->in; i++)
        for (int k = 0; k < count; k++) {
            int want = h->sources[i] == MPI_PROC_NULL ? UNTOUCHED : value(h->sources[i], h->block[i], k);
            CHECK_AT(i, got[2 * (i * count + k)], want);
            CHECK_EQ(got[2 * (i * count + k) + 1], UNTOUCHED);
        }
    MPI_Count sc[EDGES], rc[EDGES];
    MPI_Aint sd[EDGES], rd[EDGES];
    for (int i = 0; i < EDGES; i++) {
        sc[i] = rc[i] = count;
        sd[i] = rd[i] = (MPI_Aint)i * count;
    }
    free(got);
    got = untouched(h->in * count);
    OK(MPI_Neighbor_alltoallv_c(out, sc, sd, MPI_INT, got, rc, rd, MPI_INT, h->comm));
    for (int i = 0; i < h->in; i++)
        received(h, got, i, i * count, count, 0);
    OK(MPI_Type_free(&spread));
    OK(MPI_Type_free(&whole));
    free(out);
    free(got);
}

static void all(const hood *h) {
    int rank;
    OK(MPI_Comm_rank(h->comm, &rank));
    static const int counts[] = {0, 1, 5, 3000, 50000};
    for (int f = 0; f < FORMS; f++)
        for (int c = 0; c < 5; c++) {
            even(h, rank, counts[c], (enum form)f);
            varied(h, rank, counts[c], (enum form)f);
        }
    wide(h, rank, 1);
    wide(h, rank, 4000);
    /* Several under way at once, started again and again. */
    enum { MANY = 3 };
    MPI_Request requests[MANY];
    int *out[MANY], *got[MANY];
    for (int m = 0; m < MANY; m++) {
        out[m] = outgoing(rank, h->out ? h->out : 1, 100, 100);
        got[m] = untouched(h->in * 100);
        OK(MPI_Neighbor_alltoall_init(out[m], 100, MPI_INT, got[m], 100, MPI_INT, h->comm, MPI_INFO_NULL,
                                      &requests[m]));
    }
    for (int round = 0; round < 4; round++) {
        /* Starts need not come in the same order everywhere. */
        for (int m = 0; m < MANY; m++)
            OK(MPI_Start(&requests[(m + rank + round) % MANY]));
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
        for (int m = 0; m < MANY; m++)
            for (int i = 0; i < h->in; i++) {
                received(h, got[m], i, i * 100, 100, 0);
                memset(got[m] + i * 100, 0, 100 * sizeof(int));
                if (h->sources[i] == MPI_PROC_NULL)
                    for (int k = 0; k < 100; k++)
                        got[m][i * 100 + k] = UNTOUCHED;
            }
    }
    for (int m = 0; m < MANY; m++) {
        OK(MPI_Request_free(&requests[m]));
        free(out[m]);
        free(got[m]);
    }
}

static void grid(int ndims, int rings) {
    int dims[4] = {0}, periods[4];
    OK(MPI_Dims_create(t_size, ndims, dims));
    for (int d = 0; d < ndims; d++)
        periods[d] = rings >> d & 1;
    hood h = {.in = 2 * ndims, .out = 2 * ndims};
    OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &h.comm));
    for (int d = 0; d < ndims; d++) {
        OK(MPI_Cart_shift(h.comm, d, 1, &h.sources[2 * d], &h.sources[2 * d + 1]));
        h.block[2 * d] = 2 * d + 1;
        h.block[2 * d + 1] = 2 * d;
    }
    all(&h);
    OK(MPI_Comm_free(&h.comm));
}

/* Edges from rank r: to the next (k = 0, 2, 3), to itself (1) and, from even ranks, to rank 0 (4). */
static int edge(int r, int k) {
    return k == 1 ? r : k < 4 ? (r + 1) % t_size : r % 2 == 0 ? 0 : -1;
}

static void distributed(void) {
    hood h = {.in = 0, .out = 0};
    for (int k = 0; k < 5; k++)
        if (edge(t_rank, k) >= 0)
            h.destinations[h.out++] = edge(t_rank, k);
    /* The sources from the last rank to the first: only the order among edges of one pair counts. */
    for (int r = t_size - 1; r >= 0; r--)
        for (int k = 0; k < 5; k++)
            if (edge(r, k) == t_rank) {
                h.sources[h.in] = r;
                h.block[h.in++] = k;
            }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, h.in, h.sources, MPI_UNWEIGHTED, h.out, h.destinations,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &h.comm));
    all(&h);
    OK(MPI_Comm_free(&h.comm));
}

/* All are joined with all, themselves too, in rising order. */
static void complete(void) {
    if (t_size > EDGES)
        return;
    int index[EDGES], edges[EDGES * EDGES];
    hood h = {.in = t_size, .out = t_size};
    for (int r = 0; r < t_size; r++) {
        index[r] = (r + 1) * t_size;
        h.sources[r] = r;
        h.block[r] = t_rank;
        for (int k = 0; k < t_size; k++)
            edges[r * t_size + k] = k;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, t_size, index, edges, 0, &h.comm));
    all(&h);
    OK(MPI_Comm_free(&h.comm));
}

/* All send to the last rank, which sends to nobody. */
static void star(void) {
    hood h = {.in = 0, .out = t_rank < t_size - 1};
    h.destinations[0] = t_size - 1;
    if (t_rank == t_size - 1)
        for (int r = 0; r < t_size - 1; r++)
            h.sources[h.in++] = r;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, h.in, h.sources, MPI_UNWEIGHTED, h.out, h.destinations,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &h.comm));
    all(&h);
    OK(MPI_Comm_free(&h.comm));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    for (int ndims = 1; ndims <= 3; ndims++)
        for (int rings = 0; rings < 1 << ndims; rings++)
            grid(ndims, rings);
    distributed();
    complete();
    star();
    return t_end();
}
