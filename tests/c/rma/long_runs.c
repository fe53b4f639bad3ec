/* Long accumulates of all ranks to one, among them single fetches, accumulates and swaps of the same elements: nothing
 * is lost, whatever way each goes. */
// args: allocate
// args: create
#include "tern_test.h"

enum { ELEMENTS = 4096, ROUNDS = 40, SINGLES = 60 };

static long *base, own[ELEMENTS], ones[ELEMENTS], before[ELEMENTS];
static double halves[ELEMENTS / 2];

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Win win;
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = own;
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
    memset(base, 0, sizeof own);
    for (int i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    for (int i = 0; i < ELEMENTS / 2; i++)
        halves[i] = 0.5;
    OK(MPI_Win_fence(0, win));
    /* Each origin sees each of its elements grow, by its own additions at least. */
    long seen = -1, one = 1, got = -1;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2)
            OK(MPI_Accumulate(ones, ELEMENTS, MPI_LONG, 0, 0, ELEMENTS, MPI_LONG, MPI_SUM, win));
        else
            OK(MPI_Get_accumulate(ones, ELEMENTS, MPI_LONG, before, ELEMENTS, MPI_LONG, 0, 0, ELEMENTS, MPI_LONG,
                                  MPI_SUM, win));
        for (int i = 0; i < SINGLES; i++) {
            OK(MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, (round * SINGLES + i) % ELEMENTS, MPI_SUM, win));
            OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 7, 1, MPI_LONG, MPI_SUM, win));
        }
    }
    OK(MPI_Win_fence(0, win));
    if (t_rank == 0)
        for (int i = 0; i < ELEMENTS; i++) {
            long singles = i < ROUNDS * SINGLES, sevens = i == 7 ? ROUNDS * SINGLES : 0;
            CHECK_AT(i, base[i], (ROUNDS + singles + sevens) * t_size);
        }
    /* An origin that is alone. */
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_size - 1, 0, win));
        OK(MPI_Get(&seen, 1, MPI_LONG, t_size - 1, 9, 1, MPI_LONG, win));
        OK(MPI_Win_flush(t_size - 1, win)); /* a Get has no order among accumulates */
        OK(MPI_Get_accumulate(ones, ELEMENTS, MPI_LONG, before, ELEMENTS, MPI_LONG, t_size - 1, 0, ELEMENTS, MPI_LONG,
                              MPI_SUM, win));
        OK(MPI_Win_flush(t_size - 1, win));
        CHECK_EQ(before[9], seen);
        OK(MPI_Get(&got, 1, MPI_LONG, t_size - 1, 9, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(t_size - 1, win));
        CHECK_EQ(got, seen + 1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Doubles, in one half of the window only. */
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, 0, win));
    memset(base, 0, sizeof own);
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Win_fence(0, win));
    for (int round = 0; round < ROUNDS; round++)
        OK(MPI_Accumulate(halves, ELEMENTS / 2, MPI_DOUBLE, 0, ELEMENTS / 2, ELEMENTS / 2, MPI_DOUBLE, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    if (t_rank == 0)
        for (int i = 0; i < ELEMENTS; i++) {
            double value;
            memcpy(&value, &base[i], sizeof value);
            CHECK_AT(i, value == (i < ELEMENTS / 2 ? 0.0 : 0.5 * ROUNDS * t_size), 1);
        }
    OK(MPI_Win_free(&win));
    return t_end();
}
