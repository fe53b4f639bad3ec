/* Wrong arguments of sessions. */
// not-on: mpich (does not check these)
// not-on: ompi (does not check these)
#include "../tern_test.h"

int main(int argc, char **argv) {
    MPI_Session session = MPI_SESSION_NULL, gone;
    MPI_Group group, others;
    MPI_Comm comm;
    MPI_Info info;
    int length = 8, count;
    char name[8];
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MANY");
    FAILS(MPI_Session_init(info, MPI_ERRORS_RETURN, &session), MPI_ERR_INFO_VALUE);
    CHECK(session == MPI_SESSION_NULL);
    OK(MPI_Info_free(&info));
    t_begin(&argc, &argv);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    SAYS(MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &count), MPI_ERR_SESSION, "`session`");
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
    SAYS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, count, &length, name), MPI_ERR_ARG, "`n`");
    /* As much as fits. */
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name));
    CHECK_STR(name, "mpi://W");
    CHECK_EQ(length, 12);
    SAYS(MPI_Session_get_pset_info(session, "mpi://worlds", &info), MPI_ERR_ARG, "`pset_name`");
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    int range[1][3] = {{t_rank, t_rank, 1}};
    OK(MPI_Group_range_excl(group, 1, range, &others));
    if (t_size > 1) {
        SAYS(MPI_Comm_create_from_group(others, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
             MPI_ERR_GROUP, "`group`");
        OK(MPI_Group_free(&others));
    }
    SAYS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
         MPI_ERR_GROUP, "`group`");
    SAYS(MPI_Comm_create_from_group(group, "x", MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &comm),
         MPI_ERR_ERRHANDLER, "`errhandler`");
    MPI_Group self;
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &self));
    SAYS(MPI_Intercomm_create_from_groups(self, 1, group, 0, "y", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
          MPI_ERR_RANK, "`local_leader`");
    SAYS(MPI_Intercomm_create_from_groups(self, 0, group, t_size, "y", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
          MPI_ERR_RANK, "`remote_leader`");
    FAILS(MPI_Intercomm_create_from_groups(self, 0, group, 0, "y", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
          MPI_ERR_COMM);
    SAYS(MPI_Intercomm_create_from_groups(group, 0, MPI_GROUP_NULL, 0, "y", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
          MPI_ERR_GROUP, t_rank == 0 ? "`remote_group`" : "rank 0");
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&group));
    gone = session;
    OK(MPI_Session_finalize(&session));
    SAYS(MPI_Session_finalize(&gone), MPI_ERR_SESSION, "`session`");
    return t_end();
}
