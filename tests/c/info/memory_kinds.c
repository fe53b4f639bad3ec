/* Of which kinds of memory buffers may be (MPI 5.0 section 11.4.3): sessions, communicators, windows and files say so, of
 * what was asked for they keep what there is, and what there is not is not claimed. */
// np: 1,3
// not-on: mpich (5.0.2 takes what a communicator is made with for what there is)
// not-on: ompi (knows none of it before version 6)
#include "../tern_test.h"

#include <unistd.h>

static const char *const KEY = "mpi_memory_alloc_kinds", *const ASSERTED = "mpi_assert_memory_alloc_kinds";
static char value[MPI_MAX_INFO_VAL + 1];

/* The value of a key, "" if it is not there. */
static const char *of(MPI_Info info, const char *key) {
    int length = sizeof value, flag = 0;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    OK(MPI_Info_free(&info));
    return flag ? value : "";
}

static const char *of_comm(MPI_Comm comm, const char *key) {
    MPI_Info info;
    OK(MPI_Comm_get_info(comm, &info));
    return of(info, key);
}

static MPI_Info asks(const char *key, const char *kinds) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, kinds));
    return info;
}

static void sessions(const char *wanted, const char *there) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, copy;
    MPI_Info info = asks(KEY, wanted), about;
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_get_info(session, &about));
    CHECK_STR(of(about, KEY), there);
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    /* Asking is for sessions. */
    OK(MPI_Comm_create_from_group(group, "kinds", info, MPI_ERRORS_RETURN, &comm));
    CHECK_STR(of_comm(comm, KEY), there);
    OK(MPI_Comm_dup(comm, &copy));
    CHECK_STR(of_comm(copy, KEY), there);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Info_free(&info));
    OK(MPI_Session_finalize(&session));
}

static void world(void) {
    CHECK_STR(of_comm(MPI_COMM_WORLD, KEY), "mpi,system");
    MPI_Comm comm;
    MPI_Info info = asks(KEY, "cuda:device");
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    CHECK_STR(of_comm(comm, KEY), "mpi,system");
    OK(MPI_Comm_set_info(comm, info));
    CHECK_STR(of_comm(comm, KEY), "mpi,system");
    OK(MPI_Info_free(&info));

    /* What a program asserts of kinds that are not there counts as not said. */
    info = asks(ASSERTED, "system,mpi:win_allocate");
    OK(MPI_Comm_set_info(comm, info));
    CHECK_STR(of_comm(comm, ASSERTED), "system,mpi:win_allocate");
    OK(MPI_Info_free(&info));
    info = asks(ASSERTED, "system,rocm");
    OK(MPI_Comm_set_info(comm, info));
    CHECK_STR(of_comm(comm, ASSERTED), "");
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&comm));

    MPI_Win win;
    info = asks(KEY, "cuda:device");
    OK(MPI_Win_create(value, sizeof value, 1, info, MPI_COMM_WORLD, &win));
    MPI_Info about;
    OK(MPI_Win_get_info(win, &about));
    CHECK_STR(of(about, KEY), "mpi,system");
    OK(MPI_Win_free(&win));
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, info, &file));
    OK(MPI_File_get_info(file, &about));
    CHECK_STR(of(about, KEY), "mpi,system");
    OK(MPI_File_close(&file));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    sessions("system", "mpi,system");
    sessions(" cuda:device , mpi:alloc_mem:win_allocate,mpi:alloc_mem:device,system:mpi, ,mpi", "mpi,system,mpi:alloc_mem:win_allocate");
    t_begin(&argc, &argv);
    world();
    return t_end();
}
