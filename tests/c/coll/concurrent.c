/* Many non-blocking collectives at once, on one communicator and on several, completed in
 * another order than started, mixed with point-to-point traffic on the same ones. */
#include "coll_forms.h"

enum { DEPTH = 12, COUNT = 2000 };

static void on_one(MPI_Comm comm) {
    MPI_Request requests[DEPTH];
    int *out[DEPTH], *in[DEPTH];
    for (int d = 0; d < DEPTH; d++) {
        out[d] = ints((long long)COUNT * t_size);
        in[d] = blank((long long)COUNT * t_size);
        for (int i = 0; i < COUNT * t_size; i++)
            out[d][i] = item(t_rank, i) + d;
        if (d % 4 == 0)
            OK(MPI_Iallreduce(out[d], in[d], COUNT, MPI_INT, MPI_MIN, comm, &requests[d]));
        else if (d % 4 == 1)
            OK(MPI_Ialltoall(out[d], COUNT, MPI_INT, in[d], COUNT, MPI_INT, comm, &requests[d]));
        else if (d % 4 == 2)
            OK(MPI_Ibcast(t_rank == d % t_size ? out[d] : in[d], COUNT, MPI_INT, d % t_size, comm, &requests[d]));
        else
            OK(MPI_Iallgather(out[d], COUNT, MPI_INT, in[d], COUNT, MPI_INT, comm, &requests[d]));
    }
    /* A ring of messages passes while they run. */
    int got = -1;
    OK(MPI_Sendrecv(&t_rank, 1, MPI_INT, (t_rank + 1) % t_size, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                    MPI_STATUS_IGNORE));
    CHECK_EQ(got, (t_rank + t_size - 1) % t_size);
    /* Even ranks complete from the back, odd ones from the front. */
    for (int k = 0; k < DEPTH; k++)
        OK(MPI_Wait(&requests[t_rank % 2 ? k : DEPTH - 1 - k], MPI_STATUS_IGNORE));
    for (int d = 0; d < DEPTH; d++) {
        for (int i = 0; i < COUNT; i++) {
            if (d % 4 == 0) {
                int least = item(0, i);
                for (int r = 1; r < t_size; r++)
                    least = item(r, i) < least ? item(r, i) : least;
                CHECK_AT(i, in[d][i], least + d);
            } else if (d % 4 == 2) {
                if (t_rank != d % t_size)
                    CHECK_AT(i, in[d][i], item(d % t_size, i) + d);
            } else {
                for (int r = 0; r < t_size; r++)
                    CHECK_AT(i, in[d][r * COUNT + i], item(r, d % 4 == 1 ? (long long)t_rank * COUNT + i : i) + d);
            }
        }
        free(out[d]);
        free(in[d]);
    }
}

/* The same operation started on several communicators in different orders on different ranks. */
static void on_several(void) {
    MPI_Comm comms[4];
    MPI_Request requests[4];
    int in[4][8], out[4][8];
    for (int c = 0; c < 4; c++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]));
    for (int k = 0; k < 4; k++) {
        int c = (k + t_rank) % 4;
        for (int i = 0; i < 8; i++)
            out[c][i] = t_rank + c * i;
        OK(MPI_Iallreduce(out[c], in[c], 8, MPI_INT, MPI_SUM, comms[c], &requests[c]));
    }
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    for (int c = 0; c < 4; c++) {
        for (int i = 0; i < 8; i++)
            CHECK_AT(i, in[c][i], t_size * (t_size - 1) / 2 + t_size * c * i);
        OK(MPI_Comm_free(&comms[c]));
    }
}

/* A communicator freed while its collective runs: the operation still completes. */
static void freed_while_running(void) {
    MPI_Comm comm;
    MPI_Request request;
    int in = -1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Iallreduce(&t_rank, &in, 1, MPI_INT, MPI_SUM, comm, &request));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(in, t_size * (t_size - 1) / 2);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int round = 0; round < 3; round++)
        on_one(comm);
    OK(MPI_Comm_free(&comm));
    on_several();
    freed_while_running();
    return t_end();
}
