/* MPI_ANY_SOURCE and MPI_ANY_TAG: every message arrives once, those of one sender in
 * order; receives match in the order they were posted, wildcard or not. */
// np: 2+
#include "tern_test.h"

enum { N = 200 };

static void fan_in(void) {
    if (t_rank) {
        for (int i = 0; i < N; i++)
            OK(MPI_Send(&i, 1, MPI_INT, 0, t_rank + i, MPI_COMM_WORLD));
        return;
    }
    int *expected = calloc((size_t)t_size, sizeof(int));
    for (int k = 0; k < N * (t_size - 1); k++) {
        int value = -1;
        MPI_Status status;
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        CHECK(status.MPI_SOURCE > 0 && status.MPI_SOURCE < t_size);
        CHECK_AT(status.MPI_SOURCE, value, expected[status.MPI_SOURCE]++);
        CHECK_EQ(status.MPI_TAG, status.MPI_SOURCE + value);
    }
    for (int r = 1; r < t_size; r++)
        CHECK_AT(r, expected[r], N);
    free(expected);
}

/* Receives posted before the messages: exact, any tag, any source, both, in turn. */
static void posted_order(int early) {
    int values[8];
    MPI_Request requests[8];
    MPI_Status statuses[8];
    int sources[8] = {1, 1, MPI_ANY_SOURCE, MPI_ANY_SOURCE, 1, MPI_ANY_SOURCE, 1, 1};
    int tags[8] = {3, MPI_ANY_TAG, 3, MPI_ANY_TAG, 4, 4, MPI_ANY_TAG, 3};
    /* What each of them matches when rank 1 sends tags 3 3 4 3 4 4 3 3 with values 0…7. */
    int sent[8] = {3, 3, 4, 3, 4, 4, 3, 3};
    int wanted[8] = {0, 1, 3, 2, 4, 5, 6, 7};
    if (t_rank == 0) {
        if (early)
            for (int i = 0; i < 8; i++)
                OK(MPI_Irecv(&values[i], 1, MPI_INT, sources[i], tags[i], MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (!early)
            for (int i = 0; i < 8; i++)
                OK(MPI_Irecv(&values[i], 1, MPI_INT, sources[i], tags[i], MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Waitall(8, requests, statuses));
        for (int i = 0; i < 8; i++) {
            CHECK_AT(i, values[i], wanted[i]);
            CHECK_AT(i, statuses[i].MPI_TAG, sent[wanted[i]]);
            CHECK_AT(i, statuses[i].MPI_SOURCE, 1);
        }
    } else {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (t_rank == 1)
            for (int i = 0; i < 8; i++)
                OK(MPI_Send(&i, 1, MPI_INT, 0, sent[i], MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* The same tag on two communicators: contexts keep them apart, also under wildcards. */
static void contexts(void) {
    MPI_Comm other;
    int a = -1, b = -1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    if (t_rank == 1) {
        int x = 10, y = 20;
        OK(MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
        OK(MPI_Send(&y, 1, MPI_INT, 0, 0, other));
    } else if (t_rank == 0) {
        OK(MPI_Recv(&b, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&a, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(a, 10);
        CHECK_EQ(b, 20);
    }
    OK(MPI_Comm_free(&other));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    fan_in();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < 20; round++)
        posted_order(round % 2);
    contexts();
    return t_end();
}
