/* A partition that somebody waits for before the others of the round are ready: however the library puts partitions together,
 * MPI_Parrived has to become true of what is ready (MPI 5.0 section 4.2.2). */
// not-on: mpich (5.0.2 waits for all partitions)
// not-on: ompi (5.0.11 says that a partition is there before its bytes are)
#include "tern_test.h"

enum { ROUNDS = 5 };

static int value(int round, int source, int i) {
    return round * 1000003 + source * 7919 + i;
}

static void await_part(MPI_Request request, int partition) {
    int flag;
    do
        OK(MPI_Parrived(request, partition, &flag));
    while (!flag);
}

static void check_part(const int *in, int step, int round, int source, int each, int partition) {
    for (int i = each * partition; i < each * (partition + 1); i++)
        CHECK_AT(i, in[i * step], value(round, source, i));
}

/* One sends, the other one says for each partition of its own that it has come; only then the next ones are made ready. Both may be
 * one rank. */
static void in_turn(int from, int to, int sp, int rp, int total, int step, int every) {
    int *buffer = t_alloc(sizeof(int) * (size_t)(total * step));
    int *in = t_alloc(sizeof(int) * (size_t)(total * step));
    MPI_Datatype type = MPI_INT;
    if (step > 1) {
        OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * step, &type));
        OK(MPI_Type_commit(&type));
    }
    MPI_Request out = MPI_REQUEST_NULL, into = MPI_REQUEST_NULL;
    if (t_rank == from)
        OK(MPI_Psend_init(buffer, sp, total / sp, type, to, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    if (t_rank == to)
        OK(MPI_Precv_init(in, rp, total / rp, type, from, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &into));
    for (int round = 0; round < ROUNDS; round++) {
        /* Some rounds are as every program has them: what comes behind them has to fit as well. */
        int is_dependent = round % every == 0, ready = 0;
        for (int i = 0; i < total; i++)
            buffer[i * step] = value(round, from, i);
        memset(in, 0xee, sizeof(int) * (size_t)(total * step));
        if (t_rank == from)
            OK(MPI_Start(&out));
        if (t_rank == to)
            OK(MPI_Start(&into));
        for (int part = 0; is_dependent && part < rp; part++) {
            /* As many partitions of the sender as this one takes. */
            int needed = (sp * (part + 1) + rp - 1) / rp;
            if (t_rank == from)
                for (; ready < needed; ready++)
                    OK(MPI_Pready(ready, out));
            if (t_rank == to) {
                await_part(into, part);
                check_part(in, step, round, from, total / rp, part);
                if (from != to)
                    OK(MPI_Send(NULL, 0, MPI_INT, from, 8, MPI_COMM_WORLD));
            }
            if (t_rank == from && from != to)
                OK(MPI_Recv(NULL, 0, MPI_INT, to, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        if (t_rank == from && ready < sp)
            OK(MPI_Pready_range(ready, sp - 1, out));
        MPI_Status status;
        if (t_rank == from)
            OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        if (t_rank == to) {
            OK(MPI_Wait(&into, &status));
            CHECK_STATUS(status, from, 4, total * (int)sizeof(int));
            for (int part = 0; part < rp; part++)
                check_part(in, step, round, from, total / rp, part);
        }
    }
    if (t_rank == from)
        OK(MPI_Request_free(&out));
    if (t_rank == to)
        OK(MPI_Request_free(&into));
    if (step > 1)
        OK(MPI_Type_free(&type));
    free(buffer);
    free(in);
}

/* The receiver asks for long before anything is ready, and is not answered by this round. */
static void late(int from, int to) {
    int buffer[8], in[8], flag;
    MPI_Request out = MPI_REQUEST_NULL, into = MPI_REQUEST_NULL;
    if (t_rank == from)
        OK(MPI_Psend_init(buffer, 8, 1, MPI_INT, to, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    if (t_rank == to)
        OK(MPI_Precv_init(in, 8, 1, MPI_INT, from, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &into));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++)
            buffer[i] = value(round, from, i);
        if (t_rank == to) {
            OK(MPI_Start(&into));
            double end = MPI_Wtime() + 0.01;
            do {
                OK(MPI_Parrived(into, 3, &flag));
                CHECK(!flag);
            } while (MPI_Wtime() < end);
            OK(MPI_Send(NULL, 0, MPI_INT, from, 8, MPI_COMM_WORLD));
            OK(MPI_Wait(&into, MPI_STATUS_IGNORE));
            check_part(in, 1, round, from, 8, 0);
        }
        if (t_rank == from) {
            OK(MPI_Recv(NULL, 0, MPI_INT, to, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Start(&out));
            OK(MPI_Pready_range(0, 7, out));
            OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        }
    }
    if (t_rank == from)
        OK(MPI_Request_free(&out));
    if (t_rank == to)
        OK(MPI_Request_free(&into));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    static const int cuts[][3] = {{6, 3, 12}, {3, 6, 12}, {5, 7, 70}, {16, 16, 160}, {4, 2, 80000}, {6, 4, 600000}};
    int last = t_size - 1;
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
        for (int step = 1; step < 3; step++)
            for (int every = 1; every < 4; every++) {
                in_turn(0, last, cuts[c][0], cuts[c][1], cuts[c][2], step, every);
                in_turn(last, last, cuts[c][0], cuts[c][1], cuts[c][2], step, every);
            }
    if (last > 0)
        late(0, last);
    return t_end();
}
