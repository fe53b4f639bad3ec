/* One rank exchanges long messages with ranks that have begun their side and
 * compute until it is through.
 * np: 2+
 * args: plain
 * args: frames
 * args: multiple
 * args: frames multiple
 * not-on: mpich (no progress outside of MPI)
 * not-on: ompi (no progress outside of MPI)
 */
#include "away.h"

enum { LONG = 1 << 20 };
static char *mine, *theirs;

static int busy(int rank, int i) {
    return rank + (rank >= i);
}

/* Receives are posted; their sender waits until it has been answered. */
static void early_receivers(int waiter, int source, int synchronous) {
    MPI_Request request;
    t_fill(mine, LONG, 17 + waiter);
    memset(theirs, 0, LONG);
    if (t_rank != waiter)
        OK(MPI_Irecv(theirs, LONG, MPI_CHAR, source, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == waiter) {
        for (int i = 0; i < t_size - 1; i++)
            OK((synchronous ? MPI_Ssend : MPI_Send)(mine, LONG, MPI_CHAR, busy(i, waiter), 3, MPI_COMM_WORLD));
        away_done();
    } else {
        away_until(1);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_EQ(memcmp(theirs, mine, LONG), 0);
    }
    away_next(1);
}

/* Sends have begun; their receiver comes later. */
static void early_senders(int waiter) {
    MPI_Request request;
    t_fill(mine, LONG, 91 + t_rank);
    if (t_rank != waiter) {
        OK(MPI_Isend(mine, LONG, MPI_CHAR, waiter, 4, MPI_COMM_WORLD, &request));
        away_until(1);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        for (int i = 0; i < t_size - 1; i++) {
            int from = busy(i, waiter);
            OK(MPI_Recv(theirs, LONG, MPI_CHAR, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            t_fill(mine, LONG, 91 + from);
            CHECK_EQ(memcmp(theirs, mine, LONG), 0);
        }
        away_done();
    }
    away_next(1);
}

/* More buffered messages than the way to a rank holds: the rest leaves while both compute. */
static void queued(int waiter) {
    enum { MANY = 200, LEN = 2000 };
    int size = MANY * (LEN + MPI_BSEND_OVERHEAD), other = (waiter + 1) % t_size;
    char *space = t_alloc(size);
    void *detached;
    if (t_rank == other) {
        OK(MPI_Buffer_attach(space, size));
        for (int i = 0; i < MANY; i++) {
            memset(mine, i, LEN);
            OK(MPI_Bsend(mine, LEN, MPI_CHAR, waiter, 5, MPI_COMM_WORLD));
        }
    }
    if (t_rank == waiter) {
        for (int i = 0; i < MANY; i++) {
            OK(MPI_Recv(theirs, LEN, MPI_CHAR, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_EQ(theirs[0], (char)i);
            CHECK_EQ(theirs[LEN - 1], (char)i);
        }
        away_done();
    } else {
        away_until(1);
    }
    if (t_rank == other)
        OK(MPI_Buffer_detach(&detached, &size));
    free(space);
    away_next(1);
}

int main(int argc, char **argv) {
    away_begin(argc, argv);
    mine = t_alloc(LONG);
    theirs = t_alloc(LONG);
    for (int waiter = 0; waiter < t_size; waiter++) {
        early_receivers(waiter, MPI_ANY_SOURCE, 0);
        early_receivers(waiter, waiter, 1);
        early_senders(waiter);
        queued(waiter);
    }
    return t_end();
}
