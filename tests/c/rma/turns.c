/* Epochs one after the other in which a pair of ranks changes each other's memory by accumulates, by Puts, or by both, and reads it back: whatever way
 * an operation takes, it is seen by those of the next epoch. Fences and PSCW take turns with what is passive, and so do lengths. */
// np: 2,4
#include "tern_test.h"

enum { ROOM = 40000, STEPS = 400 };

static long model[ROOM], out[ROOM], in[ROOM];
static long *window;
static MPI_Win win;
static MPI_Group group;
static int peer;
static unsigned state;

static unsigned draw(unsigned below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static void add(int at, int count, long what)
{
    for (int i = 0; i < count; i++)
        out[at + i] = what + i;
    OK(MPI_Accumulate(out + at, count, MPI_LONG, peer, at, count, MPI_LONG, MPI_SUM, win));
    for (int i = 0; i < count; i++)
        model[at + i] += what + i;
}

static void put(int at, int count, long what)
{
    for (int i = 0; i < count; i++)
        model[at + i] = out[at + i] = what - i;
    OK(MPI_Put(out + at, count, MPI_LONG, peer, at, count, MPI_LONG, win));
}

/* One or two operations at different places. */
static void operate(int step)
{
    static const int lengths[] = { 1, 3, 100, 700, 5000, ROOM / 2 };
    int count = lengths[draw(6)], second = lengths[draw(6)];
    int at = (int)draw((unsigned)(ROOM / 2 - count + 1)), other = ROOM / 2 + (int)draw((unsigned)(ROOM / 2 - second + 1));
    switch (draw(5)) {
    case 0:
        put(at, count, step);
        break;
    case 1:
        add(at, count, step);
        put(other, second, 7 * step);
        break;
    default:
        add(at, count, 3 * step);
        add(other, second, -step);
        break;
    }
}

static void sum(void)
{
    long one = 1, before = -1;
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, peer, 5, MPI_SUM, win));
    OK(MPI_Win_flush(peer, win));
    CHECK_EQ(before, model[5]);
    model[5]++;
}

static void check(void)
{
    for (int i = 0; i < ROOM; i++)
        CHECK_AT(i, in[i], model[i]);
}

/* So that what is on its way is seen by whoever comes too early. */
static void read_back(void)
{
    OK(MPI_Get(in, ROOM, MPI_LONG, peer, 0, ROOM, MPI_LONG, win));
}

static void step(int number, int kind)
{
    switch (kind) {
    case 0:
    case 1:
        operate(number);
        OK(MPI_Win_fence(0, win));
        break;
    case 2:
        read_back();
        OK(MPI_Win_fence(0, win));
        check();
        break;
    case 3:
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        OK(MPI_Win_post(group, 0, win));
        OK(MPI_Win_start(group, 0, win));
        operate(number);
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        break;
    case 4:
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        OK(MPI_Win_lock(number % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, peer, 0, win));
        operate(number);
        OK(MPI_Win_flush(peer, win));
        sum();
        OK(MPI_Win_unlock(peer, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        break;
    default: /* behind operations of a fence, without a message that is waited for */
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, peer, MPI_MODE_NOCHECK, win));
        if (number % 2) {
            sum();
        } else {
            read_back();
            OK(MPI_Win_flush(peer, win));
            check();
        }
        OK(MPI_Win_unlock(peer, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        break;
    }
}

int main(int argc, char **argv)
{
    MPI_Group members;
    MPI_Comm pair;
    t_begin(&argc, &argv);
    /* In pairs over the middle, so that of ranks on several hosts they are on different ones. */
    int other = t_size - 1 - t_rank;
    OK(MPI_Comm_split(MPI_COMM_WORLD, t_rank < other ? t_rank : other, t_rank, &pair));
    for (int all = 0; all < 2; all++) {
        MPI_Comm comm = all ? MPI_COMM_WORLD : pair;
        peer = all ? other : t_rank < other;
        OK(MPI_Comm_group(comm, &members));
        OK(MPI_Group_incl(members, 1, &peer, &group));
        OK(MPI_Win_allocate(sizeof(long) * ROOM, sizeof(long), MPI_INFO_NULL, comm, &window, &win));
        for (int i = 0; i < ROOM; i++)
            window[i] = model[i] = 0;
        OK(MPI_Win_fence(0, win));
        state = 1;
        for (int i = 0; i < STEPS; i++) {
            /* All ranks draw the same kinds, each its own operations; most of them behind accumulates. */
            int kind = (int)draw(6);
            unsigned common = state;
            state += 77u * (unsigned)t_rank;
            step(i, i % 3 == 2 ? kind : i % 2 ? 0 : 2);
            state = common;
        }
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        OK(MPI_Win_free(&win));
        OK(MPI_Group_free(&group));
        OK(MPI_Group_free(&members));
    }
    OK(MPI_Comm_free(&pair));
    return t_end();
}
