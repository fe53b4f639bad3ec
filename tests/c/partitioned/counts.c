/* The forms with large counts, which the header of the ABI has and the standard has not: the count is large in the others, too. */
// np: 1,2
// not-on: mpich (its header has none)
// not-on: ompi (its header has none)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int out[12], in[12], next = (t_rank + 1) % t_size, before = (t_rank + t_size - 1) % t_size, flag = 0;
    MPI_Datatype pair;
    MPI_Request requests[2];
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Psend_init_c(out, 2, 6, MPI_INT, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init_c(in, 3, 2, pair, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 12; i++)
            out[i] = 1000 * t_rank + 100 * round + i, in[i] = -1;
        OK(MPI_Startall(2, requests));
        OK(MPI_Pready(1, requests[0]));
        while (!flag)
            OK(MPI_Parrived(requests[1], 2, &flag));
        for (int i = 8; i < 12; i++)
            CHECK_AT(i, in[i], 1000 * before + 100 * round + i);
        OK(MPI_Pready(0, requests[0]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 8; i++)
            CHECK_AT(i, in[i], 1000 * before + 100 * round + i);
        flag = 0;
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Type_free(&pair));
    return t_end();
}
