/* Of two names for one datatype the name is the one that the standard does not call the synonym. */
// np: 1
#include "tern_test.h"

static void named(MPI_Datatype type, const char *want) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_STR(name, want);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    named(MPI_C_FLOAT_COMPLEX, "MPI_C_COMPLEX");
    named(MPI_C_COMPLEX, "MPI_C_COMPLEX");
    named(MPI_LONG_LONG, "MPI_LONG_LONG_INT");
    named(MPI_LONG_LONG_INT, "MPI_LONG_LONG_INT");
    named(MPI_COMPLEX, "MPI_COMPLEX");
    named(MPI_COMPLEX8, "MPI_COMPLEX8");
    return t_end();
}
