/* MPI_Win_shared_query (MPI 5.0 section 12.2.3) on windows of every kind: memory that is shared has an address here, other memory size 0 and none;
 * MPI_PROC_NULL names the lowest rank that has memory which is shared with the caller, wherever ranks below it are. */
// np: 1,2,3,4
// not-on: mpich (size 0 of the caller too, in a window of MPI_Win_create)
// not-on: ompi (fails on windows that are not of MPI_Win_allocate_shared)
#include "tern_test.h"

enum { CREATE, ALLOCATE, SHARED, KINDS };
enum { ALL, LAST, ODD, NONE, PATTERNS };

static int is_near[64];
static int is_active;

static int longs_of(int rank, int size, int pattern) {
    switch (pattern) {
    case ALL: return 1 + rank;
    case LAST: return rank == size - 1 ? 5 : 0;
    case ODD: return rank % 2 ? 3 : 0;
    default: return 0;
    }
}

static void expect(MPI_Win win, int rank, int named, int is_shared, int count) {
    MPI_Aint bytes = -1;
    int unit = -1;
    long *there = (long *)-1;
    OK(MPI_Win_shared_query(win, rank, &bytes, &unit, &there));
    CHECK_AT(named, bytes, is_shared ? count * (int)sizeof(long) : 0);
    if (is_shared)
        CHECK_AT(named, unit, 1 + named % 3);
    else
        CHECK(there == NULL);
    for (int i = 0; i < bytes / (int)sizeof(long); i++)
        CHECK_AT(i, there[i], 1000 * named + i);
}

static void query(MPI_Comm comm, int kind, int pattern) {
    MPI_Win win;
    long *own, room[65];
    int rank, size, first = -1;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    int count = longs_of(rank, size, pattern);
    MPI_Aint bytes = count * (MPI_Aint)sizeof(long);
    if (kind == CREATE) {
        own = room;
        OK(MPI_Win_create(own, bytes, 1 + rank % 3, MPI_INFO_NULL, comm, &win));
    } else if (kind == ALLOCATE) {
        OK(MPI_Win_allocate(bytes, 1 + rank % 3, MPI_INFO_NULL, comm, &own, &win));
    } else {
        OK(MPI_Win_allocate_shared(bytes, 1 + rank % 3, MPI_INFO_NULL, comm, &own, &win));
    }
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < count; i++)
        own[i] = 1000 * rank + i;
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(comm));
    OK(MPI_Win_sync(win));
    for (int other = 0; other < size; other++) {
        int is_shared = other == rank || kind == SHARED || (kind == ALLOCATE && is_near[other] && !is_active);
        expect(win, other, other, is_shared, longs_of(other, size, pattern));
        /* Memory that the program brought is its own, and shared with nobody. */
        if (first < 0 && kind != CREATE && is_shared && longs_of(other, size, pattern) > 0)
            first = other;
    }
    if (first >= 0) {
        expect(win, MPI_PROC_NULL, first, 1, longs_of(first, size, pattern));
    } else {
        MPI_Aint none = -1;
        int unit;
        void *there;
        OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &none, &unit, &there));
        CHECK_EQ(none, 0);
        CHECK(there == NULL || kind == SHARED);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    MPI_Comm near;
    t_begin(&argc, &argv);
    const char *way = getenv("TERN_WIN");
    is_active = way && strcmp(way, "active") == 0;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
    int mine, *hosts = t_alloc(sizeof(int) * t_size);
    OK(MPI_Comm_rank(near, &mine));
    int leader = t_rank;
    OK(MPI_Bcast(&leader, 1, MPI_INT, 0, near));
    OK(MPI_Allgather(&leader, 1, MPI_INT, hosts, 1, MPI_INT, MPI_COMM_WORLD));
    for (int rank = 0; rank < t_size; rank++)
        is_near[rank] = hosts[rank] == leader;
    for (int pattern = ALL; pattern < PATTERNS; pattern++) {
        query(MPI_COMM_WORLD, CREATE, pattern);
        query(MPI_COMM_WORLD, ALLOCATE, pattern);
        query(near, SHARED, pattern);
    }
    free(hosts);
    OK(MPI_Comm_free(&near));
    return t_end();
}
