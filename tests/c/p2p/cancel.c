/* Cancelling receives: one that nothing matched is cancelled; one that matched completes. */
#include "tern_test.h"

#include <unistd.h>

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    int in = -1, flag;
    MPI_Request request;
    MPI_Status status;
    for (int round = 0; round < 10; round++) {
        OK(MPI_Irecv(&in, 1, MPI_INT, round & 1 ? previous : MPI_ANY_SOURCE, round & 2 ? 1 : MPI_ANY_TAG,
                     MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        if (round & 4) {
            flag = 0;
            while (!flag)
                OK(MPI_Test(&request, &flag, &status));
        } else {
            OK(MPI_Wait(&request, &status));
        }
        CHECK(request == MPI_REQUEST_NULL);
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* The message goes to the receive that was not cancelled. */
    int first = -1, second = -1;
    MPI_Request keep;
    OK(MPI_Irecv(&first, 1, MPI_INT, previous, 2, MPI_COMM_WORLD, &request));
    OK(MPI_Irecv(&second, 1, MPI_INT, previous, 2, MPI_COMM_WORLD, &keep));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(&t_rank, 1, MPI_INT, next, 2, MPI_COMM_WORLD));
    OK(MPI_Wait(&keep, &status));
    CHECK_EQ(second, previous);
    CHECK_EQ(first, -1);
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
    /* Cancelling too late: the receive has its message. */
    OK(MPI_Irecv(&in, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Send(&t_rank, 1, MPI_INT, next, 3, MPI_COMM_WORLD));
    flag = 0;
    while (!flag)
        OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
    CHECK_EQ(in, previous);
    /* A persistent receive: cancelled in one round, used in the next. */
    OK(MPI_Recv_init(&in, 1, MPI_INT, previous, 4, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    CHECK(request != MPI_REQUEST_NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* or a fast neighbour's message makes it too late */
    in = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Start(&request));
    OK(MPI_Send(&t_rank, 1, MPI_INT, next, 4, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    CHECK_EQ(in, previous);
    OK(MPI_Request_free(&request));
    return t_end();
}
