/* What C beside a Fortran program does: it knows MPI_STATUS_IGNORE when it is handed on, and as a tool it takes over a name
 * that Fortran calls, and attributes are everybody's (MPI 5.0 sections 19.3.5, 19.1.5 and 19.3.7). */
#include <mpi.h>
#include <stddef.h>

/* 1: MPI_STATUS_IGNORE, 2: MPI_STATUSES_IGNORE, 0: a status. */
int which_status(const MPI_Fint *status) {
    return status == MPI_F_STATUS_IGNORE ? 1 : status == MPI_F_STATUSES_IGNORE ? 2 : 0;
}

int which_f08_status(const MPI_F08_status *status) {
    return status == MPI_F08_STATUS_IGNORE ? 1 : status == MPI_F08_STATUSES_IGNORE ? 2 : 0;
}

/* What Fortran sets C finds at an address, what C sets Fortran gets as the address (section 19.3.7). */
int has_value(MPI_Fint comm, int keyval, MPI_Aint value) {
    MPI_Aint *found = NULL;
    int flag = 0;
    MPI_Comm_get_attr(MPI_Comm_fromint(comm), keyval, &found, &flag);
    return flag && *found == value;
}

MPI_Aint set_address(MPI_Fint comm, int keyval) {
    static int own;
    MPI_Comm_set_attr(MPI_Comm_fromint(comm), keyval, &own);
    return (MPI_Aint) &own;
}

int keyval_of_c(void) {
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    return keyval;
}

static int sends = 0;

int sends_heard(void) {
    return sends;
}

void pmpi_send_f08ts_(void *, int *, MPI_Fint *, int *, int *, MPI_Fint *, int *);

void mpi_send_f08ts_(void *buf, int *count, MPI_Fint *datatype, int *dest, int *tag, MPI_Fint *comm, int *ierror) {
    sends++;
    pmpi_send_f08ts_(buf, count, datatype, dest, tag, comm, ierror);
}
