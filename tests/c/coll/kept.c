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

/* Calls with lists that differ in one number only, in turn, blocking or not. */
static void lists(int round) {
    enum { MOST = 7, GAP = 3 };
    int counts[MOST], displs[MOST], mine[2] = {t_rank, t_rank + 50}, got[MOST * GAP + 2];
    int n = 1 + round % 2, shift = round / 2 % 2;
    for (int i = 0; i < t_size; i++) {
        counts[i] = n;
        displs[i] = GAP * i + shift;
    }
    for (int i = 0; i < MOST * GAP + 2; i++)
        got[i] = -1;
    if (round % 3 == 0) {
        MPI_Request request;
        OK(MPI_Iallgatherv(mine, n, MPI_INT, got, counts, displs, MPI_INT, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Allgatherv(mine, n, MPI_INT, got, counts, displs, MPI_INT, MPI_COMM_WORLD));
    }
    for (int i = 0; i < t_size * GAP; i++) {
        int from = (i - shift) / GAP, at = (i - shift) % GAP;
        CHECK_AT(i, got[i], i < shift || at >= n ? -1 : from + 50 * at);
    }
    int root = round % t_size, parts[MOST * GAP], part[2] = {-1, -1};
    for (int i = 0; i < t_size * GAP; i++)
        parts[i] = 1000 * round + i;
    for (int i = 0; i < t_size; i++)
        displs[i] = GAP * (t_size - 1 - i) + shift;
    OK(MPI_Scatterv(parts, counts, displs, MPI_INT, part, n, MPI_INT, root, MPI_COMM_WORLD));
    for (int i = 0; i < 2; i++)
        CHECK_AT(i, part[i], i < n ? 1000 * round + GAP * (t_size - 1 - t_rank) + shift + i : -1);
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
        lists(round);
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
