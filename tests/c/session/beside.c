/* Sessions beside MPI_Init and after it: error handlers, buffers, what is per process and what per session. */
// not-on: mpich (5.0.2 takes any name of a process set in C, and gives MPI_GROUP_NULL)
#include "../tern_test.h"

static int handled, handled_code;
static MPI_Session handled_session;

static void handler(MPI_Session *session, int *code, ...) {
    handled++;
    handled_code = *code;
    handled_session = *session;
}

static void handlers(void) {
    MPI_Session session, other;
    MPI_Errhandler mine, got;
    MPI_Group group;
    OK(MPI_Session_create_errhandler(handler, &mine));
    OK(MPI_Session_init(MPI_INFO_NULL, mine, &session));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK(got == mine);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&mine));
    int code = MPI_Group_from_session_pset(session, "@nowhere", &group), class;
    CHECK(code != MPI_SUCCESS);
    CHECK(group == MPI_GROUP_NULL);
    CHECK_EQ(handled, 1);
    CHECK_EQ(handled_code, code);
    CHECK(handled_session == session);
    OK(MPI_Error_class(code, &class));
    CHECK_EQ(class, MPI_ERR_ARG);
    FAILS(MPI_Group_from_session_pset(other, "@nowhere", &group), MPI_ERR_ARG);
    CHECK_EQ(handled, 1);
    OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
    CHECK_EQ(handled, 2);
    OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    FAILS(MPI_Group_from_session_pset(session, "@nowhere", &group), MPI_ERR_ARG);
    CHECK_EQ(handled, 2);
    OK(MPI_Session_finalize(&session));
    OK(MPI_Session_finalize(&other));
}

/* MPI_Comm_split_type by process sets. */
static int members(const char *set, int type) {
    MPI_Info info;
    MPI_Comm part;
    int size = 0;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_pset_name", set));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, t_size - t_rank, info, &part));
    OK(MPI_Info_free(&info));
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_size(part, &size));
        OK(MPI_Comm_free(&part));
    }
    return size;
}

static void sets(void) {
    CHECK_EQ(members("mpi://WORLD", MPI_COMM_TYPE_RESOURCE_GUIDED), t_size);
    CHECK_EQ(members("mpi://SELF", MPI_COMM_TYPE_RESOURCE_GUIDED), 1);
    CHECK_EQ(members("mpi://NOBODY", MPI_COMM_TYPE_RESOURCE_GUIDED), 0);
    CHECK_EQ(members("mpi://WORLD", MPI_COMM_TYPE_HW_GUIDED), 0);
}

/* The communicator's buffer before the session's, the session's before the process's. */
static void buffers(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int size = 2 * (MPI_BSEND_OVERHEAD + 64), length, rank, n, got;
    char *memory = t_alloc(size), *back;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &n));
    FAILS(MPI_Bsend(&rank, 1, MPI_INT, rank, 0, comm), MPI_ERR_BUFFER);
    OK(MPI_Session_attach_buffer(session, memory, size));
    OK(MPI_Bsend(&rank, 1, MPI_INT, (rank + 1) % n, 0, comm));
    FAILS(MPI_Bsend(&rank, 1, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Recv(&got, 1, MPI_INT, (rank + n - 1) % n, 0, comm, MPI_STATUS_IGNORE));
    CHECK_EQ(got, (rank + n - 1) % n);
    MPI_Request request;
    OK(MPI_Session_iflush_buffer(session, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Session_detach_buffer(session, &back, &length));
    CHECK(back == memory);
    CHECK_EQ(length, size);
    free(memory);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
}

static int deleted;

static int at_delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

/* A session that is open when MPI_Finalize is called goes on; what is attached to its communicators stays so long. */
int main(int argc, char **argv) {
    MPI_Session early, late;
    MPI_Group group;
    MPI_Comm comm;
    int key, up, down, sum = 0, one = 1;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &early));
    OK(MPI_Initialized(&up));
    CHECK(!up);
    t_begin(&argc, &argv);
    OK(MPI_Initialized(&up));
    CHECK(up);
    handlers();
    sets();
    buffers();
    OK(MPI_Group_from_session_pset(early, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "long", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_delete, &key, NULL));
    OK(MPI_Comm_set_attr(comm, key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    CHECK_EQ(deleted, 1);
    OK(MPI_Finalized(&down));
    CHECK(down);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, t_size);
    OK(MPI_Comm_free(&comm));
    CHECK_EQ(deleted, 2);
    OK(MPI_Session_finalize(&early));
    /* And another one after all that. */
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &late));
    OK(MPI_Session_finalize(&late));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
