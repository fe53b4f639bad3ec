/* MPI_THREAD_MULTIPLE on cores that compute: a token goes round four threads of each of two ranks,
 * while each of their two cores has a process that never waits. A thread that spins or yields for
 * long keeps the core from the one that has the token, or gets behind those processes by a time
 * slice; one that sleeps is woken at once. How long that takes depends on the machine and on what
 * else it does, so it is compared with the same over sockets, where the kernel puts to sleep and
 * wakes; the two alternate.
 * np: 2
 * one-host: what it is compared with are sockets inside a host
 * not-on: mpich (yields for longer)
 * timeout: 300
 */
#define _GNU_SOURCE
#include "../tern_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 50, PARTS = 11, TIMES_MOST = 10 };

static MPI_Comm inner;
static int sockets[THREADS];
static cpu_set_t cores;
static pid_t busy[2];
static int busy_count;

/* Two cores are all this rank has from here on, the same two as the other one. */
static void take_two_cores(void) {
    cpu_set_t allowed;
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    CPU_ZERO(&cores);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&cores) < 2; core++)
        if (CPU_ISSET(core, &allowed))
            CPU_SET(core, &cores);
    CHECK(sched_setaffinity(0, sizeof cores, &cores) == 0);
}

/* A process for each of them computes until rank 0 ends or stops it. */
static void compute_beside(void) {
    pid_t parent = getpid();
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &cores))
            continue;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof one, &one);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (getppid() == parent)
                for (volatile int i = 0; i < 1000000; i++)
                    ;
            _exit(0);
        }
        busy[busy_count++] = child;
    }
}

static void stop_computing(void) {
    for (int i = 0; i < busy_count; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
}

/* A socket between each thread and its partner; the address has no file. */
static void connect_threads(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = -1, name = (int)getpid();
    OK(MPI_Bcast(&name, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tern-crowded-%d", name);
    if (t_rank == 0) {
        listener = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
        CHECK(listen(listener, THREADS) == 0);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int t = 0; t < THREADS; t++) {
        if (t_rank == 0) {
            sockets[t] = accept(listener, NULL, NULL);
        } else {
            sockets[t] = socket(AF_UNIX, SOCK_STREAM, 0);
            CHECK(connect(sockets[t], (struct sockaddr *)&address, sizeof address) == 0);
        }
        CHECK(sockets[t] >= 0);
    }
    if (t_rank == 0)
        close(listener);
}

/* The token goes from thread t of rank 0 to thread t of rank 1, and from there to thread t + 1 of
 * rank 0: to whom the thread `t` of this rank hands it on. */
static int next_of(int t) {
    return t_rank == 0 ? t : (t + 1) % THREADS;
}

static void *by_socket(void *number) {
    int t = (int)(intptr_t)number, in = -1;
    for (int round = 0; round < ROUNDS; round++) {
        if (t_rank == 0 && t == 0)
            CHECK_EQ(write(sockets[next_of(t)], &round, sizeof round), sizeof round);
        CHECK_EQ(read(sockets[t], &in, sizeof in), sizeof in);
        CHECK_EQ(in, round);
        if (t_rank != 0 || t != 0)
            CHECK_EQ(write(sockets[next_of(t)], &round, sizeof round), sizeof round);
    }
    return NULL;
}

static void *by_message(void *number) {
    int t = (int)(intptr_t)number, in = -1, peer = 1 - t_rank;
    for (int round = 0; round < ROUNDS; round++) {
        if (t_rank == 0 && t == 0)
            OK(MPI_Send(&round, 1, MPI_INT, peer, next_of(t), inner));
        OK(MPI_Recv(&in, 1, MPI_INT, peer, t, inner, MPI_STATUS_IGNORE));
        CHECK_EQ(in, round);
        if (t_rank != 0 || t != 0)
            OK(MPI_Send(&round, 1, MPI_INT, peer, next_of(t), inner));
    }
    return NULL;
}

static double timed(void *(*exchange)(void *)) {
    pthread_t threads[THREADS];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    double begun = MPI_Wtime();
    for (intptr_t t = 0; t < THREADS; t++)
        CHECK(pthread_create(&threads[t], NULL, exchange, (void *)t) == 0);
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_join(threads[t], NULL) == 0);
    return MPI_Wtime() - begun;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int provided = -1;
    double sockets_s[PARTS], messages_s[PARTS];
    take_two_cores();
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    t_started();
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &inner));
    connect_threads();
    if (t_rank == 0)
        compute_beside();
    for (int part = 0; part < PARTS; part++) {
        sockets_s[part] = timed(by_socket);
        messages_s[part] = timed(by_message);
    }
    stop_computing();
    qsort(sockets_s, PARTS, sizeof *sockets_s, ascending);
    qsort(messages_s, PARTS, sizeof *messages_s, ascending);
    double ours = messages_s[PARTS / 2], theirs = sockets_s[PARTS / 2];
    if (ours > TIMES_MOST * theirs)
        t_fail(__FILE__, __LINE__, "%d rounds take %.1f ms, over sockets %.1f ms", ROUNDS, ours * 1e3, theirs * 1e3);
    for (int t = 0; t < THREADS; t++)
        close(sockets[t]);
    OK(MPI_Comm_free(&inner));
    return t_end();
}
