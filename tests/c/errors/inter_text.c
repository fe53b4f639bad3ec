/* Who sent what does not fit is named by the rank it has in its own group. */
// np: 3,4,7
// not-on: mpich (does not check this)
// not-on: ompi (does not check this)
// expect-exit: nonzero
// expect-stderr: MPI_Scatter\(.*rank 1 of the remote group sent 8 bytes in this Scatter, but count and datatype here ask for 4
#include "../inter.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    sides s;
    int data[16] = {0}, more[16];
    sides_make(0, &s);
    OK(MPI_Comm_set_errhandler(s.inter, MPI_ERRORS_ARE_FATAL));
    MPI_Scatter(data, 2, MPI_INT, more, 1, MPI_INT, s.low ? 1 : s.rank == 1 ? MPI_ROOT : MPI_PROC_NULL, s.inter);
    MPI_Barrier(s.inter);
    return t_end();
}
