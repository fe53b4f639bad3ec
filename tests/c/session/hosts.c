/* The process set of a host, asked for by its name: `tern://` and that of the processor. */
// not-on: mpich (a set of Tern)
// not-on: ompi (a set of Tern)
// one-host: namespaces have the name of the host they are on
#include "../tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Session session;
    MPI_Group group, world;
    MPI_Info info;
    MPI_Comm comm;
    char host[MPI_MAX_PROCESSOR_NAME + 1], name[sizeof host + 8], value[16];
    int length, result, flag, room = sizeof value;
    OK(MPI_Get_processor_name(host, &length));
    snprintf(name, sizeof name, "tern://%s", host);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_get_pset_info(session, name, &info));
    OK(MPI_Info_get_string(info, "mpi_size", &room, value, &flag));
    CHECK(flag);
    CHECK_EQ(atoi(value), t_size);
    OK(MPI_Info_free(&info));
    OK(MPI_Group_from_session_pset(session, name, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &result));
    CHECK_EQ(result, MPI_IDENT);
    OK(MPI_Comm_create_from_group(group, "of a host", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&group));
    SAYS(MPI_Group_from_session_pset(session, "tern://no-such-host", &group), MPI_ERR_ARG, "tern://no-such-host");
    OK(MPI_Session_finalize(&session));
    return t_end();
}
