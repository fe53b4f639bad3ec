/* Errors that concern no object: a handler of MPI_COMM_SELF that the program has set counts, though it
 * is the initial one and that of MPI_COMM_WORLD returns. */
// np: 1,2
// expect-exit: nonzero
// expect-stderr[tern]: MPI_Type_contiguous\(count=-1.*must not be negative
#include "tern_test.h"

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    MPI_Datatype type;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    MPI_Type_contiguous(-1, MPI_INT, &type);
    return t_end();
}
