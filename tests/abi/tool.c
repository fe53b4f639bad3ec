/* A tool in the sense of MPI 5.0 section 15.2: takes over names, calls the library by the
 * shifted ones, and reports when the process ends. */
#include <mpi.h>
#include <stdio.h>

static int versions, sends;

int MPI_Get_version(int *version, int *subversion)
{
    versions++;
    return PMPI_Get_version(version, subversion);
}

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "tool: MPI_Get_version %d calls\n", versions);
    fprintf(stderr, "tool: MPI_Send %d calls\n", sends);
}
