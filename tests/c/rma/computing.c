/* A target that computes, outside MPI, is read and changed meanwhile: it waits
 * for what its origins do without ever calling MPI. */
// np: 2+
// args: allocate
// args: create
// timeout: 60
// not-on: mpich (a target that computes serves nobody there)
#include <time.h>

#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    volatile long *base;
    long own[4] = {0};
    MPI_Win win;
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = own;
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        base[0] = base[1] = 0;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0) {
        time_t start = time(NULL);
        while (base[0] < 100 * (t_size - 1) && time(NULL) - start < 50)
            ; /* no call of MPI */
        CHECK_EQ(base[0], 100 * (t_size - 1));
    } else {
        for (int i = 0; i < 100; i++) {
            long one = 1, value = 7, before;
            OK(MPI_Win_lock(i % 10 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win));
            OK(MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win));
            OK(MPI_Win_flush(0, win));
            OK(MPI_Get(&before, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win));
            OK(MPI_Win_flush(0, win));
            CHECK_EQ(before, 7);
            OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win));
            OK(MPI_Win_unlock(0, win));
            CHECK(before >= i);
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return t_end();
}
