/* What a returned error of a window says: its name, the target and where in it. With two more arguments by Tern's adapter, in this manner,
 * and with fences of this kind. */
// np: 2+
// args: allocate
// args: create
// args: create rc told
// args: create rc asked
// args: create rd told
// args: create hybrid auto
// not-on: mpich (texts are Tern's)
// not-on: ompi (texts are Tern's)
#include "../window.h"

static int *base, own[100], value = 7, next;
static MPI_Win win;

/* Each names the window. */
#define CELLS(call, class, ...) SAYS(call, class, "window cells", __VA_ARGS__)

static void fixed(void) {
    char target[32];
    snprintf(target, sizeof target, "target %d", next);
    CELLS(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC, target, "no access epoch is open");
    CELLS(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC, target, "was not locked");
    CELLS(MPI_Win_flush(next, win), MPI_ERR_RMA_SYNC, target, "is not locked");
    CELLS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC, "MPI_Win_start has not been called");
    CELLS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC, "MPI_Win_post has not been called");
    CELLS(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT, "`assert` is 1024");
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    CELLS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win), MPI_ERR_RMA_SYNC, target, "locked already");
    CELLS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC, "cannot be freed");
    CELLS(MPI_Put(&value, 1, MPI_INT, next, 100, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, target, "bytes 400 to 404", "400 bytes");
    CELLS(MPI_Get(&value, 1, MPI_INT, next, (MPI_Aint)1 << 62, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, target,
         "bytes 18446744073709551616 to");
    CELLS(MPI_Accumulate(&value, 1, MPI_INT, next, -3, 1, MPI_INT, MPI_SUM, win), MPI_ERR_DISP, target, "-3");
    CELLS(MPI_Compare_and_swap(&value, &value, &value, MPI_INT, next, 101, win), MPI_ERR_RMA_RANGE, target, "bytes 404 to 408");
    CELLS(MPI_Put_c(&value, 1, MPI_INT, next, 7, (MPI_Count)1 << 61, MPI_INT, win), MPI_ERR_COUNT, target, "displacement 7");
    OK(MPI_Win_unlock(next, win));
}

/* Fences in which ranks assert different things: who hears of the odd one says so, and the fence is one all the same. By words in shared memory that is the rank
 * behind it, and the odd one of the rank before; messages tell all. */
static void unlike(void) {
    char odd[32];
    int by_words = t_is_by_words(win);
    for (int round = 0; round < 50; round++) {
        int which = round % t_size, last = (t_rank + t_size - 1) % t_size;
        int assert = t_rank == which ? MPI_MODE_NOPRECEDE : 0;
        int heard = by_words ? last : t_rank == which ? t_rank == 0 : which;
        snprintf(odd, sizeof odd, "rank %d of the window", heard);
        if (t_rank == which || last == which || !by_words)
            CELLS(MPI_Win_fence(assert, win), MPI_ERR_ASSERT, odd, "neither", "MPI_MODE_NOPRECEDE");
        else
            OK(MPI_Win_fence(assert, win));
        value = 100 * round + t_rank;
        OK(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win));
        OK(MPI_Win_fence(round % 3 ? MPI_MODE_NOSTORE : 0, win));
        CHECK_AT(round, base[0], 100 * round + last);
        OK(MPI_Win_fence(0, win));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

/* Attached too late, detached too early: the target refuses, and the origin says where. */
static void dynamic(void) {
    char target[32], place[64];
    MPI_Request request;
    MPI_Aint at, *all = t_alloc(sizeof at * t_size);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_name(win, "cells"));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Get_address(own, &at));
    OK(MPI_Allgather(&at, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD));
    snprintf(target, sizeof target, "target %d", next);
    snprintf(place, sizeof place, "displacement %#llx", (long long)all[next] + 12);
    for (int round = 0; round < 2; round++) {
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Put(&value, 1, MPI_INT, next, all[next] + 12, 1, MPI_INT, win));
        CELLS(MPI_Win_flush(next, win), MPI_ERR_RMA_RANGE, target, place);
        OK(MPI_Accumulate(&value, 1, MPI_INT, next, all[next] + 12, 1, MPI_INT, MPI_SUM, win));
        CELLS(MPI_Win_flush_all(win), MPI_ERR_RMA_RANGE, target, place);
        OK(MPI_Rget(&value, 1, MPI_INT, next, all[next] + 12, 1, MPI_INT, win, &request));
        CELLS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_RMA_RANGE, target, place);
        CELLS(MPI_Win_unlock_all(win), MPI_ERR_RMA_RANGE, target, place);
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        OK(MPI_Put(&value, 1, MPI_INT, next, all[next] + 12, 1, MPI_INT, win));
        CELLS(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), MPI_ERR_RMA_RANGE, target, place);
        if (round == 0) {
            /* From here to the detach it is there. */
            OK(MPI_Win_attach(win, own, sizeof own));
            OK(MPI_Win_fence(0, win));
            value = 70 + t_rank;
            OK(MPI_Put(&value, 1, MPI_INT, next, all[next] + 12, 1, MPI_INT, win));
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
            CHECK_EQ(own[3], 70 + (t_rank + t_size - 1) % t_size);
            OK(MPI_Win_detach(win, own));
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    free(all);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    if (argc > 2) {
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
        setenv("TERN_WIN_FENCE", argv[3], 1);
    }
    t_begin(&argc, &argv);
    next = (t_rank + 1) % t_size;
    base = own;
    if (argc > 1 && strcmp(argv[1], "create") == 0)
        OK(MPI_Win_create(own, sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    else
        OK(MPI_Win_allocate(sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_name(win, "cells"));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    fixed();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unlike();
    OK(MPI_Win_free(&win));
    dynamic();
    return t_end();
}
