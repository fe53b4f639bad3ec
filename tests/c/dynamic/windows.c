/* Windows of processes of two jobs, whose ranks may be on several hosts: all put into each other's memory and read it back. */
// np: 2+
// not-on: mpich (Hydra 5.0.2 ends the job over an empty argument: it is unable to parse the command)
// connections: processes of other jobs are reached over TCP alone
#include "../tern_test.h"

#define CHILDREN 2

static void put_and_get(MPI_Comm all, int is_created)
{
    int rank, size;
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    long own[16] = { 0 }, *base = own, in[16], mine = 100 + rank, one = 1, before = -1;
    CHECK(size <= 16);
    MPI_Win win;
    if (is_created)
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, all, &win));
    else
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, all, &base, &win));
    for (int i = 0; i < size; i++)
        base[i] = 0;
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < size; target++)
        OK(MPI_Put(&mine, 1, MPI_LONG, target, rank, 1, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int other = 0; other < size; other++)
        CHECK_AT(other, base[other], 100 + other);
    OK(MPI_Barrier(all));
    for (int target = 0; target < size; target++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        OK(MPI_Get(in, size, MPI_LONG, target, 0, size, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
        for (int other = 0; other < size; other++)
            CHECK_AT(other, in[other], 100 + other);
    }
    OK(MPI_Barrier(all));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    CHECK(before >= 100 && before < 100 + size);
    OK(MPI_Barrier(all));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK_EQ(base[0], 100 + size);
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, all;
    t_begin(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    int is_child = parent != MPI_COMM_NULL;
    inter = parent;
    if (!is_child)
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Intercomm_merge(inter, is_child, &all));
    put_and_get(all, 0);
    put_and_get(all, 1);
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_disconnect(&inter));
    return t_end();
}
