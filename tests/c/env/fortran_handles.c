/* Handles and statuses as C libraries with Fortran interfaces (PETSc, HDF5, MUMPS) pass them on: the conversions of MPI 5.0
 * section 19.3.4 are in the header, in terms of what the ABI's libraries have. */
// np: 1,2
// not-on: mpich (its header of the ABI leaves them out)
#include "tern_test.h"

#define ROUND_TRIP(type, name, handle)                                                                                 \
    do {                                                                                                               \
        type made = (handle);                                                                                          \
        MPI_Fint number = MPI_##name##_c2f(made);                                                                      \
        CHECK(MPI_##name##_f2c(number) == made && PMPI_##name##_f2c(PMPI_##name##_c2f(made)) == made);               \
    } while (0)

static void handles(void) {
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype pair;
    MPI_Info info;
    MPI_Request request;
    MPI_Win win;
    int value = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_group(comm, &group);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Info_create(&info);
    MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, comm, &win);
    MPI_Recv_init(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, &request);
    ROUND_TRIP(MPI_Comm, Comm, comm);
    ROUND_TRIP(MPI_Group, Group, group);
    ROUND_TRIP(MPI_Datatype, Type, pair);
    ROUND_TRIP(MPI_Info, Info, info);
    ROUND_TRIP(MPI_Win, Win, win);
    ROUND_TRIP(MPI_Request, Request, request);
    ROUND_TRIP(MPI_Op, Op, MPI_SUM);
    ROUND_TRIP(MPI_Errhandler, Errhandler, MPI_ERRORS_RETURN);
    ROUND_TRIP(MPI_File, File, MPI_FILE_NULL);
    ROUND_TRIP(MPI_Message, Message, MPI_MESSAGE_NO_PROC);
    ROUND_TRIP(MPI_Session, Session, MPI_SESSION_NULL);
#ifdef MPI_ABI_VERSION /* another ABI than the standard one has other values */
    CHECK(MPI_Comm_c2f(MPI_COMM_WORLD) == 257);
    /* There is no Fortran here whose MPI_STATUS_IGNORE a status could be: tests/fortran/beside_c.c has some. */
    CHECK(MPI_F_STATUS_IGNORE == NULL && MPI_F_STATUSES_IGNORE == NULL);
    CHECK(MPI_F08_STATUS_IGNORE == NULL && MPI_F08_STATUSES_IGNORE == NULL);
#endif
    MPI_Request_free(&request);
    MPI_Win_free(&win);
    MPI_Info_free(&info);
    MPI_Type_free(&pair);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
}

static void statuses(void) {
    MPI_Status c, again;
    MPI_F08_status f08;
    MPI_Fint f[MPI_F_STATUS_SIZE];
    int count, value = 7;
    MPI_Sendrecv(&value, 1, MPI_INT, t_rank, 3, &count, 1, MPI_INT, t_rank, 3, MPI_COMM_WORLD, &c);
    c.MPI_ERROR = 5;
    CHECK(MPI_Status_c2f(&c, f) == MPI_SUCCESS);
    CHECK(f[MPI_F_SOURCE] == t_rank && f[MPI_F_TAG] == 3 && f[MPI_F_ERROR] == 5);
    CHECK(MPI_Status_f2f08(f, &f08) == MPI_SUCCESS && f08.MPI_TAG == 3);
    CHECK(MPI_Status_f082c(&f08, &again) == MPI_SUCCESS && again.MPI_SOURCE == t_rank);
    CHECK(MPI_Get_count(&again, MPI_INT, &count) == MPI_SUCCESS && count == 1);
    f[MPI_F_TAG] = 4;
    CHECK(MPI_Status_f2c(f, &again) == MPI_SUCCESS && again.MPI_TAG == 4);
    CHECK(MPI_Status_c2f08(&again, &f08) == MPI_SUCCESS && PMPI_Status_f082f(&f08, f) == MPI_SUCCESS && f[MPI_F_TAG] == 4);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    handles();
    statuses();
    return t_end();
}
