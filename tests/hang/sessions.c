/* Ranks of which one does not come to the others: it dies, ends or aborts in a session, or before it has one. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static MPI_Session session;

/* Opens a session; this process's rank in the job. */
static int open_session(void) {
    MPI_Group world;
    int rank;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    MPI_Group_free(&world);
    return rank;
}

static MPI_Comm made_of(const char *set) {
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, set, &group);
    MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    return comm;
}

/* Only the process that is first leaves its word. */
static int is_first(const char *file) {
    FILE *made = fopen(file, "wx");
    return made && fclose(made) == 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "", *file = argc > 2 ? argv[2] : "";
    int first = is_first(file);
    /* Nobody but the first comes to MPI at all, or only the first does not. */
    if ((strcmp(how, "abort-alone") == 0 && !first) || (strcmp(how, "absent") == 0 && first))
        for (;;)
            pause();
    int rank = open_session();
    printf("rank %d is process %d\n", rank, (int)getpid());
    fflush(stdout);
    if (first) {
        if (strcmp(how, "abort-late") == 0)
            usleep(500000);
        if (strncmp(how, "abort", 5) == 0)
            MPI_Abort(made_of("mpi://SELF"), atoi(argv[3]));
        if (strcmp(how, "exit") == 0)
            exit(atoi(argv[3]));
        for (;;)
            pause();
    }
    /* Without it there is no end to this; member 0 makes a communicator without waiting for the others. */
    MPI_Barrier(made_of("mpi://WORLD"));
    return 0;
}
