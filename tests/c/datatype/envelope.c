/* Envelopes and contents give back what the type was made of, and from them it can be
 * made again; derived types in the contents are new handles that must be freed. */
#include "tern_test.h"

static void expect(MPI_Datatype type, int integers, int addresses, int types, int combiner) {
    int ni, na, nt, c;
    OK(MPI_Type_get_envelope(type, &ni, &na, &nt, &c));
    CHECK_EQ(c, combiner);
    CHECK_EQ(ni, integers);
    CHECK_EQ(na, addresses);
    CHECK_EQ(nt, types);
}

static int ints[64];
static MPI_Aint addresses[64];
static MPI_Datatype types[64];

static void contents(MPI_Datatype type, int ni, int na, int nt, int combiner) {
    expect(type, ni, na, nt, combiner);
    OK(MPI_Type_get_contents(type, ni, na, nt, ints, addresses, types));
    OK(MPI_Type_free(&type));
}

#define INTS(...)                                                              \
    do {                                                                       \
        const int list_[] = {__VA_ARGS__};                                     \
        for (size_t i_ = 0; i_ < sizeof list_ / sizeof *list_; i_++)           \
            CHECK_AT(i_, ints[i_], list_[i_]);                                 \
    } while (0)

#define ADDRESSES(...)                                                         \
    do {                                                                       \
        const MPI_Aint list_[] = {__VA_ARGS__};                                \
        for (size_t i_ = 0; i_ < sizeof list_ / sizeof *list_; i_++)           \
            CHECK_AT(i_, addresses[i_], list_[i_]);                            \
    } while (0)

static void simple(void) {
    MPI_Datatype type;
    expect(MPI_INT, 0, 0, 0, MPI_COMBINER_NAMED);
    OK(MPI_Type_contiguous(5, MPI_INT, &type));
    contents(type, 1, 0, 1, MPI_COMBINER_CONTIGUOUS);
    INTS(5);
    CHECK(types[0] == MPI_INT);
    OK(MPI_Type_vector(2, 3, 4, MPI_DOUBLE, &type));
    contents(type, 3, 0, 1, MPI_COMBINER_VECTOR);
    INTS(2, 3, 4);
    CHECK(types[0] == MPI_DOUBLE);
    OK(MPI_Type_create_hvector(2, 3, 44, MPI_DOUBLE, &type));
    contents(type, 2, 1, 1, MPI_COMBINER_HVECTOR);
    INTS(2, 3);
    ADDRESSES(44);
    OK(MPI_Type_indexed(2, (int[]){1, 2}, (int[]){7, 8}, MPI_CHAR, &type));
    contents(type, 5, 0, 1, MPI_COMBINER_INDEXED);
    INTS(2, 1, 2, 7, 8);
    OK(MPI_Type_create_hindexed(2, (int[]){1, 2}, (MPI_Aint[]){7, 8}, MPI_CHAR, &type));
    contents(type, 3, 2, 1, MPI_COMBINER_HINDEXED);
    INTS(2, 1, 2);
    ADDRESSES(7, 8);
    OK(MPI_Type_create_indexed_block(2, 3, (int[]){7, 8}, MPI_CHAR, &type));
    contents(type, 4, 0, 1, MPI_COMBINER_INDEXED_BLOCK);
    INTS(2, 3, 7, 8);
    OK(MPI_Type_create_hindexed_block(2, 3, (MPI_Aint[]){7, 8}, MPI_CHAR, &type));
    contents(type, 2, 2, 1, MPI_COMBINER_HINDEXED_BLOCK);
    INTS(2, 3);
    ADDRESSES(7, 8);
    OK(MPI_Type_create_struct(2, (int[]){1, 2}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE}, &type));
    contents(type, 3, 2, 2, MPI_COMBINER_STRUCT);
    INTS(2, 1, 2);
    ADDRESSES(0, 8);
    CHECK(types[0] == MPI_CHAR && types[1] == MPI_DOUBLE);
    OK(MPI_Type_create_resized(MPI_INT, -8, 32, &type));
    contents(type, 0, 2, 1, MPI_COMBINER_RESIZED);
    ADDRESSES(-8, 32);
    OK(MPI_Type_dup(MPI_INT, &type));
    contents(type, 0, 0, 1, MPI_COMBINER_DUP);
    CHECK(types[0] == MPI_INT);
}

static void arrays(void) {
    MPI_Datatype type;
    OK(MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 2}, MPI_ORDER_C, MPI_INT, &type));
    contents(type, 8, 0, 1, MPI_COMBINER_SUBARRAY);
    INTS(2, 4, 5, 2, 3, 1, 2, MPI_ORDER_C);
    OK(MPI_Type_create_darray(6, 1, 2, (int[]){9, 8}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                              (int[]){MPI_DISTRIBUTE_DFLT_DARG, 2}, (int[]){3, 2}, MPI_ORDER_FORTRAN, MPI_INT, &type));
    contents(type, 12, 0, 1, MPI_COMBINER_DARRAY);
    INTS(6, 1, 2, 9, 8, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 2, 3, 2,
         MPI_ORDER_FORTRAN);
}

/* A nested type is taken apart and put together again, after its parts were freed. */
static void nested(void) {
    MPI_Datatype inner, outer, again;
    OK(MPI_Type_vector(2, 1, 3, MPI_INT, &inner));
    OK(MPI_Type_contiguous(4, inner, &outer));
    OK(MPI_Type_free(&inner));
    expect(outer, 1, 0, 1, MPI_COMBINER_CONTIGUOUS);
    OK(MPI_Type_get_contents(outer, 1, 0, 1, ints, addresses, types));
    INTS(4);
    inner = types[0];
    expect(inner, 3, 0, 1, MPI_COMBINER_VECTOR);
    OK(MPI_Type_contiguous(4, inner, &again));
    OK(MPI_Type_free(&inner));
    MPI_Aint lower, extent, lower_again, extent_again;
    OK(MPI_Type_get_extent(outer, &lower, &extent));
    OK(MPI_Type_get_extent(again, &lower_again, &extent_again));
    CHECK(lower == lower_again && extent == extent_again);
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_free(&again));
}

/* Types made by the large forms report their counts in the large form. */
static void large(void) {
    MPI_Datatype type, part;
    MPI_Count ni, na, nl, nt, counts[4];
    int combiner;
    OK(MPI_Type_contiguous_c((MPI_Count)5000000000, MPI_INT, &type));
    OK(MPI_Type_get_envelope_c(type, &ni, &na, &nl, &nt, &combiner));
    CHECK(combiner == MPI_COMBINER_CONTIGUOUS && ni == 0 && na == 0 && nl == 1 && nt == 1);
    OK(MPI_Type_get_contents_c(type, 0, 0, 1, 1, ints, addresses, counts, &part));
    CHECK_EQ(counts[0], 5000000000);
    CHECK(part == MPI_INT);
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    simple();
    arrays();
    nested();
    large();
    return t_end();
}
