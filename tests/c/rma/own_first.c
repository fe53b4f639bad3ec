/* What a rank does to its own memory is not overtaken by what another one does there when it has heard of it, though no synchronisation
 * says so: locks that are made of windows (mpi4py's util.sync) reset a word of their own and then tell others where they stand. */
// np: 2+
// not-on: mpich (MPI does not ask for it)
// not-on: ompi (MPI does not ask for it)
// args: default
// args: active
#include "tern_test.h"

static MPI_Win win;
static int *memory;

static void put_word(int value, int target) {
    OK(MPI_Accumulate(&value, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_REPLACE, win));
}

static int exchange(int value, int to, int from) {
    int told;
    OK(MPI_Sendrecv(&value, 1, MPI_INT, to, 0, &told, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return told;
}

static void hand_on(int round) {
    int next = (t_rank + 1) % t_size, before = (t_rank + t_size - 1) % t_size;
    int given = round * t_size + t_rank, found;
    put_word(-1, t_rank);
    if (round % 2 == 1) {
        OK(MPI_Fetch_and_op(&given, &found, MPI_INT, next, 1, MPI_REPLACE, win));
        OK(MPI_Win_flush(next, win));
    }
    exchange(given, before, next);
    /* `next` has said that its word is its own again. */
    put_word(given, next);
    OK(MPI_Win_flush(next, win));
    int told = exchange(given, next, before);
    OK(MPI_Win_flush(t_rank, win));
    OK(MPI_Win_sync(win));
    CHECK_EQ(memory[0], told);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "active") == 0)
        setenv("TERN_WIN", "active", 1);
    t_begin(&argc, &argv);
    OK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < 200; round++)
        hand_on(round);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return t_end();
}
