/* Puts beside accumulates at a target behind an adapter, in the same epoch, before and behind them, short and long, by every synchronisation: what both
 * bring is there when the epoch is over, and Gets of the next one see it. Short ones go in the message of the accumulates, which a variable
 * counts. */
// np: 2,3
// one-host: the adapter is forced
// not-on: mpich (the setting is Tern's)
// not-on: ompi (the setting is Tern's)
#include "counter.h"

enum { LONGS = 40000, EPOCHS = 60, WAYS = 5 };
enum { FENCE, PSCW, FLUSH, LOCK }; /* and all of them in turn */

static long *window, out[LONGS], in[LONGS];
static MPI_Win win;
static MPI_Group origins, targets;

static void begin(int way, int target) {
    if (way == PSCW) {
        OK(MPI_Win_post(origins, 0, win));
        OK(MPI_Win_start(targets, 0, win));
    } else if (way == FLUSH) {
        OK(MPI_Win_lock_all(0, win));
    } else if (way == LOCK) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    } else {
        OK(MPI_Win_fence(0, win));
    }
}

static void end(int way, int target) {
    if (way == PSCW) {
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    } else if (way == FLUSH) {
        OK(MPI_Win_flush(target, win));
        OK(MPI_Win_unlock_all(win));
    } else if (way == LOCK) {
        OK(MPI_Win_unlock(target, win));
    } else {
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    }
}

/* What an epoch writes to a run of the target, and adds to the run behind it. */
static void operate(int epoch, int target, int length) {
    for (int i = 0; i < length; i++)
        out[i] = 1000L * epoch + i;
    int put_first = epoch % 3 == 0, puts_twice = epoch % 3 == 1;
    if (put_first || puts_twice)
        OK(MPI_Put(out, length, MPI_LONG, target, 0, length, MPI_LONG, win));
    OK(MPI_Accumulate(out, length, MPI_LONG, target, LONGS / 2, length, MPI_LONG, MPI_SUM, win));
    if (puts_twice)
        OK(MPI_Put(out, 1, MPI_LONG, target, LONGS / 2 - 1, 1, MPI_LONG, win));
    else if (!put_first)
        OK(MPI_Put(out, length, MPI_LONG, target, 0, length, MPI_LONG, win));
}

static void check(int way, int epoch, int target, int length, long *model) {
    for (int i = 0; i < length; i++)
        model[i] += 1000L * epoch + i;
    begin(way, target);
    OK(MPI_Get(in, LONGS, MPI_LONG, target, 0, LONGS, MPI_LONG, win));
    end(way, target);
    for (int i = 0; i < length; i++) {
        CHECK_AT(i, in[i], 1000L * epoch + i);
        CHECK_AT(i, in[LONGS / 2 + i], model[i]);
    }
    if (epoch % 3 == 1)
        CHECK_EQ(in[LONGS / 2 - 1], 1000L * epoch);
}

int main(int argc, char **argv) {
    static long model[LONGS / 2];
    static const int lengths[] = { 1, 8, 100, 1000, LONGS / 2 - 1 };
    unsetenv("TERN_WIN"); /* that would be messages alone */
    unsetenv("TERN_WIN_SCHEDULE"); /* fixed plans are kept */
    setenv("TERN_DEVICES", "rnic", 1);
    t_begin(&argc, &argv);
    int target = (t_rank + 1) % t_size, origin = (t_rank + t_size - 1) % t_size;
    MPI_Group all;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &target, &targets));
    OK(MPI_Group_incl(all, 1, &origin, &origins));
    window = t_alloc(sizeof(long) * LONGS);
    memset(window, 0, sizeof(long) * LONGS);
    OK(MPI_Win_create(window, sizeof(long) * LONGS, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    t_counted("tern_window_along");
    for (int epoch = 0; epoch < WAYS * EPOCHS; epoch++) {
        int way = epoch < 4 * EPOCHS ? epoch / EPOCHS : (epoch * 7) % 4, length = lengths[epoch / 2 % 5];
        begin(way, target);
        operate(epoch, target, length);
        end(way, target);
        check(way, epoch, target, length, model);
    }
    CHECK(t_counted("tern_window_along") > 0);
    OK(MPI_Win_free(&win));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&targets));
    OK(MPI_Group_free(&origins));
    free(window);
    return t_end();
}
