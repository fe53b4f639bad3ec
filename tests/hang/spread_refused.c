/* Processes that cannot be started: refused again and again, and the job goes on; at last the refusal is fatal.
 * Arguments: the program, then info keys and what they say. */
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Comm children;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Info_create(&info);
    for (int i = 2; i + 1 < argc; i += 2)
        MPI_Info_set(info, argv[i], argv[i + 1]);
    for (int i = 0; i < 3; i++) {
        int class;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, i < 2 ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
        int result = MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Error_class(result, &class);
        if (class != MPI_ERR_SPAWN)
            MPI_Abort(MPI_COMM_WORLD, 9);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
