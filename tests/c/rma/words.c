/* Words of 8 bytes that an adapter changes, beside accumulates that the target carries out: of one origin each finds what the
 * one before it has left, without a flush in between, and what all ranks add adds up, the owner's own among it. With two more
 * arguments by Tern's adapter, in this manner and, where it is told so, with the adapter's atomics for what they fit. */
// np: 2+
// args: allocate
// args: create rc adapter
// args: create rd messages
// args: create ud messages
// args: create hybrid messages
// not-on: mpich (other variables)
// not-on: ompi (other variables)
#include "counter.h"

enum { ROUNDS = 100 };

static MPI_Win win;
static long *base;

/* Additions of both kinds and swaps, on a word that is this rank's alone. */
static void in_order(int target) {
    long one = 1, ten = 10, got[6], next = 1000, back = 0, word = t_rank;
    OK(MPI_Fetch_and_op(&one, &got[0], MPI_LONG, target, word, MPI_SUM, win));
    OK(MPI_Accumulate(&ten, 1, MPI_LONG, target, word, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&one, &got[1], MPI_LONG, target, word, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    long now = 12;
    OK(MPI_Compare_and_swap(&next, &now, &got[2], MPI_LONG, target, word, win));
    OK(MPI_Fetch_and_op(NULL, &got[3], MPI_LONG, target, word, MPI_NO_OP, win));
    OK(MPI_Accumulate(&ten, 1, MPI_LONG, target, word, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Compare_and_swap(&back, &now, &got[4], MPI_LONG, target, word, win)); /* in vain */
    OK(MPI_Fetch_and_op(&back, &got[5], MPI_LONG, target, word, MPI_REPLACE, win));
    OK(MPI_Win_flush(target, win));
    long want[6] = {0, 11, 12, 1000, 1010, 1010};
    for (int i = 0; i < 6; i++)
        CHECK_AT(i, got[i], want[i]);
}

int main(int argc, char **argv) {
    if (argc > 2) {
        unsetenv("TERN_WIN"); /* that would be messages alone */
        if (strcmp(argv[2], "given") != 0) { /* else as the caller's variables say */
            setenv("TERN_DEVICES", "rnic", 1);
            setenv("TERN_TRANSPORT", argv[2], 1);
        }
    }
    t_begin(&argc, &argv);
    t_counted("tern_window_word");
    MPI_Aint bytes = (t_size + 2) * (MPI_Aint)sizeof(long);
    long *own = calloc(t_size + 2, sizeof(long)), one = 1, part = 0;
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = own;
        OK(MPI_Win_create(own, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        memset(base, 0, bytes);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        int target = (t_rank + round) % t_size;
        in_order(target);
        OK(MPI_Fetch_and_op(&one, &part, MPI_LONG, target, t_size, MPI_SUM, win)); /* a word of all */
        OK(MPI_Accumulate(&one, 1, MPI_LONG, (target + 1) % t_size, t_size, 1, MPI_LONG, MPI_SUM, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win));
    CHECK_EQ(base[t_size], 2L * ROUNDS);
    OK(MPI_Win_unlock(t_rank, win));
    if (argc > 3)
        CHECK(((long)t_counted("tern_window_word") > ROUNDS) == (strcmp(argv[3], "adapter") == 0));
    OK(MPI_Win_free(&win));
    free(own);
    return t_end();
}
