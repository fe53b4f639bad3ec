/* Errors that concern no object: a program that has set the handler of MPI_COMM_WORLD only, as those
 * written before MPI 4.0 do, lives through them. */
// np: 1,2
// not-on: mpich (asks the handler of MPI_COMM_SELF only)
#include "tern_test.h"

static int calls;
static MPI_Comm last_comm;

static void note(MPI_Comm *comm, int *code, ...) {
    (void)code;
    calls++;
    last_comm = *comm;
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
    MPI_Datatype type;
    MPI_Errhandler handler;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    FAILS(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    MPI_Group group;
    FAILS(MPI_Group_incl(MPI_GROUP_EMPTY, 1, (int[]){0}, &group), MPI_ERR_RANK);
    /* A function for MPI_COMM_WORLD is told of that. */
    OK(MPI_Comm_create_errhandler(note, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    MPI_Type_contiguous(-1, MPI_INT, &type);
    CHECK(calls == 1 && last_comm == MPI_COMM_WORLD);
    /* From here on MPI_COMM_SELF's own handler counts. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    CHECK_EQ(calls, 1);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Type_contiguous(-1, MPI_INT, &type);
    CHECK(calls == 2 && last_comm == MPI_COMM_SELF);
    OK(MPI_Errhandler_free(&handler));
    return t_end();
}
