/* Processes that are started by a job on two hosts: where they go, what they say, and what becomes of those that cannot be
 * started. Arguments: the two hosts as mpiexec knows them. Rank 0 is on the first. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 8

static void expect(int is_so, const char *what) {
    if (!is_so) {
        fprintf(stderr, "spread: not so: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

static void child(MPI_Comm parent) {
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length, rank, size, sum = 0;
    MPI_Comm both;
    MPI_Get_processor_name(name, &length);
    MPI_Send(name, sizeof name, MPI_CHAR, 0, 0, parent);
    MPI_Intercomm_merge(parent, 1, &both);
    MPI_Comm_rank(both, &rank);
    MPI_Comm_size(both, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    expect(sum == size * (size - 1) / 2, "the sum of all ranks");
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
}

/* How many of the processes are on the host of rank 0. */
static int meet(MPI_Comm children, int count, const char *own) {
    int rank, here = 0, sum = 0, size;
    MPI_Comm both;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 0 && i < count; i++) {
        char name[MPI_MAX_PROCESSOR_NAME];
        MPI_Recv(name, sizeof name, MPI_CHAR, i, 0, children, MPI_STATUS_IGNORE);
        here += strcmp(name, own) == 0;
    }
    MPI_Bcast(&here, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Intercomm_merge(children, 0, &both);
    MPI_Comm_size(both, &size);
    MPI_Comm_rank(both, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    expect(sum == size * (size - 1) / 2, "the sum of all ranks");
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&children);
    return here;
}

static int start(const char *program, int count, const char *host, const char *own) {
    MPI_Info info;
    MPI_Comm children;
    MPI_Info_create(&info);
    if (host != NULL)
        MPI_Info_set(info, "host", host);
    int result = MPI_Comm_spawn(program, MPI_ARGV_NULL, count, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    if (result != MPI_SUCCESS) {
        int class;
        MPI_Error_class(result, &class);
        expect(class == MPI_ERR_SPAWN, "the class of what cannot be started");
        return -1;
    }
    return meet(children, count, own);
}

int main(int argc, char **argv) {
    char own[MPI_MAX_PROCESSOR_NAME], both[200];
    int length, size;
    MPI_Comm parent, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(parent);
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(own, &length);
    snprintf(both, sizeof both, "%s,%s", argv[1], argv[2]);
    if (size == 2) /* both ranks are on the first host, which takes two: the others go to the second */
        expect(start(argv[0], 2, NULL, own) == 0, "a place on the host that has room");
    expect(start(argv[0], 2, argv[1], own) == 2, "processes on the first host");
    expect(start(argv[0], 2, argv[2], own) == 0, "processes on the second host");
    int here = start(argv[0], MOST, both, own);
    expect(here > 0 && here < MOST, "processes on both hosts");
    expect(start("./no-such-program", 2, argv[2], own) < 0, "no program that is not there");
    expect(start(argv[0], 1, "elsewhere.invalid", own) < 0, "no host that the job does not have");
    /* One program of two cannot be started: neither is. */
    char *commands[] = {argv[0], "./no-such-program"};
    int counts[] = {2, 1}, codes[3];
    MPI_Info infos[2];
    for (int i = 0; i < 2; i++) {
        MPI_Info_create(&infos[i]);
        MPI_Info_set(infos[i], "host", argv[i + 1]);
    }
    expect(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &children, codes) != MPI_SUCCESS,
           "all or none");
    /* Another directory, and the program looked for there. */
    commands[1] = strrchr(argv[0], '/') + 1;
    char place[4096];
    snprintf(place, sizeof place, "%.*s", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
    MPI_Info_set(infos[1], "wdir", "/");
    MPI_Info_set(infos[1], "path", place);
    counts[1] = 2;
    expect(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE)
               == MPI_SUCCESS, "programs on a host each");
    expect(meet(children, 4, own) == 2, "two on each host");
    for (int i = 0; i < 2; i++)
        MPI_Info_free(&infos[i]);
    MPI_Finalize();
    printf("rank done\n");
    return 0;
}
