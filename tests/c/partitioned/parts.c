/* Partitioned messages: different numbers of partitions on both sides, partitions made ready in any order and by each of
 * the three calls, many rounds (in which the library may change how they are cut), types with gaps. */
#include "tern_test.h"

enum { ROUNDS = 12 };

static int value(int round, int source, int i) {
    return round * 1000003 + source * 7919 + i;
}

/* An order of `n` partitions that differs by round. */
static void shuffle(int *order, int n, int round) {
    t_rng rng = t_seed((uint64_t)round + 1);
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)t_below(&rng, (uint32_t)i + 1), other = order[i];
        order[i] = order[k];
        order[k] = other;
    }
}

static void make_ready(MPI_Request request, int n, int round) {
    int *order = t_alloc(sizeof(int) * (size_t)(n + 1));
    shuffle(order, n, round);
    if (round % 3 == 0) {
        for (int i = 0; i < n; i++)
            OK(MPI_Pready(order[i], request));
    } else if (round % 3 == 1) {
        OK(MPI_Pready_list(n / 2, order, request));
        OK(MPI_Pready_list(n - n / 2, order + n / 2, request));
    } else if (n > 0) {
        if (n > 1)
            OK(MPI_Pready_range(n / 2, n - 1, request));
        OK(MPI_Pready_range(0, n > 1 ? n / 2 - 1 : 0, request));
    }
    free(order);
}

/* To the next rank round the ring, from the one before: `sp` partitions here are `rp` there, of `bytes` ints in all. */
static void ring(int sp, int rp, int total, int gaps) {
    int next = (t_rank + 1) % t_size, before = (t_rank + t_size - 1) % t_size, step = gaps ? 2 : 1;
    int *out = t_alloc(sizeof(int) * (size_t)(total * step + 1)), *in = t_alloc(sizeof(int) * (size_t)(total * step + 1));
    MPI_Datatype type = MPI_INT;
    if (gaps) {
        OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type));
        OK(MPI_Type_commit(&type));
    }
    MPI_Request requests[2];
    OK(MPI_Psend_init(out, sp, sp ? total / sp : 0, type, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, rp, rp ? total / rp : 0, type, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < total; i++)
            out[i * step] = value(round, t_rank, i);
        memset(in, 0xee, sizeof(int) * (size_t)(total * step + 1));
        OK(MPI_Startall(2, requests));
        int flag;
        make_ready(requests[0], sp, round);
        if (round % 2 == 0) {
            /* What has arrived is there, before the whole is complete. */
            for (int p = rp - 1; p >= 0; p--) {
                do
                    OK(MPI_Parrived(requests[1], p, &flag));
                while (!flag);
                for (int i = total / rp * p; i < total / rp * (p + 1); i++)
                    CHECK_AT(i, in[i * step], value(round, before, i));
            }
        }
        MPI_Status statuses[2];
        if (round % 4 == 3) {
            for (int side = 0; side < 2; side++)
                do
                    OK(MPI_Test(&requests[side], &flag, &statuses[side]));
                while (!flag);
        } else {
            OK(MPI_Waitall(2, requests, statuses));
        }
        CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
        CHECK_STATUS(statuses[1], before, 5, total * (int)sizeof(int));
        for (int i = 0; i < total; i++) {
            CHECK_AT(i, in[i * step], value(round, before, i));
            if (gaps)
                CHECK_UNTOUCHED(in + i * step + 1, sizeof(int), 0xee);
        }
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    if (gaps)
        OK(MPI_Type_free(&type));
    free(out);
    free(in);
}

/* Requests of one envelope are matched in the order in which they are made; all are under way at once. */
static void in_order(void) {
    enum { MANY = 5 };
    int next = (t_rank + 1) % t_size, before = (t_rank + t_size - 1) % t_size;
    MPI_Request requests[2 * MANY];
    int out[MANY][6], in[MANY][6];
    for (int m = 0; m < MANY; m++)
        OK(MPI_Precv_init(in[m], 2, 3, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[MANY + m]));
    for (int m = 0; m < MANY; m++)
        OK(MPI_Psend_init(out[m], 3, 2, MPI_INT, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[m]));
    for (int round = 0; round < 3; round++) {
        for (int m = 0; m < MANY; m++)
            for (int i = 0; i < 6; i++)
                out[m][i] = value(round, t_rank, 100 * m + i);
        for (int m = MANY - 1; m >= 0; m--)
            OK(MPI_Startall(2, (MPI_Request[]){requests[m], requests[MANY + m]}));
        for (int m = MANY - 1; m >= 0; m--)
            OK(MPI_Pready_range(0, 2, requests[m]));
        OK(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
        for (int m = 0; m < MANY; m++)
            for (int i = 0; i < 6; i++)
                CHECK_AT(m, in[m][i], value(round, before, 100 * m + i));
    }
    for (int m = 0; m < 2 * MANY; m++)
        OK(MPI_Request_free(&requests[m]));
}

/* Ordinary messages of the same envelope are none of its business. */
static void beside(void) {
    int next = (t_rank + 1) % t_size, before = (t_rank + t_size - 1) % t_size, out = 3, in = 0, o = 4, i = 0, flag;
    MPI_Request requests[2], other;
    OK(MPI_Irecv(&i, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &other));
    OK(MPI_Precv_init(&in, 1, 1, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Psend_init(&out, 1, 1, MPI_INT, next, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Startall(2, requests));
    OK(MPI_Parrived(requests[1], 0, &flag));
    OK(MPI_Pready(0, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Send(&o, 1, MPI_INT, next, 2, MPI_COMM_WORLD));
    OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
    CHECK(in == 3 && i == 4);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    static const int cuts[][3] = {{1, 1, 12}, {4, 4, 12}, {2, 6, 12}, {6, 2, 12}, {3, 4, 24}, {8, 1, 80000}, {1, 8, 80000},
                                  {16, 10, 160000}, {64, 64, 64}, {5, 7, 0}, {100, 30, 300000}};
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
        for (int gaps = 0; gaps < 2; gaps++)
            ring(cuts[c][0], cuts[c][1], cuts[c][2], gaps);
    in_order();
    beside();
    return t_end();
}
