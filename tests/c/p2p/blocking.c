/* Blocking exchange between all pairs, the receiver early and late, all sizes up to
 * 4 MB; the receive posted with exact and with larger room. */
// np: 2+
#include "tern_test.h"

#include <unistd.h>

static const int sizes[] = {0, 1, 31, 56, 64, 100, 511, 4000, 10000, 20000, 70000, 300000, 1500000, 4194304};

static void pass(int from, int to, int bytes, int late, int tag) {
    unsigned char *buffer = t_alloc((size_t)bytes + 8);
    MPI_Status status;
    if (t_rank == from) {
        t_fill(buffer, (size_t)bytes, (uint64_t)tag);
        if (late == 1)
            usleep(500);
        OK(MPI_Send(buffer, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD));
    } else if (t_rank == to) {
        memset(buffer, 0x55, (size_t)bytes + 8);
        if (late == 2)
            usleep(500);
        OK(MPI_Recv(buffer, bytes + (tag & 1 ? 8 : 0), MPI_BYTE, from, tag, MPI_COMM_WORLD, &status));
        CHECK_STATUS(status, from, tag, bytes);
        CHECK_FILL(buffer, bytes, (uint64_t)tag);
        CHECK_UNTOUCHED(buffer + bytes, 8, 0x55);
    }
    free(buffer);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int tag = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int from = 0; from < t_size; from++)
            for (int to = 0; to < t_size; to++)
                if (from != to)
                    for (int late = 0; late < 3; late++)
                        pass(from, to, sizes[s], late, tag++);
    return t_end();
}
