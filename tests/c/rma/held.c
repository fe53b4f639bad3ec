/* What an origin has begun arrives although it completes nothing at that target: it waits for an answer that comes into its own
 * memory (mpi4py's mutexes are built so), or computes. A word goes round all ranks, none of which flushes the next one. */
// np: 2,3
// args: allocate
// args: create
// args: allocate rc
// args: create rd
// args: create ud
// args: create hybrid
// timeout: 60
// not-on: mpich (a rank that computes tells nothing there)
// not-on: ompi (the same)
#include <time.h>

#include "tern_test.h"

enum { FLUSH, SYNC, PROBE, COMPUTE, MANNERS };
enum { ROUNDS = 2, WAIT_S = 20 };

static volatile long *base;
static MPI_Win win;

/* Waits in one of these manners until the word is this. */
static void await(long word, int manner) {
    time_t start = time(NULL);
    while (*base != word) {
        int flag;
        if (manner == FLUSH)
            OK(MPI_Win_flush(t_rank, win));
        else if (manner == SYNC)
            OK(MPI_Win_sync(win));
        else if (manner == PROBE)
            OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        if (time(NULL) - start > WAIT_S) {
            fprintf(stderr, "rank %d: manner %d: %ld in place of %ld\n", t_rank, manner, *base, word);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        struct timespec nap = {.tv_nsec = 20000};
        nanosleep(&nap, NULL);
    }
}

int main(int argc, char **argv) {
    if (argc > 2) {
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
    }
    t_begin(&argc, &argv);
    long own = 0, words[2 * MANNERS * ROUNDS], count = 0;
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = &own;
        OK(MPI_Win_create(&own, sizeof own, sizeof own, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(sizeof own, sizeof own, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&base, &win));
        *base = 0;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    int next = (t_rank + 1) % t_size;
    for (int manner = 0; manner < MANNERS; manner++)
        for (int round = 0; round < 2 * ROUNDS; round++) {
            long *word = &words[count++]; /* left alone until all is over */
            *word = count;
            if (t_rank > 0)
                await(*word, manner);
            if (round % 2)
                OK(MPI_Put(word, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
            else
                OK(MPI_Accumulate(word, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_REPLACE, win));
            if (t_rank == 0)
                await(*word, manner);
        }
    OK(MPI_Win_unlock_all(win));
    CHECK_EQ(*base, count);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return t_end();
}
