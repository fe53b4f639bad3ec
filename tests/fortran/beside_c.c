/* What C beside a Fortran program does: it knows MPI_STATUS_IGNORE when it is handed on, and as a tool it takes over a name
 * that Fortran calls (MPI 5.0 sections 19.3.5 and 19.1.5). */
#include <mpi.h>
#include <stddef.h>

/* 1: MPI_STATUS_IGNORE, 2: MPI_STATUSES_IGNORE, 0: a status. */
int which_status(const MPI_Fint *status) {
    return status == MPI_F_STATUS_IGNORE ? 1 : status == MPI_F_STATUSES_IGNORE ? 2 : 0;
}

int which_f08_status(const MPI_F08_status *status) {
    return status == MPI_F08_STATUS_IGNORE ? 1 : status == MPI_F08_STATUSES_IGNORE ? 2 : 0;
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
