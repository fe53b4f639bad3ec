/* A fork while the engine makes progress: the parent goes on, and the child,
 * which has no engine, may ask what is allowed at any time.
 * np: 2+
 * args: plain
 * args: multiple
 * not-on: mpich (no progress outside of MPI)
 * not-on: ompi (no progress outside of MPI)
 */
#include "away.h"

#include <sys/wait.h>

enum { COUNT = 20000 };
static int all[COUNT];

int main(int argc, char **argv) {
    away_begin(argc, argv);
    for (int round = 0; round < 30; round++) {
        int waiter = (round + 1) % t_size, root = round % t_size;
        MPI_Request request;
        for (int i = 0; i < COUNT; i++)
            all[i] = t_rank == root ? round + i : -1;
        OK(MPI_Ibcast(all, COUNT, MPI_INT, root, MPI_COMM_WORLD, &request));
        if (t_rank == waiter) {
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            away_done();
        } else {
            pid_t child = fork();
            CHECK(child >= 0);
            if (child == 0) {
                int up = 0, version, subversion;
                MPI_Initialized(&up);
                MPI_Get_version(&version, &subversion);
                _exit(up ? 0 : 1);
            }
            int status;
            CHECK_EQ(waitpid(child, &status, 0), child);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            away_until(1);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        for (int i = 0; i < COUNT; i++)
            CHECK_EQ(all[i], round + i);
        away_next(1);
    }
    return t_end();
}
