/* What a program lives through whose ranks lose the way to each other. Two ranks or more on each of two hosts; those of a
 * host have a communicator of their own, `here`.
 *
 * usage: lost CASE FILE
 *   receive    each rank of one host waits for a message of one of the other
 *   any        the same from any source
 *   probe      the same, by MPI_Probe
 *   send       messages of 64 KiB go on and on, one way, and nobody answers
 *   exchange   long messages both ways, and what is under way when the cable is cut
 *   collective allreduces over all
 *   computes   one rank of each pair computes for 40 s while the other sends: nothing is wrong
 *   leaves     one rank of each pair sends 8 bytes once FILE is there, and computes until the other one has them
 *   survive    as exchange, until FILE is there; all must arrive
 *   first      an exchange that is the first thing that ranks of two hosts say, once FILE is there
 * Who has met its peer prints «met»; the cable is cut then (`first`: who has begun). An error is returned, shown, and the ranks of a host go on. */
#include <mpi.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LONG = 1 << 20, SHORT = 1 << 16 };
static int rank, size, peer;
static const char *file;
static char *out, *in;

static int is_there(void) {
    struct stat about;
    return stat(file, &about) == 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int exchange(int length, int round) {
    MPI_Request requests[2];
    memset(out, round + rank, (size_t)length);
    MPI_Irecv(in, length, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[0]);
    int code = MPI_Isend(out, length, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[1]);
    if (code != MPI_SUCCESS) {
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        return code;
    }
    MPI_Status statuses[2];
    code = MPI_Waitall(2, requests, statuses);
    if (code == MPI_ERR_IN_STATUS)
        code = statuses[0].MPI_ERROR != MPI_SUCCESS ? statuses[0].MPI_ERROR : statuses[1].MPI_ERROR;
    for (int i = 0; code == MPI_SUCCESS && i < length; i++)
        if (in[i] != (char)(round + peer)) {
            fprintf(stderr, "lost: rank %d: byte %d of round %d is wrong\n", rank, i, round);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
    return code;
}

static int act(const char *what) {
    MPI_Status status;
    int code = MPI_SUCCESS;
    if (!strcmp(what, "receive"))
        return MPI_Recv(in, 1, MPI_BYTE, peer, 9, MPI_COMM_WORLD, &status);
    if (!strcmp(what, "any"))
        return MPI_Recv(in, 1, MPI_BYTE, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &status);
    if (!strcmp(what, "probe"))
        return MPI_Probe(peer, 9, MPI_COMM_WORLD, &status);
    if (!strcmp(what, "send") && rank < peer) {
        while (code == MPI_SUCCESS) {
            code = MPI_Send(out, SHORT, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
            usleep(1000);
        }
        return code;
    }
    if (!strcmp(what, "send")) {
        while (code == MPI_SUCCESS)
            code = MPI_Recv(in, SHORT, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &status);
        return code;
    }
    if (!strcmp(what, "collective")) {
        for (int one = 1, sum = 0; code == MPI_SUCCESS; usleep(1000))
            code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        return code;
    }
    if (!strcmp(what, "computes")) {
        if (rank > peer) {
            for (double end = now() + 40; now() < end;)
                usleep(1000);
            for (int i = 0; code == MPI_SUCCESS && i < 200; i++)
                code = MPI_Recv(in, SHORT, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &status);
            return code;
        }
        for (int i = 0; code == MPI_SUCCESS && i < 200; i++)
            code = MPI_Send(out, SHORT, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
        return code;
    }
    if (!strcmp(what, "leaves")) {
        char heard[4096];
        snprintf(heard, sizeof heard, "%s.%d", file, rank < peer ? peer : rank);
        if (rank > peer) {
            code = MPI_Recv(in, 8, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &status);
            close(creat(heard, 0600));
            return code;
        }
        while (!is_there())
            usleep(1000);
        code = MPI_Send(out, 8, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
        for (double end = now() + 20; access(heard, F_OK) && now() < end;)
            usleep(1000);
        if (access(heard, F_OK))
            MPI_Abort(MPI_COMM_WORLD, 6);
        return code;
    }
    if (!strcmp(what, "first")) {
        while (!is_there())
            usleep(1000);
        return exchange(LONG, 0);
    }
    int ends = 0, mine;
    for (int round = 0; code == MPI_SUCCESS && !ends; round++) {
        code = exchange(round % 2 ? SHORT : LONG, round);
        if (code == MPI_SUCCESS && !strcmp(what, "survive")) {
            mine = rank == 0 && is_there();
            code = MPI_Allreduce(&mine, &ends, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        }
    }
    return code;
}

int main(int argc, char **argv) {
    MPI_Comm here;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    file = argv[2];
    peer = (rank + size / 2) % size;
    out = calloc(1, LONG), in = calloc(1, LONG);
    int is_first = !strcmp(argv[1], "first");
    if (is_first)
        MPI_Comm_dup(MPI_COMM_SELF, &here);
    else
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    if (!getenv("LOST_IS_FATAL"))
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!is_first && exchange(1, 0) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (!is_first)
        MPI_Barrier(MPI_COMM_WORLD);
    printf("met: rank %d, process %d\n", rank, (int)getpid());
    fflush(stdout);
    int code = act(argv[1]);
    if (code == MPI_SUCCESS) {
        printf("rank %d: all went well\n", rank);
    } else {
        char text[MPI_MAX_ERROR_STRING];
        int class, length;
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
        printf("rank %d: %s: %s\n", rank, class == MPI_ERR_PROC_ABORTED ? "aborted" : "other", text);
        /* What comes later is refused at once. */
        double begin = now();
        code = MPI_Send(out, 1, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
        if (strcmp(argv[1], "collective") && (code == MPI_SUCCESS || now() - begin > 8))
            MPI_Abort(MPI_COMM_WORLD, 4);
    }
    fflush(stdout);
    /* The ranks of this host go on, each with an error of its own behind it. */
    int one = 1, sum = 0, ranks;
    MPI_Comm_size(here, &ranks);
    if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, here) != MPI_SUCCESS || sum != ranks)
        MPI_Abort(here, 5);
    printf("rank %d: goes on\n", rank);
    fflush(stdout);
    MPI_Comm_free(&here);
    MPI_Finalize();
    return 0;
}
