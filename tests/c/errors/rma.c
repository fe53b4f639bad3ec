/* What is wrong with one-sided calls, and its class; after each the window goes on. */
// args: allocate
// args: create
// not-on: mpich (gives MPI_ERR_ARG for a wrong type of lock)
#include "tern_test.h"

static int *base, value = 7, result, next, own[10], creates;
static MPI_Win win = MPI_WIN_NULL, other;
static MPI_Group group, world;
static MPI_Request request;

static void making(void) {
    FAILS(MPI_Win_allocate(-1, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
    FAILS(MPI_Win_allocate(40, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_create(own, 40, -4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_create(own, -40, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    FAILS(MPI_Win_create((void *)(uintptr_t)-64, 128, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    if (creates) {
        base = own;
        OK(MPI_Win_create(own, sizeof own, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(sizeof own, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(base, 0, sizeof own);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void without_epoch(void) {
    /* No epoch is open. */
    FAILS(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush(next, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_local(next, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_test(win, &result), MPI_ERR_RMA_SYNC);

    /* Arguments. */
    FAILS(MPI_Win_lock(7, next, 0, win), MPI_ERR_LOCKTYPE);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, t_size, 0, win), MPI_ERR_RANK);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, next, 12345, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_fence(1, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_lock_all(MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_attach(win, &value, 4), MPI_ERR_RMA_FLAVOR);
    FAILS(MPI_Win_detach(win, &value), MPI_ERR_RMA_FLAVOR);
    FAILS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
}

static void locked(void) {
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    if (t_size > 1)
        FAILS(MPI_Put(&value, 1, MPI_INT, t_rank, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Put(&value, 1, MPI_INT, t_size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    FAILS(MPI_Put(&value, 1, MPI_INT, -7, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    FAILS(MPI_Put(&value, -1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    FAILS(MPI_Put(&value, 1, MPI_DATATYPE_NULL, next, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    FAILS(MPI_Put(NULL, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_BUFFER);
    FAILS(MPI_Put(&value, 1, MPI_INT, next, 10, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(&value, 1, MPI_INT, next, (MPI_Aint)1 << 61, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(&value, 1, MPI_INT, next, -1, 1, MPI_INT, win), MPI_ERR_DISP);
    FAILS(MPI_Put(&value, 1, MPI_INT, next, 0, 2, MPI_INT, win), MPI_ERR_TYPE);
    FAILS(MPI_Get(&result, 1, MPI_INT, next, 11, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Accumulate(&value, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
    FAILS(MPI_Accumulate(&value, 1, MPI_INT, next, 0, 1, MPI_FLOAT, MPI_SUM, win), MPI_ERR_TYPE);
    FAILS(MPI_Accumulate(&value, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_MAXLOC, win), MPI_ERR_OP);
    FAILS(MPI_Fetch_and_op(&value, &result, MPI_INT, next, 10, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Compare_and_swap(&value, &value, &result, MPI_DOUBLE, next, 0, win), MPI_ERR_TYPE);
    FAILS(MPI_Rput(&value, 1, MPI_INT, next, 10, 1, MPI_INT, win, &request), MPI_ERR_RMA_RANGE);
    OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 99, 1, MPI_INT, win));
    OK(MPI_Put(&value, 0, MPI_INT, next, 10, 0, MPI_INT, win));
    OK(MPI_Put(&value, 1, MPI_INT, next, 9, 1, MPI_INT, win));
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[9], 7);
    for (int i = 0; i < 9; i++)
        CHECK_AT(i, base[i], 0);
}

static void other_epochs(void) {
    /* Epochs of start, and of fence. */
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &next, &group));
    int left = (t_rank + t_size - 1) % t_size;
    MPI_Group origin;
    OK(MPI_Group_incl(world, 1, &left, &origin));
    OK(MPI_Win_post(origin, 0, win));
    FAILS(MPI_Win_post(origin, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_start(group, 0, win));
    FAILS(MPI_Win_start(group, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Rput(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request), MPI_ERR_RMA_SYNC);
    if (t_size > 1)
        FAILS(MPI_Put(&value, 1, MPI_INT, t_rank, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win));
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_start(group, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(MPI_MODE_NOPRECEDE, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    FAILS(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&origin));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&win));
}

static void dynamic(void) {
    /* Dynamic windows: what is not attached is told by the target. */
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &other));
    OK(MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN));
    OK(MPI_Win_attach(other, own, sizeof own));
    FAILS(MPI_Win_attach(other, own + 1, 4), MPI_ERR_RMA_ATTACH);
    FAILS(MPI_Win_detach(other, own + 1), MPI_ERR_RMA_ATTACH);
    MPI_Aint at, *all = t_alloc(sizeof at * t_size);
    OK(MPI_Get_address(own, &at));
    OK(MPI_Allgather(&at, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, other));
    OK(MPI_Put(&value, 1, MPI_INT, next, all[next] + 40, 1, MPI_INT, other));
    FAILS(MPI_Win_flush(next, other), MPI_ERR_RMA_RANGE);
    OK(MPI_Get(&result, 1, MPI_INT, next, all[next] - 2, 1, MPI_INT, other));
    FAILS(MPI_Win_flush(next, other), MPI_ERR_RMA_RANGE);
    OK(MPI_Put(&value, 1, MPI_INT, next, all[next] + 12, 1, MPI_INT, other));
    OK(MPI_Win_unlock(next, other));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(own[3], 7);
    OK(MPI_Win_detach(other, own));
    FAILS(MPI_Win_shared_query(other, 0, &at, &result, &base), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_free(&other));
}

static void promised(void) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Win_allocate(40, 4, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    next = (t_rank + 1) % t_size;
    creates = argc > 1 && strcmp(argv[1], "create") == 0;
    making();
    without_epoch();
    locked();
    other_epochs();
    dynamic();
    promised();
    return t_end();
}
