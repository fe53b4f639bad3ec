/* What is no error code has a class and a text all the same, and asking for them ends nothing,
 * whatever the error handlers say. */
// np: 1,2
// not-on: ompi (refuses them)
#include "tern_test.h"

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
    const int codes[] = {-1, -77, 100, 999, 123456, 0x7fffffff};
    for (int i = 0; i < (int)(sizeof codes / sizeof *codes); i++) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int class = -99, length = -1;
        OK(MPI_Error_class(codes[i], &class));
        OK(MPI_Error_string(codes[i], text, &length));
        CHECK(class != -99 && class != MPI_SUCCESS);
        CHECK(length > 0 && (size_t)length == strlen(text));
    }
    return t_end();
}
