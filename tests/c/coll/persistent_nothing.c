/* A persistent collective of no elements is over when it is started, and stays active until one of the calls that complete
 * has said so: each says that nothing came and leaves the request to be started again. */
// np: 1,2,3
// not-on: mpich (MPI_Testall of one fails)
#include "coll_forms.h"

enum { CALLS = 9 };

/* Completes the one request by one of the calls, if that says so; whether it does. */
static int complete(int call, MPI_Request *request, MPI_Status *status) {
    int flag = 1, index = 0, count = 1, indices[1] = { 0 };
    switch (call) {
    case 0: OK(MPI_Wait(request, status)); break;
    case 1: OK(MPI_Test(request, &flag, status)); break;
    case 2: OK(MPI_Waitall(1, request, status)); break;
    case 3: OK(MPI_Testall(1, request, &flag, status)); break;
    case 4: OK(MPI_Waitany(1, request, &index, status)); break;
    case 5: OK(MPI_Testany(1, request, &index, &flag, status)); break;
    case 6: OK(MPI_Waitsome(1, request, &count, indices, status)); break;
    case 7: OK(MPI_Testsome(1, request, &count, indices, status)); break;
    default: OK(MPI_Wait(request, MPI_STATUS_IGNORE)); return 1;
    }
    if (!flag || count == 0)
        return 0;
    CHECK_EQ(index, 0);
    CHECK_EQ(indices[0], 0);
    CHECK_EQ(count, 1);
    return 1;
}

static void rounds(MPI_Request *request) {
    for (int call = 0; call < CALLS; call++) {
        int flag = 0, count = -1;
        MPI_Status status = { 0 };
        OK(MPI_Start(request));
        while (!flag)
            OK(MPI_Request_get_status(*request, &flag, &status));
        while (!complete(call, request, call == CALLS - 1 ? MPI_STATUS_IGNORE : &status))
            ;
        CHECK(*request != MPI_REQUEST_NULL);
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_AT(call, count, 0);
        /* Inactive now: complete, and no index is given. */
        OK(MPI_Waitany(1, request, &count, &status));
        CHECK_AT(call, count, MPI_UNDEFINED);
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Request request, requests[2];
    OK(MPI_Allreduce_init(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    rounds(&request);
    OK(MPI_Barrier_init(MPI_COMM_SELF, MPI_INFO_NULL, &requests[0]));
    requests[1] = request;
    for (int i = 0; i < 3; i++) {
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    /* One that is active may be freed. */
    OK(MPI_Start(&requests[0]));
    OK(MPI_Request_free(&requests[0]));
    CHECK(requests[0] == MPI_REQUEST_NULL);
    OK(MPI_Request_free(&request));
    return t_end();
}
