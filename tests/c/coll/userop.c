/* User operations that are not commutative: the order of ranks shows in the result. An
 * element is an affine map x → a·x+b modulo 2^32; composing them does not commute. Also
 * over a derived type with a hole, and over a large count by MPI_Op_create_c. */
#include "coll_forms.h"

#include <stddef.h>

typedef struct {
    uint32_t a, b;
} affine;

typedef struct {
    uint32_t a;
    char hole[4];
    uint32_t b;
} holed;

static int calls;

static affine compose(affine first, affine second) {
    affine both = {first.a * second.a, second.a * first.b + second.b};
    return both;
}

static void apply(void *in, void *inout, int *count, MPI_Datatype *type) {
    calls++;
    affine *left = in, *right = inout;
    MPI_Aint lower, extent;
    OK(MPI_Type_get_extent(*type, &lower, &extent));
    CHECK_EQ(extent, sizeof(affine));
    for (int i = 0; i < *count; i++)
        right[i] = compose(left[i], right[i]);
}

static void apply_holed(void *in, void *inout, MPI_Count *count, MPI_Datatype *type) {
    (void)type;
    holed *left = in, *right = inout;
    for (MPI_Count i = 0; i < *count; i++) {
        affine both = compose((affine){left[i].a, left[i].b}, (affine){right[i].a, right[i].b});
        right[i].a = both.a;
        right[i].b = both.b;
    }
}

static affine own(int rank, int i) {
    affine map = {(uint32_t)(2 * rank + 3 + 2 * (i % 5)), (uint32_t)(rank * 17 + i)};
    return map;
}

static affine upto(int last, int i) {
    affine map = own(0, i);
    for (int r = 1; r <= last; r++)
        map = compose(map, own(r, i));
    return map;
}

static MPI_Datatype type, type_holed;
static MPI_Op op, op_holed;

static void check(const affine *data, int count, int last) {
    for (int i = 0; i < count; i++) {
        affine want = upto(last, i);
        CHECK_AT(i, data[i].a, want.a);
        CHECK_AT(i, data[i].b, want.b);
    }
}

static void body(const place *p, int count, enum form form) {
    if (count > 10000)
        count = 20000;
    affine *out = t_alloc(sizeof(affine) * (size_t)count), *in = t_alloc(sizeof(affine) * (size_t)count);
    holed *far = t_alloc(sizeof(holed) * (size_t)count);
    for (int i = 0; i < count; i++)
        out[i] = own(p->rank, i);
    COLL(form, Allreduce, allreduce, out, in, count, type, op, p->comm);
    check(in, count, p->size - 1);
    COLL(form, Reduce, reduce, out, in, count, type, op, p->size - 1, p->comm);
    if (p->rank == p->size - 1)
        check(in, count, p->size - 1);
    COLL(form, Scan, scan, out, in, count, type, op, p->comm);
    check(in, count, p->rank);
    COLL(form, Exscan, exscan, out, in, count, type, op, p->comm);
    if (p->rank)
        check(in, count, p->rank - 1);
    memset(far, 0x77, sizeof(holed) * (size_t)count);
    for (int i = 0; i < count; i++) {
        far[i].a = out[i].a;
        far[i].b = out[i].b;
    }
    COLL(form, Allreduce, allreduce, MPI_IN_PLACE, far, count, type_holed, op_holed, p->comm);
    for (int i = 0; i < count; i++) {
        affine want = upto(p->size - 1, i);
        CHECK_AT(i, far[i].a, want.a);
        CHECK_AT(i, far[i].b, want.b);
        CHECK_UNTOUCHED(far[i].hole, 4, 0x77);
    }
    free(out);
    free(in);
    free(far);
}

static void scattered(void) {
    enum { COUNT = 50 };
    affine *out = t_alloc(sizeof(affine) * COUNT * (size_t)t_size), in[COUNT];
    for (int i = 0; i < COUNT * t_size; i++)
        out[i] = own(t_rank, i);
    OK(MPI_Reduce_scatter_block(out, in, COUNT, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < COUNT; i++) {
        affine want = upto(t_size - 1, t_rank * COUNT + i);
        CHECK_AT(i, in[i].a, want.a);
        CHECK_AT(i, in[i].b, want.b);
    }
    free(out);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int lengths[2] = {1, 1}, commutes = -1;
    MPI_Aint offsets[2] = {offsetof(holed, a), offsetof(holed, b)};
    MPI_Datatype types[2] = {MPI_UINT32_T, MPI_UINT32_T};
    OK(MPI_Type_contiguous(2, MPI_UINT32_T, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_create_struct(2, lengths, offsets, types, &type_holed));
    OK(MPI_Type_commit(&type_holed));
    OK(MPI_Op_create(apply, 0, &op));
    OK(MPI_Op_create_c(apply_holed, 0, &op_holed));
    OK(MPI_Op_commutative(op, &commutes));
    CHECK_EQ(commutes, 0);
    coll_all(body);
    scattered();
    CHECK(t_size == 1 || calls > 0);
    /* Reduce_local: inout = in op inout. */
    affine left = {3, 5}, right = {7, 11}, want = compose(left, right);
    OK(MPI_Reduce_local(&left, &right, 1, type, op));
    CHECK_EQ(right.a, want.a);
    CHECK_EQ(right.b, want.b);
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    OK(MPI_Op_free(&op_holed));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&type_holed));
    return t_end();
}
