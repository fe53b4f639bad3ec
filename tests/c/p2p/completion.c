/* The wait and test families: one, all, any, some; with null and inactive requests, with
 * empty lists, with statuses and without. */
#include "tern_test.h"

enum { N = 10 };

static int next, previous;

static void empty_lists(void) {
    int flag = 0, index = 0, count = 0;
    MPI_Request null[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag);
    OK(MPI_Waitany(0, NULL, &index, &status));
    CHECK_EQ(index, MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Testany(0, NULL, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED);
    OK(MPI_Wait(&null[0], &status));
    CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    flag = 0;
    OK(MPI_Test(&null[0], &flag, &status));
    CHECK(flag);
    CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    OK(MPI_Waitall(3, null, statuses));
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(statuses[i], MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    OK(MPI_Waitany(3, null, &index, &status));
    CHECK_EQ(index, MPI_UNDEFINED);
    CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    OK(MPI_Waitsome(3, null, &count, &index, statuses));
    CHECK_EQ(count, MPI_UNDEFINED);
    OK(MPI_Testsome(3, null, &count, &index, statuses));
    CHECK_EQ(count, MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Testany(3, null, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Testall(3, null, &flag, statuses));
    CHECK(flag);
}

/* Posts N receives, of which only those with an even tag are served before `serve_odd`. */
static void post(int *in, MPI_Request *requests) {
    for (int i = 0; i < N; i++) {
        in[i] = -1;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD, &requests[i]));
    }
}

static void serve(int odd) {
    for (int i = odd; i < N; i += 2) {
        int value = t_rank * 100 + i;
        OK(MPI_Send(&value, 1, MPI_INT, next, i, MPI_COMM_WORLD));
    }
}

static void check_one(const int *in, const MPI_Status *status, int i) {
    CHECK_AT(i, in[i], previous * 100 + i);
    CHECK_STATUS(*status, previous, i, (int)sizeof(int));
}

static void all(int by_test) {
    int in[N], flag = 0;
    MPI_Request requests[N];
    MPI_Status statuses[N];
    post(in, requests);
    serve(0);
    OK(MPI_Testall(N, requests, &flag, statuses));
    CHECK(!flag);
    for (int i = 0; i < N; i++)
        CHECK(requests[i] != MPI_REQUEST_NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    serve(1);
    if (by_test)
        while (!flag)
            OK(MPI_Testall(N, requests, &flag, statuses));
    else
        OK(MPI_Waitall(N, requests, statuses));
    for (int i = 0; i < N; i++) {
        CHECK(requests[i] == MPI_REQUEST_NULL);
        check_one(in, &statuses[i], i);
    }
}

static void any(int by_test) {
    int in[N], seen[N] = {0}, index, flag;
    MPI_Request requests[N];
    MPI_Status status;
    post(in, requests);
    for (int odd = 0; odd < 2; odd++) {
        serve(odd);
        for (int k = 0; k < N / 2; k++) {
            flag = 0;
            if (by_test)
                while (!flag)
                    OK(MPI_Testany(N, requests, &index, &flag, &status));
            else
                OK(MPI_Waitany(N, requests, &index, &status));
            CHECK(index >= 0 && index < N && index % 2 == odd && !seen[index]);
            seen[index] = 1;
            CHECK(requests[index] == MPI_REQUEST_NULL);
            check_one(in, &status, index);
        }
        if (odd == 0) {
            OK(MPI_Testany(N, requests, &index, &flag, &status));
            CHECK(!flag);
            CHECK_EQ(index, MPI_UNDEFINED);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    OK(MPI_Waitany(N, requests, &index, &status));
    CHECK_EQ(index, MPI_UNDEFINED);
}

static void some(int by_test) {
    int in[N], seen[N] = {0}, indices[N], count, total = 0;
    MPI_Request requests[N];
    MPI_Status statuses[N];
    post(in, requests);
    OK(MPI_Testsome(N, requests, &count, indices, statuses));
    CHECK_EQ(count, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int odd = 0; odd < 2; odd++) {
        serve(odd);
        while (total < (odd + 1) * N / 2) {
            if (by_test)
                OK(MPI_Testsome(N, requests, &count, indices, statuses));
            else
                OK(MPI_Waitsome(N, requests, &count, indices, statuses));
            CHECK(count >= (by_test ? 0 : 1) && count <= N);
            for (int k = 0; k < count; k++) {
                CHECK(indices[k] >= 0 && indices[k] < N && !seen[indices[k]]);
                seen[indices[k]] = 1;
                check_one(in, &statuses[k], indices[k]);
                CHECK(requests[indices[k]] == MPI_REQUEST_NULL);
            }
            total += count;
        }
    }
    CHECK_EQ(total, N);
}

/* Inactive persistent requests in lists are skipped; active ones are found. */
static void with_inactive(void) {
    int in[4] = {-1, -1, -1, -1}, out = t_rank, index, count, indices[4], flag;
    MPI_Request requests[4];
    MPI_Status statuses[4], status;
    for (int i = 0; i < 4; i++)
        OK(MPI_Recv_init(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Waitany(4, requests, &index, &status));
    CHECK_EQ(index, MPI_UNDEFINED);
    OK(MPI_Waitsome(4, requests, &count, indices, statuses));
    CHECK_EQ(count, MPI_UNDEFINED);
    OK(MPI_Start(&requests[2]));
    OK(MPI_Send(&out, 1, MPI_INT, next, 2, MPI_COMM_WORLD));
    OK(MPI_Waitany(4, requests, &index, &status));
    CHECK_EQ(index, 2);
    CHECK(requests[2] != MPI_REQUEST_NULL);
    CHECK_EQ(in[2], previous);
    CHECK_STATUS(status, previous, 2, (int)sizeof(int));
    OK(MPI_Start(&requests[1]));
    OK(MPI_Send(&out, 1, MPI_INT, next, 1, MPI_COMM_WORLD));
    OK(MPI_Waitsome(4, requests, &count, indices, statuses));
    CHECK_EQ(count, 1);
    CHECK_EQ(indices[0], 1);
    OK(MPI_Start(&requests[0]));
    OK(MPI_Send(&out, 1, MPI_INT, next, 0, MPI_COMM_WORLD));
    OK(MPI_Waitall(4, requests, statuses));
    CHECK_STATUS(statuses[0], previous, 0, (int)sizeof(int));
    CHECK_STATUS(statuses[3], MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    OK(MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag);
    for (int i = 0; i < 4; i++)
        OK(MPI_Request_free(&requests[i]));
}

/* A send whose request is freed is still delivered. */
static void freed_send(void) {
    enum { COUNT = 100000 };
    int *out = t_alloc(COUNT * sizeof(int)), *in = t_alloc(COUNT * sizeof(int));
    MPI_Request request;
    for (int i = 0; i < COUNT; i++)
        out[i] = t_rank + i;
    OK(MPI_Isend(out, COUNT, MPI_INT, next, 50, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Recv(in, COUNT, MPI_INT, previous, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++)
        CHECK_AT(i, in[i], previous + i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Its buffer may only be reused once the receiver has it: which the barrier shows. */
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    next = (t_rank + 1) % t_size;
    previous = (t_rank + t_size - 1) % t_size;
    empty_lists();
    for (int by_test = 0; by_test < 2; by_test++) {
        all(by_test);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        any(by_test);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        some(by_test);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    with_inactive();
    freed_send();
    return t_end();
}
