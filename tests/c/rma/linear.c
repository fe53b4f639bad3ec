/* Atomic operations of all ranks on the same words, the owner's among them, have an order in which each sees what the one
 * before it left: tickets that are drawn are all different and without gaps, and grow for each rank; what is swapped in is
 * swapped out once. Half-way long accumulates begin beside them. With two more arguments by Tern's adapter, in this manner. */
// np: 2+
// args: allocate
// args: create
// args: create rc
// args: allocate hybrid
// timeout: 120
#include "tern_test.h"

enum { ROUNDS = 200, LONG = 50, WORDS = 3 + LONG, EACH = 10 };
enum { FETCHED, COMPARED, SWAPPED, RUN };

static MPI_Win win;
static long *base;

static void flush(void) {
    OK(MPI_Win_flush(0, win));
}

static long draw(void) {
    long one = 1, got = -1;
    OK(MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, FETCHED, MPI_SUM, win));
    flush();
    return got;
}

/* A ticket of another counter, by comparing. */
static long compete(void) {
    for (long seen = 0, got = -1;; seen = got) {
        long next = seen + 1;
        OK(MPI_Compare_and_swap(&next, &seen, &got, MPI_LONG, 0, COMPARED, win));
        flush();
        if (got == seen)
            return got;
    }
}

static long swap(long mine) {
    long got = -1;
    OK(MPI_Fetch_and_op(&mine, &got, MPI_LONG, 0, SWAPPED, MPI_REPLACE, win));
    flush();
    return got;
}

/* All of these, and `extra`, are the numbers from 0 on, each once. */
static void check_all(long *mine, long extra, const char *what) {
    int total = t_size * ROUNDS;
    long *all = t_alloc(sizeof(long) * total);
    char *seen = calloc(total + 1, 1);
    OK(MPI_Gather(mine, ROUNDS, MPI_LONG, all, ROUNDS, MPI_LONG, 0, MPI_COMM_WORLD));
    for (int i = 0; i < total + (extra >= 0) && t_rank == 0; i++) {
        long value = i < total ? all[i] : extra;
        if (value < 0 || value > total || seen[value]++)
            t_fail(__FILE__, __LINE__, "%s: %ld comes twice, or never was (%d of rank %d)", what, value, i % ROUNDS, i / ROUNDS);
    }
    free(all);
    free(seen);
}

int main(int argc, char **argv) {
    if (argc > 2) { /* no other library knows of these */
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
    }
    t_begin(&argc, &argv);
    static long own[WORDS], run[LONG], drawn[ROUNDS], won[ROUNDS], out[ROUNDS];
    MPI_Aint bytes = t_rank == 0 ? sizeof own : 0;
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = own;
        OK(MPI_Win_create(own, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        if (t_rank == 0)
            memset(base, 0, sizeof own);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        drawn[round] = draw();
        won[round] = compete();
        out[round] = swap(1 + (long)t_rank * ROUNDS + round);
        if (round >= ROUNDS / 2 && round % EACH == 0) {
            for (int i = 0; i < LONG; i++)
                run[i] = 1;
            OK(MPI_Accumulate(run, LONG, MPI_LONG, 0, RUN, LONG, MPI_LONG, MPI_SUM, win));
        }
        CHECK(round == 0 || (drawn[round] > drawn[round - 1] && won[round] > won[round - 1]));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    long last[WORDS];
    OK(MPI_Get(last, WORDS, MPI_LONG, 0, 0, WORDS, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    check_all(drawn, last[FETCHED], "drawn");
    check_all(won, last[COMPARED], "won");
    check_all(out, last[SWAPPED], "swapped");
    for (int i = 0; i < LONG; i++)
        CHECK_AT(i, last[RUN + i], (long)t_size * ROUNDS / 2 / EACH);
    OK(MPI_Win_free(&win));
    return t_end();
}
