/* Messages of derived types of many shapes and sizes, up to some MB, against an oracle
 * that packs by its own loop; sent from one layout and received into another. */
// np: 1,2,3,4
#include "tern_test.h"

typedef struct {
    int blocks, length, stride; /* in ints */
} layout;

static const layout layouts[] = {{1, 1, 1},     {3, 1, 2},      {10, 3, 7},     {100, 1, 5},   {1000, 16, 17},
                                 {64, 4096, 5000}, {5000, 3, 4}, {20000, 1, 3}, {2, 300000, 300001}, {90000, 7, 9}};

static MPI_Datatype make(const layout *l, int how) {
    MPI_Datatype type;
    if (how == 0) {
        OK(MPI_Type_vector(l->blocks, l->length, l->stride, MPI_INT, &type));
    } else if (how == 1) {
        int *lengths = t_alloc(sizeof(int) * (size_t)l->blocks), *offsets = t_alloc(sizeof(int) * (size_t)l->blocks);
        for (int b = 0; b < l->blocks; b++) {
            lengths[b] = l->length;
            offsets[b] = b * l->stride;
        }
        OK(MPI_Type_indexed(l->blocks, lengths, offsets, MPI_INT, &type));
        free(lengths);
        free(offsets);
    } else {
        MPI_Datatype row, spaced;
        OK(MPI_Type_contiguous(l->length, MPI_INT, &row));
        OK(MPI_Type_create_resized(row, 0, (MPI_Aint)sizeof(int) * l->stride, &spaced));
        OK(MPI_Type_contiguous(l->blocks, spaced, &type));
        OK(MPI_Type_free(&row));
        OK(MPI_Type_free(&spaced));
    }
    OK(MPI_Type_commit(&type));
    return type;
}

static int value(int rank, int k) {
    return rank * 50000017 + k * 3 + 1;
}

static void ring(const layout *from, int how, const layout *to, int how_to) {
    int total = from->blocks * from->length, next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    if (to->blocks * to->length < total)
        return;
    size_t span = (size_t)from->blocks * (size_t)from->stride, span_to = (size_t)to->blocks * (size_t)to->stride;
    int *out = t_alloc(sizeof(int) * span), *in = t_alloc(sizeof(int) * span_to), elements;
    memset(out, 0xFF, sizeof(int) * span);
    memset(in, 0xFF, sizeof(int) * span_to);
    for (int k = 0; k < total; k++)
        out[(size_t)(k / from->length) * (size_t)from->stride + (size_t)(k % from->length)] = value(t_rank, k);
    MPI_Datatype type = make(from, how), type_to = make(to, how_to);
    MPI_Status status;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Irecv(in, 1, type_to, previous, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(out, 1, type, next, 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    status = statuses[0];
    OK(MPI_Get_elements(&status, type_to, &elements));
    CHECK_EQ(elements, total);
    for (size_t i = 0; i < span_to; i++) {
        int block = (int)(i / (size_t)to->stride), within = (int)(i % (size_t)to->stride);
        int k = block * to->length + within, covered = within < to->length && k < total;
        CHECK_AT(i, in[i], covered ? value(previous, k) : -1);
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&type_to));
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const int n = (int)(sizeof layouts / sizeof *layouts);
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            ring(&layouts[from], (from + to) % 3, &layouts[to], (from + 2 * to + 1) % 3);
    return t_end();
}
