/* A child made by fork is no rank: what it asks of MPI beyond what is allowed at any time ends in an
 * error that says so, whatever its parent was doing.
 * args: single
 * args: multiple
 * np: 1,2
 * expect-exit: nonzero
 * expect-stderr: MPI_Send.*fork
 * timeout: 30
 * not-on: mpich (the child sends in its parent's name)
 * not-on: ompi (the child sends in its parent's name)
 */
#include "../tern_test.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int provided, level = strcmp(argv[1], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    OK(MPI_Init_thread(&argc, &argv, level, &provided));
    t_started();
    if (t_rank == 0) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            int up = 0, down = 1, value = 0;
            MPI_Info info;
            MPI_Initialized(&up);
            MPI_Finalized(&down);
            if (!up || down || MPI_Wtime() <= 0)
                _exit(0);
            if (MPI_Info_create(&info) != MPI_SUCCESS || MPI_Info_free(&info) != MPI_SUCCESS)
                _exit(0);
            MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
            _exit(0);
        }
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return 0; /* the job has been ended by the child's error; nobody comes here without one */
}
