/* Every hint that MPI 5.0 section 12.2.1 names: a window made with it says so and does what it did without. */
// np: 1+
// not-on: ompi (MPI_Win_shared_query gives whole pages where parts are apart)
#include "tern_test.h"

enum { COUNT = 64 };
static const char *const hints[][2] = {
    {"no_locks", "true"},
    {"accumulate_ordering", "none"},
    {"accumulate_ordering", "rar,waw"},
    {"accumulate_ordering", "raw,war,rar,waw"},
    {"accumulate_ops", "same_op"},
    {"accumulate_ops", "same_op_no_op"},
    {"same_size", "true"},
    {"same_disp_unit", "true"},
    {"mpi_accumulate_granularity", "8"},
};

static void is(MPI_Win win, const char *key, const char *want) {
    char got[MPI_MAX_INFO_VAL + 1];
    int length = sizeof got, found;
    MPI_Info info;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, key, &length, got, &found));
    CHECK(found);
    CHECK_STR(got, want);
    OK(MPI_Info_free(&info));
}

/* Sums and Puts of all ranks at the next one, under fence. */
static void works(MPI_Win win, const long *base) {
    int next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    long mine[COUNT], one = 1;
    for (int i = 0; i < COUNT; i++)
        mine[i] = 100 * t_rank + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine, COUNT, MPI_LONG, next, 0, COUNT, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < COUNT; i++)
        CHECK_AT(i, base[i], 100 * last + i);
    OK(MPI_Win_fence(0, win));
    for (int rank = 0; rank < t_size; rank++)
        OK(MPI_Accumulate(&one, 1, MPI_LONG, rank, 1, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(base[1], 100 * last + 1 + t_size);
}

static void each(void) {
    /* Others may leave out hints that they do not use. */
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OK(MPI_Get_library_version(version, &length));
    int keeps = strstr(version, "Tern") != NULL;
    for (size_t at = 0; at < sizeof hints / sizeof *hints; at++)
        for (int creates = 0; creates < 2; creates++) {
            long own[COUNT] = {0}, *base = own;
            MPI_Win win;
            MPI_Info info;
            OK(MPI_Info_create(&info));
            OK(MPI_Info_set(info, hints[at][0], hints[at][1]));
            if (creates)
                OK(MPI_Win_create(own, sizeof own, sizeof *own, info, MPI_COMM_WORLD, &win));
            else
                OK(MPI_Win_allocate(sizeof own, sizeof *own, info, MPI_COMM_WORLD, &base, &win));
            OK(MPI_Info_free(&info));
            if (keeps)
                is(win, hints[at][0], hints[at][1]);
            works(win, base);
            OK(MPI_Win_free(&win));
        }
}

static size_t bytes_of(int rank) {
    return rank == 1 ? 0 : 24 + 8 * (size_t)rank;
}

/* Parts one behind the other, or each for itself: a rank that writes to the end of its own touches no other's. */
static void shared(int apart) {
    MPI_Comm host;
    MPI_Info info;
    MPI_Win win;
    char *base, *theirs, *end = NULL;
    MPI_Aint size;
    int rank, ranks, unit;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_rank(host, &rank));
    OK(MPI_Comm_size(host, &ranks));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false"));
    int code = MPI_Win_allocate_shared(bytes_of(rank), 8, info, host, &base, &win);
    OK(MPI_Info_free(&info));
    if (code != MPI_SUCCESS) { /* nobody shares memory here */
        FAILS(code, MPI_ERR_RMA_SHARED);
        OK(MPI_Comm_free(&host));
        return;
    }
    memset(base, 'a' + rank % 26, bytes_of(rank));
    OK(MPI_Win_fence(0, win));
    for (int other = 0; other < ranks; other++) {
        OK(MPI_Win_shared_query(win, other, &size, &unit, &theirs));
        CHECK_AT(other, size, (MPI_Aint)bytes_of(other));
        if (apart && size == 0) {
            CHECK(theirs == NULL); /* what has no size has no place */
            continue;
        }
        for (MPI_Aint i = 0; i < size; i++)
            CHECK_AT(i, theirs[i], 'a' + other % 26);
        CHECK(apart || end == NULL || theirs == end);
        CHECK((uintptr_t)theirs % 8 == 0);
        end = theirs + size;
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&host));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    each();
    shared(0);
    shared(1);
    return t_end();
}
