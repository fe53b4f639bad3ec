/* Processes of a job that know of each other without MPI: by a file, which the first of them makes. */
#ifndef FIRST_H
#define FIRST_H

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static char first_file[256];

/* When a process was started, in ticks since the machine was. */
static inline unsigned long long first_started(pid_t pid) {
    char path[64], line[1024] = "";
    unsigned long long started = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
    fclose(file);
    /* The 22nd field; the name, which is the second one, may have spaces and brackets in it. */
    const char *rest = strrchr(line, ')');
    CHECK(rest != NULL && sscanf(rest + 1, " %*c%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%llu", &started) == 1);
    return started;
}

/* Whether this process comes first. Ranks are children of one mpiexec, of whose number there may have been another before, whose
 * job was killed and left its file. */
static inline int first_is_me(void) {
    const char *dir = getenv("TMPDIR");
    snprintf(first_file, sizeof first_file, "%s/tern-first-%ld-%llu", dir ? dir : "/tmp", (long)getppid(), first_started(getppid()));
    int file = open(first_file, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file >= 0)
        close(file);
    return file >= 0;
}

/* The first one tells the others a number above zero. */
static inline void first_tells(int number) {
    FILE *file = fopen(first_file, "w");
    CHECK(file != NULL);
    fprintf(file, "%d.\n", number);
    fclose(file);
}

/* Waits for that number; mpiexec's or the test's time ends a wait in vain. */
static inline int first_has_told(void) {
    for (;;) {
        int number = 0;
        char end = 0;
        FILE *file = fopen(first_file, "r");
        if (file && fscanf(file, "%d%c", &number, &end) == 2 && end == '.') {
            fclose(file);
            return number;
        }
        if (file)
            fclose(file);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
}

#endif
