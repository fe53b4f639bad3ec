/* A handler for a signal that hit MPI itself asks for its rank and ends the job, as PETSc's does. The
 * signal is raised where MPI calls the program, or by a timer while the rank is inside MPI.
 * args: callback single
 * args: callback multiple
 * args: timer single
 * args: timer multiple
 * np: 1,2
 * expect-exit: 59
 * expect-stderr: rank 0 of [12]: caught
 * timeout: 30
 */
#include "../tern_test.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static MPI_Comm mine;

static void caught(int number) {
    (void)number;
    int rank = -1, size = -1, up = 0, down = 1, rank2 = -1, provided = -1, is_main = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    MPI_Query_thread(&provided);
    MPI_Is_thread_main(&is_main);
    if (!up || down || MPI_Wtime() <= 0 || MPI_Wtick() <= 0 || !is_main)
        _exit(1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(mine, &rank2);
    if (rank != rank2)
        _exit(2);
    char text[64];
    int length = snprintf(text, sizeof text, "rank %d of %d: caught\n", rank, size);
    if (write(2, text, (size_t)length) != length)
        _exit(3);
    MPI_Abort(MPI_COMM_WORLD, 59);
}

static int copied(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag) {
    (void)comm, (void)key, (void)extra, (void)value, (void)copy, (void)flag;
    return raise(SIGSEGV);
}

int main(int argc, char **argv) {
    int provided, key;
    int level = strcmp(argv[2], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    OK(MPI_Init_thread(&argc, &argv, level, &provided));
    t_started();
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &mine));
    struct sigaction action = {.sa_handler = caught};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    if (strcmp(argv[1], "timer") == 0) {
        /* All but rank 0 stay away, so that it waits in the barrier; alone it tests on and on. */
        if (t_rank != 0)
            pause();
        struct itimerval soon = {.it_value = {.tv_usec = 100000}};
        setitimer(ITIMER_REAL, &soon, NULL);
        int flag = 0, none;
        MPI_Request request;
        OK(MPI_Irecv(&none, 1, MPI_INT, MPI_ANY_SOURCE, 7, mine, &request));
        while (t_size == 1)
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(mine));
    }
    MPI_Comm copy;
    OK(MPI_Comm_create_keyval(copied, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key));
    if (t_rank == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    pause();
    return 1;
}
