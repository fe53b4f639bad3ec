/* Operations of later work fail clearly, with MPI_ERR_UNSUPPORTED_OPERATION. */
// np: 1,2
// not-on: mpich (has them)
// not-on: ompi (has them)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Win win;
    char text[MPI_MAX_ERROR_STRING];
    int base, length, code;
    FAILS(MPI_Win_create(&base, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_UNSUPPORTED_OPERATION);
    code = MPI_Win_create(&base, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    FAILS(code, MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_Error_string(code, text, &length));
    CHECK_STR(text, "MPI_ERR_UNSUPPORTED_OPERATION: MPI_Win_create is not there yet");
    code = MPI_Win_create_c(&base, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    OK(MPI_Error_string(code, text, &length));
    CHECK_STR(text, "MPI_ERR_UNSUPPORTED_OPERATION: MPI_Win_create_c is not there yet");
    CHECK_EQ(length, strlen(text));
    CHECK(TERN_MISSING_ONE_SIDED);
    return t_end();
}
