/* The empty status of null requests: error field included (MPI 5.0 section 3.7.3). */
#include "tern_test.h"

static MPI_Status dirty(void) {
    MPI_Status status;
    memset(&status, 0, sizeof status);
    status.MPI_SOURCE = status.MPI_TAG = 7;
    status.MPI_ERROR = MPI_ERR_OTHER;
    MPI_Status_set_elements(&status, MPI_BYTE, 9);
    return status;
}

static void check_empty(const MPI_Status *status) {
    int count = -1, cancelled = 1;
    CHECK_EQ(status->MPI_SOURCE, MPI_ANY_SOURCE);
    CHECK_EQ(status->MPI_TAG, MPI_ANY_TAG);
    CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK_EQ(count, 0);
    OK(MPI_Test_cancelled(status, &cancelled));
    CHECK_EQ(cancelled, 0);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int flag = 0, index = 0;
    MPI_Status status = dirty();
    OK(MPI_Wait(&none[0], &status));
    check_empty(&status);
    status = dirty();
    OK(MPI_Test(&none[0], &flag, &status));
    CHECK(flag);
    check_empty(&status);
    status = dirty(), flag = 0;
    OK(MPI_Request_get_status(none[0], &flag, &status));
    CHECK(flag);
    check_empty(&status);
    status = dirty();
    OK(MPI_Waitany(2, none, &index, &status));
    CHECK_EQ(index, MPI_UNDEFINED);
    check_empty(&status);
    status = dirty(), flag = 0;
    OK(MPI_Testany(2, none, &index, &flag, &status));
    CHECK(flag);
    check_empty(&status);
    return t_end();
}
