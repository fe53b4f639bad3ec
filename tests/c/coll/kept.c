/* Equal non-blocking collectives one after the other and at the same time, between blocking ones:
 * what is kept from one for the next never mixes their buffers. A communicator that is freed while
 * one is under way stays until that is done. */
// np: 1,2,3,4,7
#include "tern_test.h"

enum { ROUNDS = 50, AT_ONCE = 3, COUNT = 20 };

static int in[AT_ONCE][COUNT], out[AT_ONCE][COUNT], all[AT_ONCE][64];

static void begin(int which, int round, MPI_Request *request) {
    for (int i = 0; i < COUNT; i++) {
        in[which][i] = t_rank + i + 100 * which + 1000 * round;
        out[which][i] = -1;
    }
    OK(MPI_Iallreduce(in[which], out[which], COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request));
}

static void check(int which, int round) {
    int ranks = t_size * (t_size - 1) / 2;
    for (int i = 0; i < COUNT; i++)
        CHECK_AT(i, out[which][i], ranks + t_size * (i + 100 * which + 1000 * round));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Request request[AT_ONCE];
    for (int round = 0; round < ROUNDS; round++) {
        /* One alone, which may be kept; then as many at once as there are buffers. */
        begin(0, round, request);
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
        check(0, round);
        for (int i = 0; i < AT_ONCE; i++)
            begin(i, round, &request[i]);
        for (int i = AT_ONCE - 1; i >= 0; i--) {
            OK(MPI_Wait(&request[i], MPI_STATUS_IGNORE));
            check(i, round);
        }
        /* A blocking one in between, on other buffers. */
        int mine[COUNT], sum[COUNT];
        for (int i = 0; i < COUNT; i++)
            mine[i] = 1;
        begin(1, round, request);
        OK(MPI_Allreduce(mine, sum, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
        check(1, round);
        for (int i = 0; i < COUNT; i++)
            CHECK_AT(i, sum[i], t_size);
        /* From the same buffer to two others: the second cannot have what the first holds. */
        for (int i = 0; i < 2; i++)
            OK(MPI_Iallgather(&mine[0], 1, MPI_INT, all[i], 1, MPI_INT, MPI_COMM_WORLD, &request[i]));
        OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 2 * t_size; i++)
            CHECK_AT(i, all[i / t_size][i % t_size], 1);
    }
    for (int round = 0; round < 5; round++) {
        MPI_Comm copy;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
        for (int i = 0; i < 2; i++) {
            OK(MPI_Ibarrier(copy, &request[0]));
            if (i == 1)
                OK(MPI_Comm_free(&copy));
            OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
        }
    }
    return t_end();
}
