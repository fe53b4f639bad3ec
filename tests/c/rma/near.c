/* A window of MPI_Win_allocate over several hosts: what ranks of one host do to each other's memory and what those of others do to it, by every
 * synchronisation, so that whatever way an operation takes it is seen by those that come behind it. Where the library is Tern the info key
 * `tern_win_path`, MPI_Win_shared_query and a variable say that ranks of one host do it themselves. */
// np: 2+
// timeout: 120
#include "../window.h"
#include "counter.h"

enum { ROOM = 256, LONG = 3000, ROUNDS = 24 };
/* Where in the window is what. */
enum { COUNT = 0, GUARD = 1, GUARDED = 2, SLOTS = 8, STRIPES = 64, RUN = ROOM, ALL = RUN + LONG };

static long *window, out[ALL], in[ALL];
static MPI_Win win;
static int is_near[64], near_ranks, is_tern;

/* Which ranks share memory with this one. */
static void look_around(void)
{
    MPI_Comm host;
    MPI_Group near, all;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_group(host, &near));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Comm_size(host, &near_ranks));
    for (int place = 0; place < near_ranks; place++) {
        int rank;
        OK(MPI_Group_translate_ranks(near, 1, &place, all, &rank));
        is_near[rank] = 1;
    }
    OK(MPI_Group_free(&near));
    OK(MPI_Group_free(&all));
    OK(MPI_Comm_free(&host));
}

/* What is said of the window, and what is so. */
static void is_told(void)
{
    const char *path = t_path_of(win);
    const char *way = getenv("TERN_WIN");
    int is_active = way && strcmp(way, "active") == 0, is_mixed = near_ranks < t_size && !is_active;
    int copies = strstr(path, "Put and Get on this host by the origin in shared memory") != NULL;
    CHECK_EQ(copies, is_mixed && near_ranks > 1);
    CHECK_EQ(strncmp(path, "direct", 6) == 0, near_ranks == t_size && !is_active);

    for (int rank = 0; rank < t_size; rank++) {
        MPI_Aint size;
        int unit;
        long *there;
        OK(MPI_Win_shared_query(win, rank, &size, &unit, &there));
        if (rank == t_rank || (is_near[rank] && !is_active)) {
            CHECK_EQ(size, sizeof(long) * ALL);
            CHECK(there != NULL);
            CHECK_AT(rank, there[SLOTS], rank);
        } else {
            CHECK_EQ(size, 0);
            CHECK(there == NULL);
        }
        CHECK_EQ(unit, sizeof(long));
        uint64_t before = t_counted("tern_window_copied");
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Get(in, 1, MPI_LONG, rank, SLOTS, 1, MPI_LONG, win));
        OK(MPI_Win_flush(rank, win));
        CHECK_AT(rank, in[0], rank);
        OK(MPI_Win_unlock_all(win));
        CHECK_AT(rank, t_counted("tern_window_copied") - before, is_mixed && is_near[rank]);
    }
}

/* An exclusive lock excludes all others, wherever they are. */
static void locked(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        int target = (t_rank + round) % t_size;
        long mine = 1000 * round + t_rank;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        if (round % 3 == 0) { /* before it is known that the lock is held */
            OK(MPI_Put(&mine, 1, MPI_LONG, target, SLOTS + t_rank, 1, MPI_LONG, win));
            OK(MPI_Win_flush(target, win));
            OK(MPI_Get(&in[1], 1, MPI_LONG, target, SLOTS + t_rank, 1, MPI_LONG, win));
        }
        OK(MPI_Get(&in[0], 1, MPI_LONG, target, COUNT, 1, MPI_LONG, win));
        OK(MPI_Win_flush(target, win));
        if (round % 3 == 0)
            CHECK_AT(round, in[1], mine);
        out[0] = in[0] + 1;
        OK(MPI_Put(out, 1, MPI_LONG, target, COUNT, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
    }
    for (int round = 0; round < ROUNDS; round++) { /* without a flush: all of it may go with the lock */
        int target = (t_rank + round) % t_size, count = round % 2 ? LONG : 3;
        for (int i = 0; i < count; i++)
            out[i] = round + i;
        OK(MPI_Win_lock(round % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win));
        if (round % 2 == 0)
            OK(MPI_Put(&out[0], 1, MPI_LONG, target, SLOTS + t_rank, 1, MPI_LONG, win));
        else
            OK(MPI_Put(out, count, MPI_LONG, target, RUN, count, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        OK(MPI_Get(in, LONG, MPI_LONG, target, RUN, LONG, MPI_LONG, win));
        OK(MPI_Get(&in[LONG], 1, MPI_LONG, target, SLOTS + t_rank, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
        if (round % 2 == 0)
            CHECK_AT(round, in[LONG], out[0]);
        for (int i = 1; i < LONG; i++) /* of one writer alone */
            CHECK_AT(round, in[i] - in[0], in[1] == 0 ? 0 : i);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win));
    long rounds = 0;
    for (int rank = 0; rank < t_size; rank++)
        for (int round = 0; round < ROUNDS; round++)
            rounds += (rank + round) % t_size == t_rank;
    CHECK_EQ(window[COUNT], rounds);
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A lock of the program's own, of atomic operations, guards what Puts and Gets change. */
static void guarded(void)
{
    long zero = 0, one = 1, before;
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        int target = (t_rank + round) % t_size;
        do {
            OK(MPI_Compare_and_swap(&one, &zero, &before, MPI_LONG, target, GUARD, win));
            OK(MPI_Win_flush(target, win));
        } while (before != 0);
        OK(MPI_Get(in, 1, MPI_LONG, target, GUARDED, 1, MPI_LONG, win));
        OK(round % 2 ? MPI_Win_flush(target, win) : MPI_Win_flush_local_all(win));
        out[0] = in[0] + 1;
        OK(MPI_Put(out, 1, MPI_LONG, target, GUARDED, 1, MPI_LONG, win));
        OK(round % 3 ? MPI_Win_flush(target, win) : MPI_Win_flush_all(win));
        OK(MPI_Accumulate(&zero, 1, MPI_LONG, target, GUARD, 1, MPI_LONG, MPI_REPLACE, win));
        OK(MPI_Win_flush(target, win));
        /* And a counter beside it. */
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, COUNT, MPI_SUM, win));
        OK(MPI_Win_flush_local(target, win));
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    CHECK_EQ(window[GUARDED], window[COUNT]);
    long sum = 0;
    for (int target = 0; target < t_size; target++) {
        OK(MPI_Get(&in[target], 1, MPI_LONG, target, GUARDED, 1, MPI_LONG, win));
        OK(MPI_Win_flush_local(target, win));
        sum += in[target];
    }
    CHECK_EQ(sum, (long)t_size * ROUNDS);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_unlock_all(win));
}

/* Operations with requests, and types with gaps on either side. */
static void requested(void)
{
    MPI_Datatype stripes;
    MPI_Request requests[2];
    OK(MPI_Type_vector(8, 1, 3, MPI_LONG, &stripes));
    OK(MPI_Type_commit(&stripes));
    memset(window + STRIPES, 0, sizeof(long) * 24);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int distance = 0; distance < t_size; distance++) {
        int target = (t_rank + distance) % t_size;
        for (int i = 0; i < 24; i++)
            out[i] = 100 * t_rank + i, in[i] = -1;
        OK(MPI_Rput(out, 1, stripes, target, STRIPES, 1, stripes, win, &requests[0]));
        OK(MPI_Rget(in, 8, MPI_LONG, (target + 1) % t_size, SLOTS, 1, stripes, win, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Rget(in, 1, stripes, target, STRIPES, 8, MPI_LONG, win, &requests[0]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        CHECK_AT(distance, in[0], out[0]);
        CHECK_AT(distance, in[9], out[3]);
        CHECK_AT(distance, in[18], out[6]);
        CHECK_AT(distance, in[3], 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Type_free(&stripes));
}

/* Epochs of fences that accumulate, overwrite that, and are read by somebody else. */
static void fenced(void)
{
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (int round = 0; round < ROUNDS; round++) {
        for (int target = 0; target < t_size; target++) {
            out[target] = 1000000 * (round + 1) + 100 * t_rank + target;
            OK(MPI_Accumulate(&out[target], 1, MPI_LONG, target, SLOTS + t_rank, 1, MPI_LONG, MPI_SUM, win));
        }
        OK(MPI_Win_fence(0, win));
        for (int target = 0; target < t_size; target++)
            OK(MPI_Put(&out[target], 1, MPI_LONG, target, SLOTS + t_rank, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        for (int rank = 0; rank < t_size; rank++)
            CHECK_AT(round, window[SLOTS + rank], 1000000 * (round + 1) + 100 * rank + t_rank);
        for (int target = 0; target < t_size; target++)
            OK(MPI_Get(&in[target * t_size], t_size, MPI_LONG, target, SLOTS, t_size, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        for (int at = 0; at < t_size * t_size; at++)
            CHECK_AT(round, in[at], 1000000 * (round + 1) + 100 * (at % t_size) + at / t_size);
        OK(MPI_Put(&out[0], 1, MPI_LONG, (t_rank + round) % t_size, RUN + t_rank, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

/* Each exposes its memory to all others, when it is ready. */
static void started(void)
{
    MPI_Group all, others;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_excl(all, 1, &t_rank, &others));
    for (int round = 0; round < ROUNDS; round++) {
        for (int rank = 0; rank < t_size; rank++)
            window[SLOTS + rank] = -1, window[RUN + rank] = 10 * round + t_rank;
        OK(MPI_Win_post(others, 0, win));
        OK(MPI_Win_start(others, 0, win));
        for (int target = 0; target < t_size; target++) {
            if (target == t_rank)
                continue;
            out[target] = 100 * round + t_rank;
            OK(MPI_Put(&out[target], 1, MPI_LONG, target, SLOTS + t_rank, 1, MPI_LONG, win));
            OK(MPI_Get(&in[target], 1, MPI_LONG, target, RUN + t_rank, 1, MPI_LONG, win));
            if (round % 2)
                OK(MPI_Accumulate(&out[target], 1, MPI_LONG, target, COUNT, 1, MPI_LONG, MPI_MAX, win));
        }
        OK(MPI_Win_complete(win));
        for (int target = 0; target < t_size; target++)
            if (target != t_rank)
                CHECK_AT(round, in[target], 10 * round + target);
        OK(MPI_Win_wait(win));
        for (int rank = 0; rank < t_size; rank++)
            CHECK_AT(round, window[SLOTS + rank], rank == t_rank ? -1 : 100 * round + rank);
    }
    OK(MPI_Group_free(&others));
    OK(MPI_Group_free(&all));
}

int main(int argc, char **argv)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    t_begin(&argc, &argv);
    look_around();
    OK(MPI_Get_library_version(library, &length));
    is_tern = strncmp(library, "Tern", 4) == 0;
    OK(MPI_Win_allocate(sizeof(long) * ALL, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, 0, win));
    memset(window, 0, sizeof(long) * ALL);
    window[SLOTS] = t_rank;
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (is_tern)
        is_told();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    locked();
    window[COUNT] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    guarded();
    requested();
    memset(window + SLOTS, 0, sizeof(long) * 24);
    fenced();
    started();
    for (int target = 0; target < t_size && is_tern; target++) { /* others do not look */
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        FAILS(MPI_Put(out, 1, MPI_LONG, target, ALL, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
        FAILS(MPI_Get(in, 2, MPI_LONG, target, ALL - 1, 2, MPI_LONG, win), MPI_ERR_RMA_RANGE);
        OK(MPI_Win_unlock(target, win));
    }
    OK(MPI_Win_free(&win));
    return t_end();
}
