/* A program that closes descriptors which are not its own takes the software adapter's from it: an error that says so,
 * and no waiting for ever.
 * np: 2
 * env: TERN_DEVICES=rnic
 * env: TERN_TRANSPORT=rc
 * expect-exit: nonzero
 * expect-stderr: closed descriptors that are not its own
 * not-on: mpich (closes what is Tern's)
 * not-on: ompi (closes what is Tern's)
 */
#include "tern_test.h"

#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int value = t_rank, got = -1;
    OK(MPI_Sendrecv(&value, 1, MPI_INT, 1 - t_rank, 1, &got, 1, MPI_INT, 1 - t_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)); /* whose text is the one to read */
    if (t_rank == 1)
        sleep(2);
    struct stat what;
    for (int fd = 3; fd < 1024; fd++)
        if (fstat(fd, &what) == 0 && !S_ISSOCK(what.st_mode))
            close(fd);
    if (t_rank == 0)
        OK(MPI_Recv(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    else
        OK(MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
    return t_end();
}
