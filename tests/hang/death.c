/* All ranks say who they are and then wait in some way, in which one of them dies or leaves. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Long messages around the ring, until one rank is gone in the middle of one. */
static void transfer(int rank, int size, int delay_us) {
    enum { BYTES = 4 << 20 };
    static char out[BYTES], in[BYTES];
    struct itimerval timer = {{0, 0}, {0, delay_us}};
    if (rank == 1)
        setitimer(ITIMER_REAL, &timer, NULL);
    for (;;)
        MPI_Sendrecv(out, BYTES, MPI_CHAR, (rank + 1) % size, 0, in, BYTES, MPI_CHAR, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static MPI_Win win;

/* Waits for rank 1 in a window, whose lock rank 1 holds if that is what is waited for. */
static void in_window(const char *how) {
    MPI_Group all, group;
    int one = 1;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &one, &group);
    if (strncmp(how, "fence", 5) == 0)
        MPI_Win_fence(0, win);
    else if (strcmp(how, "start") == 0)
        MPI_Win_start(group, 0, win);
    else if (strcmp(how, "lock") == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
}

int main(int argc, char **argv) {
    int rank, size, value = 0;
    const char *how = argc > 1 ? argv[1] : "", *leave = argc > 2 ? argv[2] : "";
    if (strcmp(how, "fence-told") == 0)
        setenv("TERN_WIN", "active", 1); /* else ranks of one host meet by words */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *base;
    if (strcmp(how, "fence-told") == 0) /* the memory is not shared */
        MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    else
        MPI_Win_allocate(sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank == 1 && strcmp(how, "lock") == 0)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d is process %d\n", rank, (int)getpid());
    fflush(stdout);
    if (strcmp(how, "transfer") == 0)
        transfer(rank, size, atoi(leave));
    if (rank == 1) {
        if (strcmp(leave, "exit") == 0)
            exit(0);
        if (strcmp(leave, "fail") == 0)
            exit(3);
        if (strcmp(leave, "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 42);
        if (strcmp(leave, "crash") == 0)
            abort();
        for (;;)
            pause();
    }
    if (strcmp(how, "recv") == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (strcmp(how, "barrier") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (strcmp(how, "finalize") == 0)
        MPI_Finalize();
    else if (strcmp(how, "busy") == 0)
        for (;;)
            __asm__ volatile("");
    else
        in_window(how);
    for (;;)
        pause();
}
