/* Cancelling sends (MPI 5.0 section 3.8.4): whoever waits for a cancelled send gets
 * on whatever others do; its message either was received or never was.
 * np: 2+
 * args: plain
 * args: frames
 * not-on: mpich (does not cancel sends)
 * not-on: ompi (does not cancel sends)
 */
#include "../tern_test.h"

enum { LONG = 3 << 20, QUEUED = 200 }; /* what a socket takes at once cannot be cancelled */
static char out[LONG], in[LONG];

/* Waits for a request that is cancelled; whether that took effect. */
static int cancelled(MPI_Request *request) {
    int flag;
    MPI_Status status;
    OK(MPI_Cancel(request));
    OK(MPI_Wait(request, &status));
    CHECK(*request == MPI_REQUEST_NULL);
    OK(MPI_Test_cancelled(&status, &flag));
    return flag;
}

/* Nobody receives, and nobody is inside MPI to hear of it. */
static void without_a_receive(int bytes, int synchronous) {
    MPI_Request request;
    if (t_rank == 0) {
        OK((synchronous ? MPI_Issend : MPI_Isend)(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request));
        CHECK(cancelled(&request));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 1) {
        int flag;
        OK(MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* The next message is the first that a receive gets. */
    if (t_rank == 0) {
        out[0] = 77;
        OK(MPI_Send(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
        out[0] = 0;
    } else if (t_rank == 1) {
        MPI_Status status;
        int count;
        OK(MPI_Recv(in, LONG, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_CHAR, &count));
        CHECK_EQ(count, bytes);
        CHECK(bytes == 0 || in[0] == 77);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Sender and receiver cancel at once: both say that it was received, or neither. */
static void against_a_receive(int bytes, int synchronous) {
    int got = -1, theirs = -1;
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 0) {
        OK((synchronous ? MPI_Issend : MPI_Isend)(out, bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request));
        got = !cancelled(&request);
        OK(MPI_Recv(&theirs, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(theirs <= got);
        /* What was sent and not received waits for a receive. */
        int left = got && !theirs;
        OK(MPI_Send(&left, 1, MPI_INT, 1, 4, MPI_COMM_WORLD));
    } else if (t_rank == 1) {
        int left;
        OK(MPI_Irecv(in, LONG, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &request));
        got = !cancelled(&request);
        OK(MPI_Send(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
        OK(MPI_Recv(&left, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (left)
            OK(MPI_Recv(in, LONG, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

/* More messages than there is room for on the way: those that wait are taken back. */
static void queued(void) {
    static MPI_Request requests[QUEUED];
    int sent = 0;
    if (t_rank == 0) {
        for (int i = 0; i < QUEUED; i++)
            OK(MPI_Isend(&out[i], 1, MPI_CHAR, 1, 5, MPI_COMM_WORLD, &requests[i]));
        for (int i = QUEUED - 1; i >= 0; i--)
            sent += !cancelled(&requests[i]);
        OK(MPI_Send(&sent, 1, MPI_INT, 1, 6, MPI_COMM_WORLD));
    } else if (t_rank == 1) {
        OK(MPI_Recv(&sent, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < sent; i++)
            OK(MPI_Recv(in, 1, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        int flag;
        OK(MPI_Iprobe(0, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "frames") == 0)
        setenv("TERN_SINGLE_COPY", "0", 1);
    t_begin(&argc, &argv);
    int lengths[] = {0, 8, 50000, LONG};
    for (int i = 0; i < 4; i++) {
        without_a_receive(lengths[i], 1);
        if (lengths[i] == LONG)
            without_a_receive(lengths[i], 0);
        for (int round = 0; round < 50; round++)
            against_a_receive(lengths[i], round & 1);
    }
    queued();
    return t_end();
}
