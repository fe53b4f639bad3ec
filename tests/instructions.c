/* Messages from a rank to itself, as many as the first argument says: of 8 bytes, or with a second argument `partitions` rounds
 * of a partitioned one of 16 bytes and as many partitions, `persistent` persistent ones of 8 bytes, `nothing` persistent collectives
 * without data. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 16 };

static int messages(long count) {
    double value = 1, got = 0;
    for (long i = 0; i < count; i++) {
        MPI_Send(&value, 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return got != value && count > 0;
}

static int partitions(long count) {
    char out[PARTS], in[PARTS] = { 0 };
    memset(out, 'x', PARTS);
    MPI_Request requests[2];
    MPI_Psend_init(out, PARTS, 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, PARTS, 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (long i = 0; i < count; i++) {
        MPI_Startall(2, requests);
        for (int p = 0; p < PARTS; p++)
            MPI_Pready(p, requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    return memcmp(out, in, PARTS) != 0 && count > 0;
}

static int persistent(long count) {
    double value = 1, got = 0;
    MPI_Request send, receive;
    MPI_Send_init(&value, 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, &send);
    MPI_Recv_init(&got, 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, &receive);
    for (long i = 0; i < count; i++) {
        MPI_Start(&send);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Start(&receive);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    return got != value && count > 0;
}

static int nothing(long count) {
    MPI_Request request;
    MPI_Allreduce_init(NULL, NULL, 0, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (long i = 0; i < count; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    return 0;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000;
    const char *what = argc > 2 ? argv[2] : "";
    MPI_Init(&argc, &argv);
    int wrong = strcmp(what, "partitions") == 0   ? partitions(count)
                : strcmp(what, "persistent") == 0 ? persistent(count)
                : strcmp(what, "nothing") == 0    ? nothing(count)
                                                  : messages(count);
    MPI_Finalize();
    return wrong;
}
