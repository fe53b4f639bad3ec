/* A process that was started dies while those who have started it wait for it: the whole job ends and is told why. */
// args: signal
// args: abort
// args: exit
// expect-exit: nonzero
// expect-stderr[tern]: killed by signal 9 \(SIGKILL\)|MPI_Abort was called with code 7|exited with code 3 without MPI_Finalize
// timeout: 60
// connections: processes of other jobs are reached over TCP alone
#include "../tern_test.h"

#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    int value;
    t_begin(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (t_rank == 1 && strcmp(argv[1], "signal") == 0)
            kill(getpid(), SIGKILL);
        if (t_rank == 1 && strcmp(argv[1], "abort") == 0)
            MPI_Abort(parent, 7);
        if (t_rank == 1)
            _exit(3);
        MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    char *arguments[] = {argv[1], NULL};
    OK(MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    MPI_Recv(&value, 1, MPI_INT, 1, 0, children, MPI_STATUS_IGNORE);
    printf("nobody comes here\n");
    return 0;
}
