/* MPI_THREAD_MULTIPLE: a thread that sleeps inside MPI is woken when what it waits for happens,
 * whatever other threads of its rank do meanwhile: a message comes, another thread completes
 * its request, or takes the message in while it makes progress for itself. A wake-up that is
 * lost costs a whole sleep, 100 ms with some implementations: half of the events may be late by
 * a small part of that, whatever else the machine does.
 * np: 2
 * args: message
 * args: taken
 * args: general
 * args: cancel
 * timeout: 120
 */
#include "../tern_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { EVENTS = 25, PAUSE_US = 30000 };

static double late[EVENTS];
static MPI_Comm inner;
static _Atomic int over, taken;
static MPI_Request request;
/* When the event happened, by the clock of the host. */
static _Atomic double happened;

static int query(void *extra, MPI_Status *status) {
    (void)extra;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int nothing(void *extra) {
    (void)extra;
    return MPI_SUCCESS;
}

static int cancelled(void *extra, int complete) {
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

/* Waits for messages that carry the time when they were sent. */
static void *receiver(void *unused) {
    (void)unused;
    for (int i = 0; i < EVENTS; i++) {
        double sent = 0;
        OK(MPI_Recv(&sent, 1, MPI_DOUBLE, 1, i, inner, MPI_STATUS_IGNORE));
        late[i] = MPI_Wtime() - sent;
    }
    over = 1;
    return NULL;
}

static void *sender(void *unused) {
    (void)unused;
    for (int i = 0; i < EVENTS; i++) {
        usleep(PAUSE_US + 1000 * (i % 7));
        double now = MPI_Wtime();
        OK(MPI_Send(&now, 1, MPI_DOUBLE, 0, i, inner));
    }
    return NULL;
}

/* Completes or cancels the request the main thread waits for. */
static void *completer(void *general) {
    for (int i = 0; i < EVENTS; i++) {
        while (taken != i + 1)
            usleep(1000);
        usleep(PAUSE_US);
        happened = MPI_Wtime();
        if (general)
            OK(MPI_Grequest_complete(request));
        else
            OK(MPI_Cancel(&request));
    }
    return NULL;
}

static void wait_for_completer(int general) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, completer, general ? &thread : NULL) == 0);
    for (int i = 0; i < EVENTS; i++) {
        int none;
        MPI_Request mine;
        if (general)
            OK(MPI_Grequest_start(query, nothing, cancelled, NULL, &mine));
        else
            OK(MPI_Irecv(&none, 1, MPI_INT, MPI_ANY_SOURCE, 99, inner, &mine));
        request = mine;
        taken = i + 1;
        OK(MPI_Wait(&mine, MPI_STATUS_IGNORE));
        late[i] = MPI_Wtime() - happened;
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int provided = -1;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    t_started();
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    const char *how = argc > 1 ? argv[1] : "message";
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &inner));
    if (strcmp(how, "general") == 0 || strcmp(how, "cancel") == 0) {
        wait_for_completer(strcmp(how, "general") == 0);
    } else {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, t_rank == 0 ? receiver : sender, NULL) == 0);
        while (t_rank == 0 && !over) {
            int flag;
            if (strcmp(how, "message") == 0) {
                OK(MPI_Barrier(MPI_COMM_SELF));
                usleep(3000);
            } else { /* looks so often that it is the one that takes most messages in */
                OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
                usleep(50);
            }
        }
        CHECK(pthread_join(thread, NULL) == 0);
    }
    qsort(late, EVENTS, sizeof late[0], ascending);
    if (late[EVENTS / 2] > 0.015)
        t_fail(__FILE__, __LINE__, "half of the events were seen %.1f ms late or later", late[EVENTS / 2] * 1e3);
    OK(MPI_Comm_free(&inner));
    return t_end();
}
