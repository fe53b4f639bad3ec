/* A process that has opened a session gets to the others by a thread of the library. What that thread is to the program until then
 * and afterwards: it handles no signal of the program, does not mind what becomes of its environment, is not there in the child of
 * a fork, and is gone when the process is connected. */
// one-host: ranks on one host have one parent, by which they know each other
// not-on: mpich (MPI_Session_init waits for all processes)
// not-on: ompi (MPI_Session_init waits for all processes)
#include "../tern_test.h"
#include "first.h"
#include "made_of.h"
#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static pid_t handled_in;

static void handler(int number) {
    (void)number;
    handled_in = (pid_t)syscall(SYS_gettid);
}

/* What a file of a thread says behind a word; nothing where the thread has ended meanwhile. */
static void said(const char *thread, const char *file, const char *word, char *text, size_t room) {
    char path[128], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", thread, file);
    FILE *from = fopen(path, "r");
    text[0] = 0;
    while (from && fgets(line, sizeof line, from))
        if (strncmp(line, word, strlen(word)) == 0)
            snprintf(text, room, "%s", line + strlen(word));
    if (from)
        fclose(from);
}

/* Threads of this process that meet others, each of which blocks the signals that a program may send. */
static int meeting(void) {
    int found = 0;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    while ((entry = readdir(tasks))) {
        char name[64], mask[64];
        said(entry->d_name, "comm", "", name, sizeof name);
        said(entry->d_name, "status", "SigBlk:", mask, sizeof mask);
        if (strcmp(name, "tern-meet\n") != 0 || !mask[0])
            continue;
        found++;
        unsigned long long blocked = strtoull(mask, NULL, 16);
        int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            CHECK(blocked >> (numbers[i] - 1) & 1);
    }
    closedir(tasks);
    return found;
}

/* The kernel may show a thread for a moment longer than it can be waited for; the test's time ends a wait in vain. */
static void until_meeting(int threads) {
    while (meeting() != threads)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* Children that call nothing of MPI but what is allowed at any time, and one that is another program. */
static void forks(void) {
    for (int i = 0; i < 20; i++) {
        int status, up;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            free(malloc(100000));
            if (MPI_Initialized(&up) != MPI_SUCCESS || up || meeting() != 0)
                _exit(1);
            if (i % 2)
                _exit(0);
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_EQ(status, 0);
    }
    CHECK_EQ(system("true"), 0);
}

/* The list of variables moves as it grows. */
static void changes_environment(void) {
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "TEST_MEETS_%d", i);
        CHECK(setenv(name, "something that has some length", 1) == 0);
    }
}

int main(void) {
    MPI_Session session;
    struct sigaction action = {.sa_handler = handler};
    int is_first = first_is_me(), size, one = 1, sum = 0;
    MPI_Group world;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    if (!is_first)
        first_has_told();
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    changes_environment();
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_rank(world, &t_rank));
    OK(MPI_Group_size(world, &size));
    OK(MPI_Group_free(&world));
    if (is_first) {
        /* Nobody else has come. A thread gives itself its name. */
        until_meeting(size > 1);
        sigset_t none;
        CHECK(sigemptyset(&none) == 0 && pthread_sigmask(SIG_SETMASK, &none, NULL) == 0);
        CHECK(kill(getpid(), SIGUSR1) == 0);
        while (!handled_in)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        CHECK_EQ(handled_in, getpid());
    }
    forks();
    if (is_first)
        first_tells(1);
    MPI_Comm all = made_of(session, "mpi://WORLD", "all");
    until_meeting(0);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK_EQ(sum, size);
    forks();
    OK(MPI_Barrier(all));
    if (is_first)
        unlink(first_file);
    OK(MPI_Comm_free(&all));
    OK(MPI_Session_finalize(&session));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
