/* The first messages between two ranks are those of one collective, and long: what leaves at once as a rule may have to be agreed on here, for
 * its way is not there yet, and then who sends waits for the receive. */
// args: 0
// args: 1
// args: 2
// args: 3
#include "tern_test.h"

enum { COUNT = 20000 };

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int *out = malloc((size_t)t_size * COUNT * sizeof *out), *in = malloc((size_t)t_size * COUNT * sizeof *in);
    for (int at = 0; at < t_size * COUNT; at++)
        out[at] = at + t_rank;
    int which = argc > 1 ? atoi(argv[1]) : 0;
    if (which == 0) {
        MPI_Allreduce(out, in, COUNT, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        for (int at = 0; at < COUNT; at++)
            CHECK_AT(at, in[at], at + t_size - 1);
    } else if (which == 1) {
        MPI_Allgather(out, COUNT, MPI_INT, in, COUNT, MPI_INT, MPI_COMM_WORLD);
        for (int at = 0; at < t_size * COUNT; at++)
            CHECK_AT(at, in[at], at % COUNT + at / COUNT);
    } else if (which == 2) {
        MPI_Alltoall(out, COUNT, MPI_INT, in, COUNT, MPI_INT, MPI_COMM_WORLD);
        for (int at = 0; at < t_size * COUNT; at++)
            CHECK_AT(at, in[at], t_rank * COUNT + at % COUNT + at / COUNT);
    } else {
        MPI_Reduce_scatter_block(out, in, COUNT, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        for (int at = 0; at < COUNT; at++)
            CHECK_AT(at, in[at], t_rank * COUNT + at + t_size - 1);
    }
    free(out);
    free(in);
    return t_end();
}
