/* Calls an operation before MPI_Init: one message and the exit code of MPI_ERR_OTHER. */
#include <mpi.h>
#include <stdio.h>

int main(void)
{
    int size;
    puts("before");
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    puts("after");
    return 0;
}
