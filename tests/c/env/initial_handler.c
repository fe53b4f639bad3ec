/* The error handler that the start of a program names (MPI 5.0 section 9.3): it is that of MPI_COMM_WORLD, MPI_COMM_SELF and
 * what is made of them, and counts outside MPI, too. */
// env[tern]: TERN_INITIAL_ERRHANDLER=mpi_errors_return
// not-on: mpich (is told by an option of mpiexec)
// not-on: ompi (is told by an option of mpiexec)
#include "../tern_test.h"

static void has(MPI_Comm comm, MPI_Errhandler want) {
    MPI_Errhandler found;
    OK(MPI_Comm_get_errhandler(comm, &found));
    CHECK(found == want);
}

int main(int argc, char **argv) {
    int rank;
    FAILS(MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_ERR_OTHER);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &t_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &t_size));
    has(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    has(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm comm, part;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    has(comm, MPI_ERRORS_RETURN);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &part));
    has(part, MPI_ERRORS_RETURN);
    FAILS(MPI_Send(NULL, 0, MPI_INT, t_size, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    FAILS(MPI_Comm_rank(MPI_COMM_NULL, &rank), MPI_ERR_COMM);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT));
    has(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
    has(comm, MPI_ERRORS_RETURN);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&comm));
    /* Windows have their own. */
    MPI_Win win;
    MPI_Errhandler found;
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_free(&win));
    char word[MPI_MAX_INFO_VAL];
    int length = sizeof word, flag;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "mpi_initial_errhandler", &length, word, &flag));
    CHECK(flag);
    CHECK_STR(word, "mpi_errors_return");
    int result = t_end();
    FAILS(MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_ERR_OTHER);
    return result;
}
