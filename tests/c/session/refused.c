/* Where there are sessions alone, an argument that is refused concerns the error handler that the call was given: nothing else
 * of the program returns errors. */
// not-on: mpich (does not check these)
// not-on: ompi (does not check these)
#include "../tern_test.h"

static int calls = 0;

static void heard(MPI_Comm *comm, int *code, ...) {
    CHECK(*comm == MPI_COMM_NULL);
    CHECK(*code != MPI_SUCCESS);
    calls++;
}

/* By a handler of the program as by MPI_ERRORS_RETURN. */
static void refused(MPI_Group group, MPI_Errhandler handler, int heard_each) {
    MPI_Comm comm;
    int before = calls;
    SAYS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, handler, &comm), MPI_ERR_GROUP, "`group`");
    FAILS(MPI_Comm_create_from_group(group, NULL, MPI_INFO_NULL, handler, &comm), MPI_ERR_ARG);
    MPI_Info info, gone;
    OK(MPI_Info_create(&info));
    gone = info;
    OK(MPI_Info_free(&info));
    SAYS(MPI_Comm_create_from_group(group, "x", gone, handler, &comm), MPI_ERR_INFO, "`info`");
    SAYS(MPI_Intercomm_create_from_groups(MPI_GROUP_NULL, 0, group, 0, "x", MPI_INFO_NULL, handler, &comm),
         MPI_ERR_GROUP, "`local_group`");
    SAYS(MPI_Intercomm_create_from_groups(group, 99, group, 0, "x", MPI_INFO_NULL, handler, &comm), MPI_ERR_RANK,
         "`local_leader`");
    CHECK_EQ(calls - before, 5 * heard_each);
}

int main(void) {
    MPI_Session session, second;
    MPI_Info info, gone;
    MPI_Group group;
    MPI_Errhandler handler;
    /* Before there is any session. */
    OK(MPI_Info_create(&info));
    gone = info;
    OK(MPI_Info_free(&info));
    FAILS(MPI_Session_init(gone, MPI_ERRORS_RETURN, &session), MPI_ERR_INFO);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    SAYS(MPI_Session_init(gone, MPI_ERRORS_RETURN, &second), MPI_ERR_INFO, "`info`");
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Group_rank(group, &t_rank));
    refused(group, MPI_ERRORS_RETURN, 0);
    OK(MPI_Comm_create_errhandler(heard, &handler));
    refused(group, handler, 1);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
