/* More operations than the library keeps are an error of the call, and what was
 * posted before goes on.
 * np: 1
 * timeout: 120
 * not-on: mpich (has no such limit)
 * not-on: ompi (has no such limit)
 */
#include "../tern_test.h"

enum { MANY = 1100000 };

int main(int argc, char **argv) {
    int value = 0, refused = 0, posted = 0, flag;
    t_begin(&argc, &argv);
    MPI_Request *requests = t_alloc(MANY * sizeof *requests);
    for (int i = 0; i < MANY; i++) {
        int code = MPI_Irecv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[posted]), class;
        if (code == MPI_SUCCESS) {
            posted++;
            continue;
        }
        OK(MPI_Error_class(code, &class));
        CHECK_EQ(class, MPI_ERR_INTERN);
        refused++;
    }
    CHECK_EQ(posted + refused, MANY);
    CHECK(posted >= 1000000 && refused > 0);
    int out = 9;
    OK(MPI_Send(&out, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK_EQ(value, 9);
    for (int i = 1; i < posted; i++) {
        MPI_Status status;
        OK(MPI_Cancel(&requests[i]));
        OK(MPI_Wait(&requests[i], &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
    }
    free(requests);
    return t_end();
}
