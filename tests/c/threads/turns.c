/* MPI_THREAD_MULTIPLE: a thread that tests in a loop leaves room for others. Meanwhile another
 * one does short operations, and ends the loop by the last of them; and of several threads that do
 * the same none gets far more or far less than its share.
 * np: 1,2
 * timeout: 120
 */
#include "../tern_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 8, OPERATIONS = 2000, TOGETHER_US = 500000 };

static _Atomic int over;
static long done[THREADS];
static pthread_barrier_t ready;

static void one_message(int tag) {
    int out = tag, in = -1;
    MPI_Request request;
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &request));
    OK(MPI_Send(&out, 1, MPI_INT, 0, tag, MPI_COMM_SELF));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(in, tag);
}

static void *worker(void *unused) {
    (void)unused;
    for (int i = 0; i < OPERATIONS; i++)
        one_message(1);
    int last = 1;
    OK(MPI_Send(&last, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
    return NULL;
}

/* For many turns of the system's scheduler, which nobody's share depends on then. */
static void *sharer(void *argument) {
    int me = (int)(intptr_t)argument;
    pthread_barrier_wait(&ready);
    for (; !over; done[me]++)
        one_message(10 + me);
    return NULL;
}

int main(int argc, char **argv) {
    int provided = -1;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    t_started();
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    MPI_Request request;
    int last = 0, flag = 0;
    long tests = 0;
    OK(MPI_Irecv(&last, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
    CHECK(pthread_create(&threads[0], NULL, worker, NULL) == 0);
    for (; !flag; tests++)
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(pthread_join(threads[0], NULL) == 0);
    if (getenv("VERBOSE"))
        fprintf(stderr, "%ld tests for %d operations\n", tests, OPERATIONS);
    CHECK(pthread_barrier_init(&ready, NULL, THREADS + 1) == 0);
    for (intptr_t t = 0; t < THREADS; t++)
        CHECK(pthread_create(&threads[t], NULL, sharer, (void *)t) == 0);
    pthread_barrier_wait(&ready);
    double t0 = MPI_Wtime();
    usleep(TOGETHER_US);
    over = 1;
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_join(threads[t], NULL) == 0);
    double t1 = MPI_Wtime();
    long least = done[0], most = done[0], sum = 0;
    for (int t = 0; t < THREADS; t++) {
        least = done[t] < least ? done[t] : least;
        most = done[t] > most ? done[t] : most;
        sum += done[t];
    }
    if (getenv("VERBOSE"))
        fprintf(stderr, "shares from %ld to %ld, %.2f us each\n", least, most, (t1 - t0) * 1e6 / sum);
    if (least * 10 < most)
        t_fail(__FILE__, __LINE__, "one thread did %ld operations, another one %ld", least, most);
    return t_end();
}
