/* Programs that a report must leave alone, by name; those with a file end when it exists. What is
 * checked about them is in reports.py. */
#include <mpi.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static int rank, size, value;
static const char *file;
static const MPI_Comm world = MPI_COMM_WORLD;

static int is_over(void) { return access(file, F_OK) == 0; }

static void finish(void) {
    MPI_Barrier(world);
    MPI_Finalize();
    if (rank == 0)
        puts("a good end");
    exit(0);
}

static void whole(int result, const char *call) {
    if (result != 0) {
        printf("%s ended early: %s\n", call, strerror(errno));
        exit(3);
    }
}

/* System calls that no flag of a signal handler restarts. */
static void sleeps(void) {
    if (rank != 0)
        MPI_Recv(&value, 1, MPI_INT, 0, 7, world, MPI_STATUS_IGNORE);
    while (rank == 0 && !is_over()) {
        struct timespec time = {0, 30000000};
        struct timeval limit = {0, 30000};
        whole(poll(NULL, 0, 30), "poll");
        whole(nanosleep(&time, NULL), "nanosleep");
        whole(select(0, NULL, NULL, NULL, &limit), "select");
    }
    for (int to = 1; rank == 0 && to < size; to++)
        MPI_Send(&value, 1, MPI_INT, to, 7, world);
    finish();
}

/* The program's own use of a signal is none of a launcher's business. */
static void by_default(void) {
    signal(SIGUSR1, SIG_DFL);
    sleeps();
}

static void execute(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 7, world, MPI_STATUS_IGNORE);
    else
        execlp("sleep", "sleep", "1000", (char *)NULL);
}

/* All get on, though each waits most of the time. */
static void ring(void) {
    int in, over = 0;
    while (!over) {
        for (int i = 0; i < 100; i++)
            MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % size, 1, &in, 1, MPI_INT, (rank + size - 1) % size, 1,
                         world, MPI_STATUS_IGNORE);
        over = is_over();
        MPI_Bcast(&over, 1, MPI_INT, 0, world);
    }
    finish();
}

/* Barriers that some have left while others have not come to them. */
static void barriers(void) {
    MPI_Comm twin;
    int over = 0;
    MPI_Comm_dup(world, &twin);
    while (!over) {
        for (int i = 0; i < 100; i++) {
            MPI_Barrier(world);
            MPI_Barrier(twin);
            MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, world);
        }
        over = is_over();
        MPI_Bcast(&over, 1, MPI_INT, 0, world);
    }
    MPI_Comm_free(&twin);
    finish();
}

static void *read_line(void *stream) {
    char line[80];
    return fgets(line, sizeof line, stream);
}

/* A thread reads from a stream to which nothing is ever written: whoever flushes all streams waits for it. */
static void stream(void) {
    int ends[2];
    pthread_t thread;
    if (pipe(ends) != 0 || rank != 0)
        pause();
    FILE *reader = fdopen(ends[0], "r");
    pthread_create(&thread, NULL, read_line, reader);
    /* Long enough that the thread is in its read. */
    usleep(200000);
    printf("the last words");
    MPI_Abort(world, 9);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"sleeps", sleeps}, {"default", by_default}, {"exec", execute}, {"ring", ring},
    {"barriers", barriers}, {"stream", stream},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    file = argc > 2 ? argv[2] : "/nowhere";
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    fprintf(stderr, "asked: rank %d of %d should not come here\n", rank, size);
    return 1;
}
