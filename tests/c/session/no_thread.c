/* Where the system refuses what a thread takes, here a descriptor, a process gets to the others when it needs them. */
// np: 2+
// not-on: mpich (MPI_Session_init waits for all processes)
// not-on: ompi (MPI_Session_init waits for all processes)
#include "made_of.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static int threads(void) {
    int found = 0;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    while ((entry = readdir(tasks)))
        found += entry->d_name[0] != '.';
    closedir(tasks);
    return found;
}

int main(void) {
    MPI_Session session;
    struct rlimit before, none;
    int one = 1, sum = 0, size;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    int next = open("/dev/null", O_RDONLY);
    CHECK(next >= 0 && close(next) == 0);
    none.rlim_cur = (rlim_t)next;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_EQ(threads(), 1);
    MPI_Comm all = made_of(session, "mpi://WORLD", "all");
    OK(MPI_Comm_rank(all, &t_rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK_EQ(sum, size);
    OK(MPI_Comm_free(&all));
    OK(MPI_Session_finalize(&session));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
