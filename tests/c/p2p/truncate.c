/* A message longer than the receive is MPI_ERR_TRUNCATE at the receiver, never a write
 * beyond its buffer; the sender and what follows are not affected. */
// np: 2+
#include "tern_test.h"

static void one(int sent, int room, int early, int how) {
    unsigned char *buffer = t_alloc((size_t)(sent > room ? sent : room) + 64);
    MPI_Status status;
    MPI_Request request;
    if (t_rank == 1) {
        t_fill(buffer, (size_t)sent, 7);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Send(buffer, sent, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
        OK(MPI_Send(buffer, sent, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
    } else if (t_rank == 0) {
        memset(buffer, 0xCC, (size_t)sent + 64);
        if (early)
            OK(MPI_Irecv(buffer, room, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (!early && how == 0) {
            FAILS(MPI_Recv(buffer, room, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
        } else if (!early && how == 1) {
            MPI_Message message;
            OK(MPI_Mprobe(1, 1, MPI_COMM_WORLD, &message, &status));
            FAILS(MPI_Mrecv(buffer, room, MPI_BYTE, &message, &status), MPI_ERR_TRUNCATE);
        } else {
            if (!early)
                OK(MPI_Irecv(buffer, room, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
            if (how == 0) {
                FAILS(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE);
            } else {
                FAILS(MPI_Waitall(1, &request, &status), MPI_ERR_IN_STATUS);
                FAILS(status.MPI_ERROR, MPI_ERR_TRUNCATE);
            }
        }
        CHECK_EQ(status.MPI_SOURCE, 1);
        CHECK_EQ(status.MPI_TAG, 1);
        CHECK_UNTOUCHED(buffer + room, sent + 64 - room, 0xCC);
        OK(MPI_Recv(buffer, sent, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &status));
        CHECK_STATUS(status, 1, 2, sent);
        CHECK_FILL(buffer, sent, 7);
    } else {
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    free(buffer);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const int pairs[][2] = {{1, 0},         {8, 4},           {64, 63},       {5000, 10},
                            {20000, 19999}, {300000, 100000}, {300000, 1},    {3000000, 2999999}};
    for (int p = 0; p < 8; p++)
        for (int early = 0; early < 2; early++)
            for (int how = 0; how < 2; how++)
                one(pairs[p][0], pairs[p][1], early, how);
    return t_end();
}
