/* Persistent requests: started many times with new contents, by Start and Startall;
 * inactive ones complete at once with an empty status. */
#include "tern_test.h"

enum { ROUNDS = 50, WIDTH = 4 };

static void check_inactive(MPI_Request *request) {
    MPI_Status status;
    int flag = 0;
    OK(MPI_Test(request, &flag, &status));
    CHECK(flag);
    CHECK(*request != MPI_REQUEST_NULL);
    CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    OK(MPI_Wait(request, &status));
    CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
}

static void ring(int count) {
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    int *out[WIDTH], *in[WIDTH];
    MPI_Request requests[2 * WIDTH];
    MPI_Status statuses[2 * WIDTH];
    for (int w = 0; w < WIDTH; w++) {
        out[w] = t_alloc(sizeof(int) * (size_t)count);
        in[w] = t_alloc(sizeof(int) * (size_t)count);
        OK(MPI_Recv_init(in[w], count, MPI_INT, previous, w, MPI_COMM_WORLD, &requests[w]));
        OK(MPI_Send_init(out[w], count, MPI_INT, next, w, MPI_COMM_WORLD, &requests[WIDTH + w]));
        check_inactive(&requests[w]);
        check_inactive(&requests[WIDTH + w]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int w = 0; w < WIDTH; w++)
            for (int i = 0; i < count; i++) {
                out[w][i] = t_rank * 1000003 + round * 101 + w * 7 + i;
                in[w][i] = -1;
            }
        if (round % 2)
            OK(MPI_Startall(2 * WIDTH, requests));
        else
            for (int r = 0; r < 2 * WIDTH; r++)
                OK(MPI_Start(&requests[r]));
        OK(MPI_Waitall(2 * WIDTH, requests, statuses));
        for (int w = 0; w < WIDTH; w++) {
            CHECK_STATUS(statuses[w], previous, w, count * (int)sizeof(int));
            for (int i = 0; i < count; i++)
                CHECK_AT(i, in[w][i], previous * 1000003 + round * 101 + w * 7 + i);
        }
    }
    for (int r = 0; r < 2 * WIDTH; r++) {
        check_inactive(&requests[r]);
        OK(MPI_Request_free(&requests[r]));
        CHECK(requests[r] == MPI_REQUEST_NULL);
    }
    for (int w = 0; w < WIDTH; w++) {
        free(out[w]);
        free(in[w]);
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    ring(0);
    ring(1);
    ring(100);
    ring(30000);
    return t_end();
}
