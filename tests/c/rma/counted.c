/* Of many short operations a target of MPI_Win_create is told in messages, which nobody acknowledges where it waits for the end of the epoch itself. What comes next
 * finds them done, by whomever and in whatever way: it is copied, told as well, or the target looks at its memory. The target has much to heed when it comes late. */
// np: 2+
// args: fence
// args: pscw
// timeout: 120
#include <unistd.h>

#include "tern_test.h"

enum { ROUNDS = 96, CELLS = 4000 };

static long own[CELLS], got[CELLS], one = 1, seven = 7;
static MPI_Win win;

static void fence(int assert) {
    OK(MPI_Win_fence(assert, win));
}

/* One to each of the first cells of the target. */
static void tell(int target, int cells) {
    for (int i = 0; i < cells; i++)
        OK(MPI_Accumulate(&one, 1, MPI_LONG, target, i, 1, MPI_LONG, MPI_SUM, win));
}

static void is_one(const long *found, int cells) {
    for (int i = 0; i < cells; i++)
        CHECK_AT(i, found[i], 1);
}

/* What is begun first behind the fence, of which the next one, or the lock, is the end. */
static void follow(int round, int target, int cells) {
    long old = -1;
    switch (round % 5) {
    case 0: /* one copy */
        OK(MPI_Get(got, cells, MPI_LONG, target, 0, cells, MPI_LONG, win));
        fence(0);
        is_one(got, cells);
        break;
    case 1: /* one that is read and written */
        OK(MPI_Fetch_and_op(&seven, &old, MPI_LONG, target, cells - 1, MPI_SUM, win));
        fence(0);
        CHECK(old == 1);
        break;
    case 2: /* one copy that stays */
        OK(MPI_Put(&seven, 1, MPI_LONG, target, cells - 1, 1, MPI_LONG, win));
        fence(0);
        break;
    case 3: /* many that stay, which are told as well */
        for (int i = 0; i < cells; i++)
            OK(MPI_Put(&seven, 1, MPI_LONG, target, i, 1, MPI_LONG, win));
        fence(0);
        break;
    default: /* another kind of epoch */
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        OK(MPI_Get(got, cells, MPI_LONG, target, 0, cells, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
        is_one(got, cells);
        fence(0);
    }
}

static void by_fences(int round, int teller, int target, int other, int cells) {
    fence(0);
    if (t_rank == teller)
        tell(target, cells);
    if (t_rank == target && round % 2)
        usleep(300);
    fence(round % 5 == 4 ? MPI_MODE_NOSUCCEED : 0);
    if (t_rank == target && (round % 5 == 0 || round % 5 == 4)) /* nobody changes it meanwhile */
        is_one(own, cells);
    if (t_rank == other)
        follow(round, target, cells);
    else
        fence(0);
    long kept = round % 5 == 3 || round % 5 == 2 ? 7 : round % 5 == 1 ? 8 : 1;
    if (t_rank == target)
        CHECK(own[cells - 1] == kept);
    if (t_rank == target)
        CHECK(own[0] == (round % 5 == 3 ? 7 : 1));
}

static void by_groups(int round, int teller, int target, int cells) {
    MPI_Group all, peer;
    int whom = t_rank == teller ? target : teller, done = 0;
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, &whom, &peer));
    if (t_rank == target)
        OK(MPI_Win_post(peer, 0, win));
    if (t_rank == teller) {
        OK(MPI_Win_start(peer, 0, win));
        tell(target, cells);
        OK(MPI_Win_complete(win));
    }
    if (t_rank == target) {
        if (round % 2)
            usleep(300);
        if (round % 3)
            OK(MPI_Win_wait(win));
        for (; round % 3 == 0 && !done;)
            OK(MPI_Win_test(win, &done));
        is_one(own, cells);
    }
    OK(MPI_Group_free(&peer));
    OK(MPI_Group_free(&all));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int groups = argc > 1 && strcmp(argv[1], "pscw") == 0;
    OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int round = 0; round < ROUNDS; round++) {
        int teller = round % t_size, target = (round + 1) % t_size, other = (round + 2) % t_size;
        int cells = (int[]){20, 300, CELLS}[round % 3];
        if (round % 16 == 15) /* what a rank tells itself */
            target = teller;
        memset(own, 0, sizeof own);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (groups)
            by_groups(round, teller, target, cells);
        else
            by_fences(round, teller, target, other, cells);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_free(&win));
    return t_end();
}
