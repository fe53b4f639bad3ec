/* Error classes, codes and texts that are taken back by the names that MPICH had for this before MPI 4.1 had any. */
#include <mpi.h>
#include <string.h>

#define TRY(condition) do { if (!(condition)) MPI_Abort(MPI_COMM_WORLD, __LINE__); } while (0)

int main(int argc, char **argv)
{
    int class, code, size;
    char text[MPI_MAX_ERROR_STRING];

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    TRY(MPI_Add_error_class(&class) == MPI_SUCCESS);
    TRY(MPI_Add_error_code(class, &code) == MPI_SUCCESS);
    TRY(MPI_Add_error_string(code, "it leaks") == MPI_SUCCESS);
    TRY(MPI_Error_string(code, text, &size) == MPI_SUCCESS && strcmp(text, "it leaks") == 0);
    /* What others still need stays. */
    TRY(MPIX_Delete_error_class(class) != MPI_SUCCESS);
    TRY(MPIX_Delete_error_string(code) == MPI_SUCCESS);
    TRY(MPI_Error_string(code, text, &size) != MPI_SUCCESS || strcmp(text, "it leaks") != 0);
    TRY(MPIX_Delete_error_code(code) == MPI_SUCCESS);
    TRY(MPIX_Delete_error_class(class) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
