/* Loads the library, begins and ends MPI, unloads the library, and goes on until the file exists.
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
    if (argc != 3 || !(library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))) {
        fprintf(stderr, "unload: %s\n", dlerror());
        return 2;
    }
    int (*init)(int *, char ***) = entry("MPI_Init");
    int (*finalize)(void) = entry("MPI_Finalize");
    init(&argc, &argv);
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
