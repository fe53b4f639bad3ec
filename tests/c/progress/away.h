/* Ranks that compute: they wait for each other outside of MPI, in memory they
 * share. Whoever is held up there by a rank that makes no progress is held up
 * for ever. */
#ifndef AWAY_H
#define AWAY_H

#define _GNU_SOURCE
#include "../tern_test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic int *away_count;
static int away_rounds;

/* What the ranks share: a file without a name. */
__attribute__((unused)) static void away_start(void) {
    char name[64] = "/tmp/tern-away-XXXXXX";
    int fd = -1;
    if (t_rank == 0) {
        fd = mkstemp(name);
        CHECK(fd >= 0);
        CHECK_EQ(ftruncate(fd, 4096), 0);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (t_rank != 0)
        fd = open(name, O_RDWR);
    CHECK(fd >= 0);
    away_count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(away_count != MAP_FAILED);
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 0)
        unlink(name);
}

/* This rank has come to the end of what the others wait for. */
__attribute__((unused)) static void away_done(void) {
    atomic_fetch_add(away_count, 1);
}

/* Computes until so many ranks are done in this round. */
__attribute__((unused)) static void away_until(int done) {
    while (atomic_load(away_count) < away_rounds + done)
        sched_yield(); /* more ranks than cores: a core for those who work */
}

/* The next round: everybody is through with this one, in which `done` were done. */
__attribute__((unused)) static void away_next(int done) {
    MPI_Barrier(MPI_COMM_WORLD);
    away_rounds += done;
}

/* MPI_Init and away_start; arguments: "frames" keeps single copy off, "multiple" is the level. */
__attribute__((unused)) static void away_begin(int argc, char **argv) {
    int level = MPI_THREAD_SINGLE, provided;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "frames") == 0)
            setenv("TERN_SINGLE_COPY", "0", 1);
        if (strcmp(argv[i], "multiple") == 0)
            level = MPI_THREAD_MULTIPLE;
    }
    OK(MPI_Init_thread(&argc, &argv, level, &provided));
    t_started();
    away_start();
}

#endif
