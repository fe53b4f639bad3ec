/* Generalised requests: the callbacks are called when and as often as the standard says. */
#include "tern_test.h"

typedef struct {
    int queried, freed, cancelled, complete_at_cancel;
} record;

static int query(void *state, MPI_Status *status) {
    ((record *)state)->queried++;
    OK(MPI_Status_set_elements(status, MPI_INT, 3));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = 11;
    status->MPI_TAG = 12;
    return MPI_SUCCESS;
}

static int release(void *state) {
    ((record *)state)->freed++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
    ((record *)state)->cancelled++;
    ((record *)state)->complete_at_cancel = complete;
    return MPI_SUCCESS;
}

static int failing_query(void *state, MPI_Status *status) {
    (void)status;
    ((record *)state)->queried++;
    return MPI_ERR_OTHER;
}

static void check(const MPI_Status *status) {
    int count;
    OK(MPI_Get_count(status, MPI_INT, &count));
    CHECK_EQ(count, 3);
    CHECK_EQ(status->MPI_SOURCE, 11);
    CHECK_EQ(status->MPI_TAG, 12);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    record state = {0, 0, 0, -1};
    MPI_Request request;
    MPI_Status status, statuses[2];
    int flag = 1;
    OK(MPI_Grequest_start(query, release, cancel, &state, &request));
    OK(MPI_Test(&request, &flag, &status));
    CHECK(!flag);
    CHECK_EQ(state.queried, 0);
    OK(MPI_Cancel(&request));
    CHECK_EQ(state.cancelled, 1);
    CHECK_EQ(state.complete_at_cancel, 0);
    OK(MPI_Grequest_complete(request));
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag);
    check(&status);
    CHECK_EQ(state.queried, 1);
    CHECK_EQ(state.freed, 0);
    OK(MPI_Wait(&request, &status));
    CHECK(request == MPI_REQUEST_NULL);
    check(&status);
    CHECK_EQ(state.queried, 2);
    CHECK_EQ(state.freed, 1);

    /* Among others, in a list. */
    record again = {0, 0, 0, -1};
    MPI_Request pair[2];
    int value = -1;
    OK(MPI_Grequest_start(query, release, cancel, &again, &pair[0]));
    OK(MPI_Irecv(&value, 1, MPI_INT, t_rank, 0, MPI_COMM_WORLD, &pair[1]));
    OK(MPI_Send(&t_rank, 1, MPI_INT, t_rank, 0, MPI_COMM_WORLD));
    OK(MPI_Grequest_complete(pair[0]));
    OK(MPI_Waitall(2, pair, statuses));
    check(&statuses[0]);
    CHECK_EQ(value, t_rank);
    CHECK_EQ(again.queried, 1);
    CHECK_EQ(again.freed, 1);

    /* Freed before it completes: released when it completes, never queried. */
    record early = {0, 0, 0, -1};
    MPI_Request copy;
    OK(MPI_Grequest_start(query, release, cancel, &early, &request));
    copy = request;
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    CHECK_EQ(early.freed, 0);
    OK(MPI_Grequest_complete(copy));
    CHECK_EQ(early.freed, 1);

    /* An error of the query function is the error of the wait. */
    record failing = {0, 0, 0, -1};
    OK(MPI_Grequest_start(failing_query, release, cancel, &failing, &request));
    OK(MPI_Grequest_complete(request));
    FAILS(MPI_Wait(&request, &status), MPI_ERR_OTHER);
    CHECK_EQ(failing.queried, 1);
    CHECK_EQ(failing.freed, 1);
    return t_end();
}
