/* Two ranks, fence behind fence: what one has put, added or got between two of them is there behind the second, also if what the next
 * epoch puts into the same cells goes another way, and neither knows how far the other is. Now and then one computes or asserts something.
 * With two more arguments by Tern's adapter, in this manner and with this schedule, with one more with fences of this kind. */
// np: 2
// args: allocate
// args: create
// args: create rc auto
// args: create rc original
// args: create rc merge-last
// args: create rc aggregate
// args: create rc hybrid
// args: create rc early
// args: create rd auto
// args: create ud auto
// args: create hybrid auto
// args: create rc auto told
// args: create rc auto asked
// timeout: 240
#include <unistd.h>

#include "tern_test.h"

enum { ROUNDS = 600, CELLS = 20000, LONGEST = 12000, KINDS = 6 };

static long *base, own[CELLS + 1], model[2][CELLS + 1], mine[2][LONGEST], into[LONGEST];
static MPI_Win win;
static unsigned state = 5;

static int draw(int below) {
    state = state * 1103515245u + 12345u;
    return (int)(state >> 16) % below;
}

static void put(int round, int origin, int target, int at, int count, int slot) {
    for (int i = 0; i < count; i++) {
        long value = 1000000L * round + 10000L * origin + i;
        model[target][at + i] = value;
        if (t_rank == origin)
            mine[slot][i] = value;
    }
    if (t_rank == origin)
        OK(MPI_Put(mine[slot], count, MPI_LONG, target, at, count, MPI_LONG, win));
}

static void add(int origin, int target, int at, int count) {
    static long ones[LONGEST];
    for (int i = 0; i < count; i++) {
        ones[i] = 1;
        model[target][at + i] += 1;
    }
    if (t_rank == origin)
        OK(MPI_Accumulate(ones, count, MPI_LONG, target, at, count, MPI_LONG, MPI_SUM, win));
}

/* What of the window another epoch has left. */
static void get(int origin, int target, int at, int count) {
    if (t_rank == origin)
        OK(MPI_Get(into, count, MPI_LONG, target, at, count, MPI_LONG, win));
}

/* A cell of the other one's window comes into this one's, where the other one puts something as soon as it may. */
static void hand_back(int round, int origin) {
    for (int i = 0; i < 100; i++)
        model[origin][CELLS / 4 + i] = model[1 - origin][CELLS / 2 + i];
    if (t_rank == origin)
        OK(MPI_Get(base + CELLS / 4, 100, MPI_LONG, 1 - origin, CELLS / 2, 100, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    put(round, 1 - origin, origin, CELLS / 4, 100, 0);
}

static void counted(int origin, int target) {
    static long one = 1, before;
    model[target][CELLS] += 1;
    if (t_rank == origin)
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, CELLS, MPI_SUM, win));
}

int main(int argc, char **argv) {
    if (argc > 2) { /* no other library knows of these */
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
        setenv("TERN_WIN_SCHEDULE", argc > 3 ? argv[3] : "auto", 1);
        setenv("TERN_WIN_FENCE", argc > 4 ? argv[4] : "auto", 1);
    }
    t_begin(&argc, &argv);
    base = own;
    if (argc > 1 && strcmp(argv[1], "create") == 0)
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    else
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, sizeof own);
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (int round = 1; round <= ROUNDS; round++) {
        static const int lengths[] = {1, 3, 200, 1500, LONGEST};
        int got_by = -1, got_at = 0, got = 0;
        for (int origin = 0; origin < 2; origin++) {
            int target = draw(8) == 0 ? origin : 1 - origin, count = lengths[draw(5)];
            int half = CELLS / 2, from = draw(3) * 50, at = origin * half + from, kind = draw(KINDS);
            if (from + count > half) /* none of the other's cells */
                count = half - from;
            switch (kind) {
            case 0: put(round, origin, target, at, count, 0); break;
            case 1: add(origin, target, at, count < 600 ? count : 600); break;
            case 2:
                put(round, origin, target, at, count / 2, 0);
                put(-round, origin, target, at + count / 2, count - count / 2, 1);
                break;
            case 3: counted(origin, target); break;
            case 4: /* of cells that only the other one's operations would change */
                if (got_by >= 0)
                    break;
                got_by = origin, got_at = target, got = count;
                break;
            default: break; /* nothing */
            }
        }
        /* A Get names cells of which nothing else is said in this epoch: those of a round without other operations. */
        if (got_by >= 0) {
            OK(MPI_Win_fence(0, win));
            get(got_by, got_at, 0, got);
        }
        if (got_by < 0 && round % 3 == 0) {
            OK(MPI_Win_fence(0, win));
            hand_back(round, round / 3 % 2);
        }
        if (draw(5) == t_rank)
            usleep(draw(3) * 100);
        else
            draw(3);
        OK(MPI_Win_fence(draw(4) ? 0 : MPI_MODE_NOPUT, win));
        for (int i = 0; got_by == t_rank && i < got; i++)
            CHECK_AT(i, into[i], model[got_at][i]);
        for (int i = 0; i <= CELLS; i++)
            CHECK_AT(i, base[i], model[t_rank][i]);
        OK(MPI_Win_fence(MPI_MODE_NOSTORE, win)); /* the cells have been looked at */
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_free(&win));
    return t_end();
}
