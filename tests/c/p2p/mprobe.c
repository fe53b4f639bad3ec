/* Matched probes: a matched message is out of everybody else's reach, and may be
 * received later and out of order, by Mrecv and Imrecv. */
#include "tern_test.h"

static void null_messages(void) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Request request;
    int flag = 0, dummy;
    OK(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Mrecv(&dummy, 1, MPI_INT, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL);
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Improbe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &message, &status));
    CHECK(flag);
    CHECK(message == MPI_MESSAGE_NO_PROC);
    OK(MPI_Imrecv(&dummy, 1, MPI_INT, &message, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Improbe(MPI_ANY_SOURCE, 70, MPI_COMM_WORLD, &flag, &message, &status));
    CHECK(!flag);
}

/* Each neighbour message is matched first; then the matched ones are received last to first. */
static void reversed(int bytes) {
    enum { N = 6 };
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    unsigned char *out = t_alloc((size_t)bytes * N), *in = t_alloc((size_t)bytes);
    MPI_Request sends[N];
    MPI_Message messages[N];
    MPI_Status status;
    for (int i = 0; i < N; i++) {
        t_fill(out + (size_t)bytes * (size_t)i, (size_t)bytes, (uint64_t)(t_rank * N + i));
        OK(MPI_Isend(out + (size_t)bytes * (size_t)i, bytes, MPI_BYTE, next, 5, MPI_COMM_WORLD, &sends[i]));
    }
    for (int i = 0; i < N; i++) {
        if (i % 2) {
            int flag = 0;
            while (!flag)
                OK(MPI_Improbe(i % 3 ? previous : MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &messages[i], &status));
        } else {
            OK(MPI_Mprobe(previous, i % 4 ? MPI_ANY_TAG : 5, MPI_COMM_WORLD, &messages[i], &status));
        }
        CHECK(messages[i] != MPI_MESSAGE_NULL);
        CHECK_STATUS(status, previous, 5, bytes);
    }
    int flag = 1;
    OK(MPI_Iprobe(previous, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* nobody may be in the next round before all have looked */
    for (int i = N - 1; i >= 0; i--) {
        memset(in, 0, (size_t)bytes);
        if (i % 2) {
            OK(MPI_Mrecv(in, bytes, MPI_BYTE, &messages[i], &status));
        } else {
            MPI_Request request;
            OK(MPI_Imrecv(in, bytes, MPI_BYTE, &messages[i], &request));
            CHECK(messages[i] == MPI_MESSAGE_NULL);
            OK(MPI_Wait(&request, &status));
        }
        CHECK(messages[i] == MPI_MESSAGE_NULL);
        CHECK_STATUS(status, previous, 5, bytes);
        CHECK_FILL(in, bytes, (uint64_t)(previous * N + i));
    }
    OK(MPI_Waitall(N, sends, MPI_STATUSES_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* or a faster neighbour's next messages would be seen */
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    null_messages();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int sizes[] = {0, 1, 64, 5000, 200000, 1048576};
    for (int s = 0; s < 6; s++)
        reversed(sizes[s]);
    return t_end();
}
