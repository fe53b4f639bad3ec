/* Post, start, complete, wait and test: a ring in which each rank is origin and
 * target at once, and one target of all others. */
// args: allocate
// args: create
#include "tern_test.h"

static MPI_Group group_of(int from, int count) {
    MPI_Group world, group;
    int *ranks = t_alloc(sizeof(int) * (count + 1));
    for (int i = 0; i < count; i++)
        ranks[i] = (from + i) % t_size;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, count, ranks, &group));
    OK(MPI_Group_free(&world));
    free(ranks);
    return group;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int *base, bytes = (int)sizeof(int) * (t_size + 1000);
    MPI_Win win;
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = t_alloc(bytes);
        OK(MPI_Win_create(base, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
    int right = (t_rank + 1) % t_size, left = (t_rank + t_size - 1) % t_size;
    MPI_Group origins = group_of(left, 1), targets = group_of(right, 1);
    for (int round = 0; round < 100; round++) {
        int values[1000], got[10];
        for (int i = 0; i < 1000; i++)
            values[i] = t_rank * 5000 + round + i;
        OK(MPI_Win_post(origins, round % 2 ? MPI_MODE_NOSTORE : 0, win));
        OK(MPI_Win_start(targets, 0, win));
        OK(MPI_Put(values, 1000, MPI_INT, right, 0, 1000, MPI_INT, win));
        OK(MPI_Win_complete(win));
        memset(values, 0xff, sizeof values);
        if (round % 3 == 0) {
            int flag = 0;
            while (!flag)
                OK(MPI_Win_test(win, &flag));
        } else {
            OK(MPI_Win_wait(win));
        }
        for (int i = 0; i < 1000; i++)
            CHECK_AT(i, base[i], left * 5000 + round + i);
        OK(MPI_Win_post(origins, 0, win));
        OK(MPI_Win_start(targets, 0, win));
        OK(MPI_Get(got, 10, MPI_INT, right, 5, 10, MPI_INT, win));
        OK(MPI_Win_complete(win));
        CHECK_EQ(got[9], t_rank * 5000 + round + 14);
        OK(MPI_Win_wait(win));
    }
    OK(MPI_Group_free(&origins));
    OK(MPI_Group_free(&targets));
    /* All others to rank 0. */
    MPI_Group others = group_of(1, t_size - 1), first = group_of(0, 1);
    if (t_rank == 0) {
        memset(base, 0, bytes);
        OK(MPI_Win_post(others, MPI_MODE_NOSTORE, win));
        OK(MPI_Win_wait(win));
        for (int rank = 1; rank < t_size; rank++)
            CHECK_AT(rank, base[rank], rank + 1);
        CHECK_EQ(base[t_size], t_size * (t_size - 1) / 2);
    } else {
        int value = t_rank + 1;
        OK(MPI_Win_start(first, 0, win));
        OK(MPI_Put(&value, 1, MPI_INT, 0, t_rank, 1, MPI_INT, win));
        OK(MPI_Accumulate(&t_rank, 1, MPI_INT, 0, t_size, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_complete(win));
    }
    OK(MPI_Group_free(&others));
    OK(MPI_Group_free(&first));
    OK(MPI_Win_free(&win));
    return t_end();
}
