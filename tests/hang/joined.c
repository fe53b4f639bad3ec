/* Two ranks of one job and those of another, which has joined them, have a window in common, in which the last one of these dies, and the others
 * with it. What the two have begun there ends with an error; a window of their own goes on; and both are freed. KIND WAY FILE ROLE, FILE being
 * where the name of the port is. */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 16, LONG = 20000, STAY = 2, ROUNDS = 300 };

static MPI_Comm all;
static MPI_Win cells;
static MPI_Group dead;
static MPI_Aint at;
static int process;
static char memory[BYTES], own[BYTES];
static const char *way;
static int rank, doomed; /* the last one */

static int is(const char *name) { return strcmp(way, name) == 0; }

static void says(const char *call, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = MPI_SUCCESS, length;
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
    }
    const char *what = class == MPI_SUCCESS ? "well" : class == MPI_ERR_PROC_ABORTED ? "aborted" : "failed";
    printf("rank %d: %s: %s: %s\n", rank, call, what, text);
    fflush(stdout);
}

/* The joined communicator: the two come first. */
static void meet(const char *file, int accepts) {
    char port[MPI_MAX_PORT_NAME] = "", next[4096];
    MPI_Comm others;
    snprintf(next, sizeof next, "%s.next", file);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (accepts) {
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            FILE *out = fopen(next, "w");
            fputs(port, out);
            fclose(out);
            rename(next, file);
        }
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others);
    } else {
        FILE *in;
        while ((in = fopen(file, "r")) == NULL)
            usleep(10000);
        if (fgets(port, sizeof port, in) == NULL)
            exit(1);
        fclose(in);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others);
    }
    MPI_Intercomm_merge(others, !accepts, &all);
    MPI_Comm_free(&others);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &doomed);
    doomed--;
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
}

static void make(const char *kind) {
    char *base = memory;
    MPI_Group group;
    if (strcmp(kind, "create") == 0)
        MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, all, &cells);
    else if (strcmp(kind, "allocate") == 0)
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, all, &base, &cells);
    else {
        MPI_Win_create_dynamic(MPI_INFO_NULL, all, &cells);
        MPI_Win_attach(cells, memory, BYTES);
        MPI_Get_address(memory, &at);
    }
    MPI_Bcast(&at, 1, MPI_AINT, doomed, all);
    MPI_Win_set_name(cells, "cells");
    MPI_Win_set_errhandler(cells, MPI_ERRORS_RETURN);
    MPI_Comm_group(all, &group);
    MPI_Group_incl(group, 1, &doomed, &dead);
    MPI_Group_free(&group);
}

/* What the one that dies has begun. */
static void prepare(void) {
    if (is("fence"))
        MPI_Win_fence(0, cells);
    if (rank == doomed && is("complete")) {
        MPI_Group group, two;
        MPI_Comm_group(all, &group);
        MPI_Group_incl(group, STAY, (int[]){0, 1}, &two);
        MPI_Win_post(two, 0, cells);
    }
    if (rank == doomed && is("held")) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, cells);
        MPI_Win_flush(0, cells);
    }
    if (rank < STAY && is("complete"))
        MPI_Win_start(dead, 0, cells);
    if (rank < STAY && is("unlock"))
        MPI_Win_lock(MPI_LOCK_SHARED, doomed, 0, cells);
    if (rank < STAY && (is("flush") || is("request")))
        MPI_Win_lock_all(0, cells);
    process = getpid();
    MPI_Bcast(&process, 1, MPI_INT, doomed, all);
    MPI_Barrier(all);
}

static void go_on_there(void) {
    static char got[LONG];
    if (is("fence") || is("complete") || is("unlock") || is("flush")) {
        MPI_Put(own, 64, MPI_BYTE, doomed, at + 16, 64, MPI_BYTE, cells);
        MPI_Get(got, LONG, MPI_BYTE, doomed, at + 1024, LONG, MPI_BYTE, cells);
    }
    if (is("fence"))
        says("MPI_Win_fence", MPI_Win_fence(MPI_MODE_NOSUCCEED, cells));
    if (is("complete"))
        says("MPI_Win_complete", MPI_Win_complete(cells));
    if (is("unlock"))
        says("MPI_Win_unlock", MPI_Win_unlock(doomed, cells));
    if (is("flush")) {
        says("MPI_Win_flush", MPI_Win_flush(doomed, cells));
        MPI_Win_unlock_all(cells);
    }
    if (is("held")) {
        int code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, cells);
        if (code == MPI_SUCCESS)
            code = MPI_Win_unlock(0, cells);
        says("MPI_Win_lock", code);
    }
    if (is("start"))
        says("MPI_Win_start", MPI_Win_start(dead, 0, cells));
    if (is("wait")) {
        MPI_Win_post(dead, 0, cells);
        says("MPI_Win_wait", MPI_Win_wait(cells));
    }
}

/* A window of the two alone. */
static void go_on_elsewhere(MPI_Win ours) {
    int well = 0, code = MPI_SUCCESS;
    long value = rank;
    while (well < ROUNDS && code == MPI_SUCCESS) {
        code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - rank, 0, ours);
        if (code == MPI_SUCCESS)
            code = MPI_Put(&value, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, ours);
        if (code == MPI_SUCCESS)
            code = MPI_Win_unlock(1 - rank, ours);
        if (code == MPI_SUCCESS)
            code = MPI_Win_fence(0, ours);
        if (code == MPI_SUCCESS)
            code = MPI_Win_fence(MPI_MODE_NOSUCCEED, ours);
        well += code == MPI_SUCCESS;
    }
    says("the other window", code);
}

int main(int argc, char **argv) {
    char *base;
    MPI_Win ours;
    MPI_Init(&argc, &argv);
    way = argv[2];
    int stays = strcmp(argv[4], "stays") == 0;
    meet(argv[3], stays);
    make(argv[1]);
    if (stays) {
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &ours);
        MPI_Win_set_errhandler(ours, MPI_ERRORS_RETURN);
    }
    prepare();
    if (rank == doomed)
        kill(getpid(), SIGKILL);
    while (rank >= STAY)
        pause(); /* its launcher ends it */
    while (kill(process, 0) == 0)
        usleep(10000);
    go_on_there();
    go_on_elsewhere(ours);
    says("MPI_Win_free", MPI_Win_free(&cells));
    says("a window that is freed", cells == MPI_WIN_NULL ? MPI_SUCCESS : MPI_ERR_WIN);
    says("the other MPI_Win_free", MPI_Win_free(&ours));
    MPI_Finalize();
    printf("rank %d has ended\n", rank);
    return 0;
}
