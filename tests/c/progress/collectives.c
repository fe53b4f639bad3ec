/* One rank waits for a collective that all have started, while all others
 * compute until it is through: interior ranks of the tree among them.
 * np: 2+
 * args: plain
 * args: frames
 * args: multiple
 * args: frames multiple
 * not-on: mpich (no progress outside of MPI)
 * not-on: ompi (no progress outside of MPI)
 */
#include "away.h"

enum { LONG = 65536 };
static int mine[LONG], all[LONG];

typedef MPI_Request (*Start)(int root, int count);

static MPI_Request bcast(int root, int count) {
    MPI_Request request;
    for (int i = 0; i < count; i++)
        all[i] = t_rank == root ? i + root : -1;
    MPI_Ibcast(all, count, MPI_INT, root, MPI_COMM_WORLD, &request);
    return request;
}

static MPI_Request reduce(int root, int count) {
    MPI_Request request;
    MPI_Ireduce(mine, all, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &request);
    return request;
}

static MPI_Request allreduce(int root, int count) {
    MPI_Request request;
    (void)root;
    MPI_Iallreduce(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    return request;
}

static MPI_Request barrier(int root, int count) {
    MPI_Request request;
    (void)root, (void)count;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    return request;
}

static void check(Start start, int root, int count) {
    int ranks = t_size * (t_size - 1) / 2;
    if (start == barrier || (start == reduce && t_rank != root))
        return;
    for (int i = 0; i < count; i++)
        CHECK_EQ(all[i], start == bcast ? i + root : ranks + t_size * i);
}

/* All start; `waiter` waits, the others compute until it is through. */
static void round_of(Start start, int root, int waiter, int count) {
    for (int i = 0; i < count; i++)
        mine[i] = t_rank + i;
    MPI_Request request = start(root, count);
    if (t_rank == waiter) {
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        away_done();
    } else {
        away_until(1);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    check(start, root, count);
    away_next(1);
}

int main(int argc, char **argv) {
    away_begin(argc, argv);
    Start starts[] = {bcast, reduce, allreduce, barrier};
    int counts[] = {1, 1000, LONG};
    for (int waiter = 0; waiter < t_size; waiter++)
        for (int s = 0; s < 4; s++)
            for (int c = 0; c < 3; c++)
                round_of(starts[s], (waiter + 1) % t_size, waiter, counts[c]);
    return t_end();
}
