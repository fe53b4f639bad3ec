/* MPI_THREAD_MULTIPLE: a thread blocked in a receive, a probe or a wait does not keep
 * others from communicating: the message it waits for is sent by another thread of the
 * same rank only after traffic of its own. */
// timeout: 120
#include "tern_test.h"

#include <pthread.h>

enum { ROUNDS = 50 };

static MPI_Comm inner;

static void *waiter(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        int value = -1;
        MPI_Status status;
        MPI_Message message;
        MPI_Request request;
        switch (round % 4) {
        case 0:
            OK(MPI_Recv(&value, 1, MPI_INT, t_rank, 0, inner, &status));
            break;
        case 1:
            OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, inner, &status));
            OK(MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, inner, &status));
            break;
        case 2:
            OK(MPI_Mprobe(MPI_ANY_SOURCE, 0, inner, &message, &status));
            OK(MPI_Mrecv(&value, 1, MPI_INT, &message, &status));
            break;
        default:
            OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, inner, &request));
            OK(MPI_Waitall(1, &request, &status));
        }
        CHECK_EQ(value, round);
        OK(MPI_Send(&round, 1, MPI_INT, t_rank, 1, MPI_COMM_WORLD));
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided = -1;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    t_started();
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    pthread_t thread;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &inner));
    CHECK(pthread_create(&thread, NULL, waiter, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        int sum = 0, back = -1;
        OK(MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK_EQ(sum, round * t_size);
        OK(MPI_Send(&round, 1, MPI_INT, t_rank, 0, inner));
        OK(MPI_Recv(&back, 1, MPI_INT, t_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(back, round);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    OK(MPI_Comm_free(&inner));
    return t_end();
}
