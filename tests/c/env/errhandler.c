/* Error handlers of communicators: predefined ones, user functions, inheritance, calling
 * them, freeing them while they are in use. */
#include "tern_test.h"

static int calls, last_class;
static MPI_Comm last_comm;

static void note(MPI_Comm *comm, int *code, ...) {
    calls++;
    last_comm = *comm;
    MPI_Error_class(*code, &last_class);
}

static void forgive(MPI_Comm *comm, int *code, ...) {
    note(comm, code);
    *code = MPI_SUCCESS;
}

/* A user function may say what the call returns. */
static void provoke(MPI_Comm comm, int returns) {
    int value = 0, size;
    OK(MPI_Comm_size(comm, &size));
    int code = MPI_Send(&value, 1, MPI_INT, size, 0, comm);
    if (returns)
        FAILS(code, MPI_ERR_RANK);
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    MPI_Errhandler handler, got;
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL);
    t_started();
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    provoke(MPI_COMM_WORLD, 1);
    MPI_Comm comm, child;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_get_errhandler(comm, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    OK(MPI_Comm_create_errhandler(note, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Errhandler_free(&handler));
    CHECK(handler == MPI_ERRHANDLER_NULL);
    provoke(comm, 1);
    CHECK(calls == 1 && last_comm == comm && last_class == MPI_ERR_RANK);
    /* A child inherits it; the parent's communicator is not named then. */
    OK(MPI_Comm_dup(comm, &child));
    provoke(child, 0);
    CHECK(calls == 2 && last_comm == child);
    OK(MPI_Comm_split(comm, 0, t_rank, &child));
    provoke(child, 0);
    CHECK(calls == 3 && last_comm == child);
    OK(MPI_Comm_call_errhandler(child, MPI_ERR_TAG));
    CHECK(calls == 4 && last_class == MPI_ERR_TAG);
    OK(MPI_Comm_get_errhandler(child, &got));
    OK(MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN));
    provoke(child, 1);
    CHECK_EQ(calls, 4);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, got));
    OK(MPI_Errhandler_free(&got));
    /* Errors of objects without communicator go to MPI_COMM_SELF. */
    MPI_Datatype type;
    MPI_Type_contiguous(-1, MPI_INT, &type);
    CHECK(calls == 5 && last_class == MPI_ERR_COUNT);
    OK(MPI_Comm_create_errhandler(forgive, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    OK(MPI_Type_contiguous(-1, MPI_INT, &type));
    CHECK(calls == 6 && last_class == MPI_ERR_COUNT);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    return t_end();
}
