/* What a fence has completed at a target is there for all that come to the target from then on: what one rank has put or
 * added there another gets, and what it puts over that stays. A target that was away, long runs, and ranks that have nothing to
 * do with either make one hear of the fence long before the other. With two more arguments by Tern's adapter, in this manner, with one more with
 * fences of this kind. */
// np: 3+
// args: allocate
// args: create
// args: create rc
// args: create rd
// args: create ud
// args: create hybrid
// args: create rc told
// args: create rc asked
// timeout: 120
#include <unistd.h>

#include "tern_test.h"

enum { ROUNDS = 24, RUN = 1 << 16, SUM = RUN, CELLS = RUN + 1 };

static long *base, own[CELLS], here[RUN], back[RUN];
static MPI_Win win;

static void fence(void) {
    OK(MPI_Win_fence(0, win));
}

static void fill(long value) {
    for (int i = 0; i < RUN; i++)
        here[i] = value + i;
}

/* `first` puts a run at the target and adds to a counter; then `second` gets both, and puts half of the run. */
static void hand_on(int round, int first, int target, int second) {
    int run = round % 3 == 0 ? 1 : round % 3 == 1 ? 1000 : RUN;
    long value = 1000000L * (round + 1), one = 1, sum = -1;
    fence();
    if (t_rank == first) {
        fill(value);
        OK(MPI_Put(here, run, MPI_LONG, target, 0, run, MPI_LONG, win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, target, SUM, 1, MPI_LONG, MPI_SUM, win));
    }
    if (t_rank == target && round % 4 == 0)
        usleep(2000);
    fence();
    if (t_rank == second) {
        OK(MPI_Get(back, run, MPI_LONG, target, 0, run, MPI_LONG, win));
        OK(MPI_Get(&sum, 1, MPI_LONG, target, SUM, 1, MPI_LONG, win));
    }
    fence();
    for (int i = 0; i < run && t_rank == second; i++)
        CHECK_AT(i, back[i], value + i);
    CHECK(t_rank != second || sum >= 1);
    if (t_rank == first) {
        fill(-value);
        OK(MPI_Put(here, run, MPI_LONG, target, 0, run, MPI_LONG, win));
    }
    fence();
    if (t_rank == second) {
        fill(2 * value);
        OK(MPI_Put(here, (run + 1) / 2, MPI_LONG, target, 0, (run + 1) / 2, MPI_LONG, win));
    }
    fence();
    for (int i = 0; i < run && t_rank == target; i++)
        CHECK_AT(i, base[i], i < (run + 1) / 2 ? 2 * value + i : i - value);
}

int main(int argc, char **argv) {
    if (argc > 2) { /* no other library knows of these */
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
        setenv("TERN_WIN_FENCE", argc > 3 ? argv[3] : "auto", 1);
    }
    t_begin(&argc, &argv);
    base = own;
    if (argc > 1 && strcmp(argv[1], "create") == 0)
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    else
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, sizeof own);
    for (int round = 0; round < ROUNDS; round++)
        hand_on(round, round % t_size, (round + 1) % t_size, (round + 2) % t_size);
    fence();
    OK(MPI_Win_free(&win));
    return t_end();
}
