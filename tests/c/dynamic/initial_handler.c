/* The keys of MPI_Comm_spawn that say with which error handler the processes begin, and of which kinds of memory their buffers may
 * be (MPI 5.0 section 11.8.4). */
// not-on: mpich (5.0.2 interprets neither)
// not-on: ompi (interprets neither)
// connections: processes of other jobs are reached over TCP alone
#include "../tern_test.h"

static void key(MPI_Info info, const char *key, const char *want) {
    char word[MPI_MAX_INFO_VAL];
    int length = sizeof word, flag;
    OK(MPI_Info_get_string(info, key, &length, word, &flag));
    CHECK_EQ(flag, want != NULL);
    if (flag)
        CHECK_STR(word, want);
}

static void has(MPI_Comm comm, MPI_Errhandler want) {
    MPI_Errhandler found;
    OK(MPI_Comm_get_errhandler(comm, &found));
    CHECK(found == want);
}

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    MPI_Info info;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    MPI_Errhandler initial = parent == MPI_COMM_NULL ? MPI_ERRORS_ARE_FATAL : MPI_ERRORS_ABORT;
    has(MPI_COMM_WORLD, initial);
    has(MPI_COMM_SELF, initial);
    OK(MPI_Comm_get_info(MPI_COMM_WORLD, &info));
    key(info, "mpi_memory_alloc_kinds", parent == MPI_COMM_NULL ? "mpi,system" : "mpi,system,mpi:win_allocate");
    OK(MPI_Info_free(&info));
    if (parent != MPI_COMM_NULL) {
        has(parent, initial);
        key(MPI_INFO_ENV, "mpi_initial_errhandler", "mpi_errors_abort");
        key(MPI_INFO_ENV, "mpi_memory_alloc_kinds", "mpi,system,mpi:win_allocate");
        OK(MPI_Comm_disconnect(&parent));
        OK(MPI_Finalize());
        return 0;
    }
    key(MPI_INFO_ENV, "mpi_memory_alloc_kinds", NULL);
    t_started();
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_memory_alloc_kinds", "cuda,mpi:win_allocate"));
    OK(MPI_Info_set(info, "mpi_initial_errhandler", "mpi_errors_abort"));
    OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&children));
    OK(MPI_Info_set(info, "mpi_initial_errhandler", "MPI_ERRORS_IGNORED"));
    SAYS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE), MPI_ERR_SPAWN,
         "`mpi_initial_errhandler`", "mpi_errors_are_fatal");
    OK(MPI_Info_free(&info));
    return t_end();
}
