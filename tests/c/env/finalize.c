/* What happens in MPI_Finalize: attributes of MPI_COMM_SELF are deleted first, last set
 * first, while MPI still works. */
#include "tern_test.h"

static int order[3], called;

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra) {
    (void)keyval, (void)extra;
    int flag = 1, size = 0;
    CHECK(comm == MPI_COMM_SELF);
    OK(MPI_Finalized(&flag));
    CHECK(!flag);
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK_EQ(size, t_size);
    order[called++] = (int)(intptr_t)value;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        int keyval;
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, NULL));
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, (void *)(intptr_t)(i + 1)));
        OK(MPI_Comm_free_keyval(&keyval));
        CHECK_EQ(keyval, MPI_KEYVAL_INVALID);
    }
    OK(MPI_Finalize());
    CHECK_EQ(called, 3);
    CHECK(order[0] == 3 && order[1] == 2 && order[2] == 1);
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
