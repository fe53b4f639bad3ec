/* MPI_Request_get_status and its any, all and some forms: they look without completing. */
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    int in[3] = {-1, -1, -1}, flag = 0, index = -1, count = 0, indices[3];
    MPI_Request requests[3], null = MPI_REQUEST_NULL;
    MPI_Status status, statuses[3];
    OK(MPI_Request_get_status(null, &flag, &status));
    CHECK(flag);
    CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    for (int i = 0; i < 3; i++)
        OK(MPI_Irecv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Request_get_status(requests[1], &flag, &status));
    CHECK(!flag);
    OK(MPI_Request_get_status_any(3, requests, &index, &flag, &status));
    CHECK(!flag);
    OK(MPI_Request_get_status_all(3, requests, &flag, statuses));
    CHECK(!flag);
    OK(MPI_Request_get_status_some(3, requests, &count, indices, statuses));
    CHECK_EQ(count, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(&t_rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD));
    while (!flag)
        OK(MPI_Request_get_status(requests[1], &flag, &status));
    CHECK_STATUS(status, previous, 1, (int)sizeof(int));
    CHECK_EQ(in[1], previous);
    CHECK(requests[1] != MPI_REQUEST_NULL);
    OK(MPI_Request_get_status_any(3, requests, &index, &flag, &status));
    CHECK(flag);
    CHECK_EQ(index, 1);
    OK(MPI_Request_get_status_some(3, requests, &count, indices, statuses));
    CHECK_EQ(count, 1);
    CHECK_EQ(indices[0], 1);
    CHECK_STATUS(statuses[0], previous, 1, (int)sizeof(int));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(&t_rank, 1, MPI_INT, next, 0, MPI_COMM_WORLD));
    OK(MPI_Send(&t_rank, 1, MPI_INT, next, 2, MPI_COMM_WORLD));
    flag = 0;
    while (!flag)
        OK(MPI_Request_get_status_all(3, requests, &flag, statuses));
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(statuses[i], previous, i, (int)sizeof(int));
    OK(MPI_Waitall(3, requests, statuses));
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(statuses[i], previous, i, (int)sizeof(int));
        CHECK(requests[i] == MPI_REQUEST_NULL);
    }
    return t_end();
}
