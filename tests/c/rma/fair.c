/* An exclusive lock is had in the end though two others share it by turns, each giving it back when the other one has it,
 * so that it is never free. Where the other one does not get it because somebody waits, it is given back all the same. */
// np: 3
// args: allocate
// args: create
// not-on: mpich (grants shared locks past an exclusive one that waits)
#include "tern_test.h"

enum { HOLDS = 7, ENDS = 8 };
static const double PATIENCE_S = 0.5, LIMIT_S = 10;

static int *base, own[2], other;
static MPI_Win win;

/* Whether the other one says within the time that it holds the lock, too. */
static int is_shared(void) {
    int has_come = 0;
    for (double end = MPI_Wtime() + PATIENCE_S; !has_come && MPI_Wtime() < end;)
        OK(MPI_Iprobe(other, HOLDS, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE));
    if (has_come)
        OK(MPI_Recv(NULL, 0, MPI_INT, other, HOLDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return has_come;
}

/* Shares the lock until rank 0 has had it; whether it has. */
static int share(void) {
    int had = 0;
    if (t_rank == 2) /* by turns */
        OK(MPI_Recv(NULL, 0, MPI_INT, other, HOLDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (double end = MPI_Wtime() + LIMIT_S; !had && MPI_Wtime() < end;) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Send(NULL, 0, MPI_INT, other, HOLDS, MPI_COMM_WORLD));
        OK(MPI_Get(&had, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        OK(MPI_Win_flush(0, win));
        if (!had)
            is_shared();
        OK(MPI_Win_unlock(0, win));
    }
    /* What the other one has said and nobody heard. */
    OK(MPI_Send(NULL, 0, MPI_INT, other, ENDS, MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, MPI_INT, other, ENDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    while (is_shared())
        ;
    return had;
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
    other = 3 - t_rank;
    if (t_rank == 0) {
        int one = 1;
        for (double end = MPI_Wtime() + PATIENCE_S; MPI_Wtime() < end;) /* both share it by now */
            ;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        OK(MPI_Win_unlock(0, win));
    } else {
        CHECK(share());
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return t_end();
}
