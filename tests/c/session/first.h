/* Processes of a job that know of each other without MPI: by a file, which the first of them makes. */
#ifndef FIRST_H
#define FIRST_H

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static char first_file[256];

/* Whether this process comes first. Ranks are children of one mpiexec. */
static inline int first_is_me(void) {
    const char *dir = getenv("TMPDIR");
    snprintf(first_file, sizeof first_file, "%s/tern-first-%ld", dir ? dir : "/tmp", (long)getppid());
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
