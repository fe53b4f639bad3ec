/* A program that closes descriptors which are not its own is no dead rank: others go on waiting for it.
 * Sockets stay open, for the launcher is spoken to through them.
 * np: 2,3
 * not-on: mpich (needs what is closed here)
 * not-on: openmpi (needs what is closed here)
 * not-on: intel (needs what is closed here)
 * one-host: what is closed here is what the adapter sleeps on
 */
#include "tern_test.h"

#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int mine[16] = {0}, theirs[16];
    OK(MPI_Alltoall(mine, 1, MPI_INT, theirs, 1, MPI_INT, MPI_COMM_WORLD)); /* all have met */
    struct stat what;
    for (int fd = 3; fd < 1024; fd++)
        if (fstat(fd, &what) == 0 && !S_ISSOCK(what.st_mode))
            close(fd);
    int value = t_rank, got = -1;
    if (t_rank != 0) {
        sleep(2); /* long enough for a waiting rank to look whether others live */
        OK(MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
        return t_end();
    }
    for (int from = 1; from < t_size; from++) {
        OK(MPI_Recv(&got, 1, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(got, from);
    }
    return t_end();
}
