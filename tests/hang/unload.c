/* Loads the library, uses it, unloads it, and goes on for as long as the file does not exist.
 * usage: unload LIBRARY FILE */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Called by address, so that nothing links the library. */
static void *library;

static void *entry(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "unload: %s\n", dlerror());
        _exit(2);
    }
    return found;
}

int main(int argc, char **argv) {
    static char big[1 << 20];
    if (argc != 3 || !(library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))) {
        fprintf(stderr, "unload: %s\n", dlerror());
        return 2;
    }
    int (*init)(int *, char ***) = entry("MPI_Init");
    int (*finalize)(void) = entry("MPI_Finalize");
    int (*rank_of)(MPI_Comm, int *) = entry("MPI_Comm_rank");
    int (*irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = entry("MPI_Irecv");
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm) = entry("MPI_Send");
    int (*wait_for)(MPI_Request *, MPI_Status *) = entry("MPI_Wait");
    int rank;
    MPI_Request request;
    init(&argc, &argv);
    rank_of(MPI_COMM_WORLD, &rank);
    /* A long receive is left pending: the library's thread begins, and watches forks. */
    irecv(big, sizeof big, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &request);
    usleep(50000);
    static char other[1 << 20];
    send(other, sizeof other, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD);
    wait_for(&request, MPI_STATUS_IGNORE);
    finalize();
    /* What it has registered with the system may be called until the process ends: it stays. */
    if (dlclose(library) != 0 || !dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD))
        return 3;
    printf("unloaded\n");
    fflush(stdout);
    while (access(argv[2], F_OK) != 0)
        usleep(10000);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 4;
}
