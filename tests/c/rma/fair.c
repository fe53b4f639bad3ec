/* An exclusive lock is had in the end though others share it by turns, so that it is never free. */
// np: 3
// args: allocate
// args: create
// not-on: mpich (grants shared locks past an exclusive one that waits)
#include "tern_test.h"

#include <unistd.h>

enum { ROUNDS = 500, HOLD_US = 2000 };

static int *base, own[2];
static MPI_Win win;

/* Holds the lock half of each period beyond the other one's half, until rank 0 has had it; the number of turns. */
static int share(void) {
    for (int round = 1; round <= ROUNDS; round++) {
        int had = 0;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Get(&had, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        OK(MPI_Win_flush(0, win));
        usleep(HOLD_US);
        OK(MPI_Win_unlock(0, win));
        if (had)
            return round;
    }
    return ROUNDS + 1;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = own;
        OK(MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, 0, win));
    base[0] = base[1] = 0;
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0) {
        int one = 1;
        usleep(10 * HOLD_US); /* both share it by now */
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        OK(MPI_Win_unlock(0, win));
    } else {
        usleep(t_rank * HOLD_US / 2); /* out of step */
        CHECK(share() <= ROUNDS);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return t_end();
}
