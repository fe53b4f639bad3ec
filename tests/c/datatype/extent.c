/* Extents of types whose parts are not aligned: rounded to the strictest alignment for every
 * constructor, and never less than what the parts need. */
// np: 1
// not-on: mpich (rounds only some)
#include "tern_test.h"

static MPI_Aint extent(MPI_Datatype type) {
    MPI_Aint lb, extent;
    OK(MPI_Type_get_extent(type, &lb, &extent));
    CHECK_EQ(lb, 0);
    OK(MPI_Type_free(&type));
    return extent;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const int ones[2] = {1, 1};
    const MPI_Aint apart[2] = {0, 5}, joined[2] = {0, 4};
    MPI_Datatype type, part, both[2] = {MPI_INT, MPI_CHAR}, ints[2] = {MPI_INT, MPI_INT};

    OK(MPI_Type_create_hvector(2, 1, 5, MPI_INT, &type));
    CHECK_EQ(extent(type), 12);
    OK(MPI_Type_create_hvector(2, 1, 9, MPI_DOUBLE, &type));
    CHECK_EQ(extent(type), 24);
    OK(MPI_Type_create_hindexed(2, ones, apart, MPI_INT, &type));
    CHECK_EQ(extent(type), 12);
    OK(MPI_Type_create_hindexed_block(2, 1, apart, MPI_INT, &type));
    CHECK_EQ(extent(type), 12);
    OK(MPI_Type_create_struct(2, ones, apart, ints, &type));
    CHECK_EQ(extent(type), 12);

    /* A part of extent 8, of which 5 bytes are data, at 9: it ends at 17, not at 14. */
    OK(MPI_Type_create_struct(2, ones, joined, both, &part));
    OK(MPI_Type_create_hvector(2, 1, 9, part, &type));
    CHECK_EQ(extent(type), 20);
    OK(MPI_Type_contiguous(2, part, &type));
    CHECK_EQ(extent(type), 16);
    OK(MPI_Type_create_resized(part, 0, 5, &type));
    CHECK_EQ(extent(type), 5);
    CHECK_EQ(extent(part), 8);
    return t_end();
}
