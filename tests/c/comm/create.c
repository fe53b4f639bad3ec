/* Making communicators: dup, idup, dup_with_info, create, create_group, split, split_type;
 * each is compared with its parent, carries its own traffic, and works collectively.
 * one-host: MPI_COMM_TYPE_SHARED is expected to give all ranks
 */
#include "tern_test.h"

static void works(MPI_Comm comm, int size, int rank) {
    int n = -1, r = -1, sum = -1, got = -1;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &r));
    CHECK_EQ(n, size);
    CHECK_EQ(r, rank);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, size * (size - 1) / 2);
    MPI_Status status;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, &status));
    CHECK_EQ(got, (rank + size - 1) % size);
    CHECK_EQ(status.MPI_SOURCE, got);
}

static void compare(MPI_Comm a, MPI_Comm b, int want) {
    int result = -1;
    OK(MPI_Comm_compare(a, b, &result));
    CHECK_EQ(result, want);
}

static void duplicates(void) {
    MPI_Comm a, b, c, d;
    MPI_Request requests[2];
    int inter = 1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    compare(MPI_COMM_WORLD, a, MPI_CONGRUENT);
    compare(a, a, MPI_IDENT);
    works(a, t_size, t_rank);
    OK(MPI_Comm_test_inter(a, &inter));
    CHECK(!inter);
    OK(MPI_Comm_dup_with_info(a, MPI_INFO_NULL, &b));
    works(b, t_size, t_rank);
    /* Two at once, completed together. */
    OK(MPI_Comm_idup(a, &c, &requests[0]));
    OK(MPI_Comm_idup(b, &d, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    works(c, t_size, t_rank);
    works(d, t_size, t_rank);
    compare(c, d, MPI_CONGRUENT);
    MPI_Comm e;
    OK(MPI_Comm_idup_with_info(a, MPI_INFO_NULL, &e, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    works(e, t_size, t_rank);
    OK(MPI_Comm_free(&e));
    OK(MPI_Comm_free(&a));
    CHECK(a == MPI_COMM_NULL);
    works(b, t_size, t_rank);
    OK(MPI_Comm_free(&b));
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_free(&d));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &a));
    works(a, 1, 0);
    compare(a, MPI_COMM_SELF, MPI_CONGRUENT);
    OK(MPI_Comm_free(&a));
}

/* Even ranks backwards: from a group, by everybody and by the members only. */
static void from_groups(void) {
    MPI_Group world, group;
    MPI_Comm comm;
    int members[64], n = 0, mine = -1;
    for (int r = (t_size - 1) / 2 * 2; r >= 0; r -= 2) {
        mine = r == t_rank ? n : mine;
        members[n++] = r;
    }
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, n, members, &group));
    OK(MPI_Comm_create(MPI_COMM_WORLD, group, &comm));
    if (t_rank % 2) {
        CHECK(comm == MPI_COMM_NULL);
    } else {
        works(comm, n, mine);
        OK(MPI_Comm_free(&comm));
        for (int tag = 0; tag < 3; tag++) {
            OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &comm));
            works(comm, n, mine);
            compare(comm, MPI_COMM_WORLD, t_size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
            OK(MPI_Comm_free(&comm));
        }
    }
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
    CHECK(comm == MPI_COMM_NULL);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
}

static void splits(void) {
    MPI_Comm comm, node;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 7, -t_rank, &comm));
    works(comm, t_size, t_size - 1 - t_rank);
    compare(comm, MPI_COMM_WORLD, t_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
    OK(MPI_Comm_free(&comm));
    /* Equal keys keep the old order. */
    OK(MPI_Comm_split(MPI_COMM_WORLD, t_rank % 3, 5, &comm));
    works(comm, (t_size - t_rank % 3 + 2) / 3, t_rank / 3);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_split(MPI_COMM_WORLD, t_rank == 0 ? MPI_UNDEFINED : 1, 0, &comm));
    if (t_rank == 0) {
        CHECK(comm == MPI_COMM_NULL);
    } else {
        works(comm, t_size - 1, t_rank - 1);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -t_rank, MPI_INFO_NULL, &node));
    works(node, t_size, t_size - 1 - t_rank);
    OK(MPI_Comm_free(&node));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &node));
    CHECK(node == MPI_COMM_NULL);
}

/* Thousands one after the other, and many at the same time: nothing runs out. */
static void many(void) {
    enum { ALIVE = 100, ROUNDS = 20 };
    MPI_Comm comms[ALIVE];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < (round ? 10 : ALIVE); i++)
            OK(MPI_Comm_dup(i ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]));
        works(comms[9], t_size, t_rank);
        for (int i = 0; i < (round ? 10 : ALIVE); i++)
            OK(MPI_Comm_free(&comms[i]));
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    works(MPI_COMM_WORLD, t_size, t_rank);
    works(MPI_COMM_SELF, 1, 0);
    duplicates();
    from_groups();
    splits();
    many();
    return t_end();
}
