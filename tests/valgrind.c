/* What a program does that tools look at, with nothing wrong in it: messages of all lengths both ways, by
 * all protocols of shared memory. Every byte that was received decides a branch, which is what memcheck
 * looks at. Arguments:
 *
 *     threads   two threads of each rank exchange at once
 *     away      the application computes while its messages are under way, so that the library's thread works
 *     session   a session comes first, so that a thread of the library meets the other rank
 *     handed    threads of a rank hand memory to each other, in order by nothing but messages
 *     race      something is wrong: two threads write a variable, which tools must find in spite of MPI */
#include "c/tern_test.h"

#include <pthread.h>
#include <unistd.h>

enum { LONGEST = 3 << 20 };

static MPI_Comm comms[2];
static long seen[2];
static int away;

static void exchange(MPI_Comm comm, int bytes, int late, long *count) {
    unsigned char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
    MPI_Request requests[2];
    int peer = 1 - t_rank;
    t_fill(out, (size_t)bytes, (uint64_t)(bytes + t_rank));
    /* Once the receive is first, once the message: then the other side copies. */
    if (t_rank == late)
        OK(MPI_Barrier(comm));
    OK(MPI_Irecv(in, bytes, MPI_BYTE, peer, 0, comm, &requests[0]));
    if (t_rank != late)
        OK(MPI_Barrier(comm));
    OK(MPI_Isend(out, bytes, MPI_BYTE, peer, 0, comm, &requests[1]));
    if (away)
        usleep(5000);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < bytes; i++)
        if (in[i] == t_byte((uint64_t)(bytes + peer), (size_t)i))
            *count += 1;
    free(out);
    free(in);
}

static void *all(void *argument) {
    int which = (int)(intptr_t)argument, lengths[] = {8, 1000, 20000, 100000, 1 << 20, LONGEST};
    for (int i = 0; i < 6; i++)
        for (int late = 0; late < 2; late++)
            exchange(comms[which], lengths[i], late, &seen[which]);
    return NULL;
}

/* What one thread writes and the next one reads; not atomic, for the order is what the test is about. */
static long memory[1 << 15];

/* Thread `which` of two takes turns with the other one; the turn is a message, short or long. */
static void *hand_over(void *argument) {
    int which = (int)(intptr_t)argument, bytes = (int)sizeof memory;
    char *turn = calloc(1, (size_t)bytes);
    for (int round = 0; round < 40; round++) {
        int length = round % 4 < 2 ? 1 : bytes;
        if (round % 2 != which) {
            OK(MPI_Recv(turn, length, MPI_BYTE, t_rank, round, comms[0], MPI_STATUS_IGNORE));
            continue;
        }
        for (int i = 0; i < 1 << 15; i++)
            CHECK_AT(i, memory[i]++, round);
        turn[0] = (char)round;
        OK(MPI_Send(turn, length, MPI_BYTE, t_rank, round, comms[0]));
    }
    free(turn);
    return NULL;
}

static int raced;

static void *race(void *argument) {
    raced++;
    return all(argument);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int provided, threads = strcmp(how, "threads") == 0, handed = strcmp(how, "handed") == 0,
                  wrong = strcmp(how, "race") == 0, several = threads || handed || wrong;
    void *(*does)(void *) = handed ? hand_over : wrong ? race : all;
    MPI_Session session = MPI_SESSION_NULL;
    if (strcmp(how, "session") == 0)
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Init_thread(&argc, &argv, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    t_started();
    CHECK_EQ(t_size, 2);
    away = strcmp(how, "away") == 0;
    for (int t = 0; t < 2; t++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    pthread_t other;
    if (several)
        CHECK(pthread_create(&other, NULL, does, (void *)1) == 0);
    does((void *)0);
    if (several)
        CHECK(pthread_join(other, NULL) == 0);
    for (int t = 0; t <= several && !handed; t++)
        CHECK_EQ(seen[t], 2L * (8 + 1000 + 20000 + 100000 + (1 << 20) + LONGEST));
    for (int t = 0; t < 2; t++)
        OK(MPI_Comm_free(&comms[t]));
    if (session != MPI_SESSION_NULL)
        OK(MPI_Session_finalize(&session));
    return t_end();
}
