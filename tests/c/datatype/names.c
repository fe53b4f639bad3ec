/* Names of types: settable, kept by dup no longer, limited in length. Match_size. */
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Datatype type, copy;
    char name[MPI_MAX_OBJECT_NAME], longest[MPI_MAX_OBJECT_NAME];
    int length = -1;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_EQ(length, 0);
    CHECK_STR(name, "");
    OK(MPI_Type_set_name(type, "pair of ints"));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_STR(name, "pair of ints");
    CHECK_EQ(length, 12);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Type_set_name(type, longest));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_STR(name, longest);
    OK(MPI_Type_dup(type, &copy));
    OK(MPI_Type_set_name(copy, "copy"));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_STR(name, longest);
    OK(MPI_Type_free(&copy));
    OK(MPI_Type_free(&type));
    int size;
    const int bytes[3][3] = {{4, 8, 0}, {1, 2, 8}, {8, 16, 0}};
    const int classes[3] = {MPI_TYPECLASS_REAL, MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_COMPLEX};
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 3 && bytes[c][i]; i++) {
            OK(MPI_Type_match_size(classes[c], bytes[c][i], &type));
            OK(MPI_Type_size(type, &size));
            CHECK_EQ(size, bytes[c][i]);
        }
    FAILS(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type), MPI_ERR_ARG);
    return t_end();
}
