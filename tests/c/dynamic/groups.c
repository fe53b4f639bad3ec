/* Intercommunicators and communicators of groups whose members are processes of several jobs: of processes that know each other
 * already, and of some that never met. */
// np: 1,2,3
// not-on: mpich (5.0.2 ends with an internal error in MPI_Intercomm_create_from_groups)
// connections: processes of other jobs are reached over TCP alone
#include "../tern_test.h"

#define CHILDREN 2

/* Sizes, a message from each to each of the other group, a collective, and the merging of both. */
static void across(MPI_Comm inter, int mine, int others) {
    int rank, size, remote, sum = -1;
    MPI_Comm both, copy;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK_EQ(size, mine);
    CHECK_EQ(remote, others);
    MPI_Request requests[16];
    CHECK(others <= 16);
    for (int to = 0; to < others; to++)
        OK(MPI_Isend(&rank, 1, MPI_INT, to, 7, inter, &requests[to]));
    for (int from = 0; from < others; from++) {
        int got = -1;
        OK(MPI_Recv(&got, 1, MPI_INT, from, 7, inter, MPI_STATUS_IGNORE));
        CHECK_EQ(got, from);
    }
    OK(MPI_Waitall(others, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK_EQ(sum, others * (others - 1) / 2);
    OK(MPI_Comm_dup(inter, &copy));
    OK(MPI_Intercomm_merge(copy, 0, &both));
    OK(MPI_Comm_rank(both, &rank));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both));
    CHECK_EQ(sum, (mine + others) * (mine + others - 1) / 2);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&both));
}

/* Every second process of a communicator of both jobs, with the others. */
static void halves(MPI_Comm both) {
    int rank, size;
    MPI_Comm half, inter;
    OK(MPI_Comm_rank(both, &rank));
    OK(MPI_Comm_size(both, &size));
    int mine = (size + 1 - rank % 2) / 2;
    OK(MPI_Comm_split(both, rank % 2, rank, &half));
    OK(MPI_Intercomm_create(half, 0, both, 1 - rank % 2, 11, &inter));
    across(inter, mine, size - mine);
    OK(MPI_Comm_free(&inter));
    /* The leaders are the last ones. */
    int last[2] = {(size + 1) / 2 - 1, size / 2 - 1};
    OK(MPI_Intercomm_create(half, last[rank % 2], both, 2 * last[1 - rank % 2] + 1 - rank % 2, 12, &inter));
    across(inter, mine, size - mine);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

/* The same from groups alone. */
static void from_groups(MPI_Comm both) {
    int rank, size, sum = 0;
    MPI_Group all, groups[2];
    MPI_Comm inter, whole;
    OK(MPI_Comm_rank(both, &rank));
    OK(MPI_Comm_size(both, &size));
    OK(MPI_Comm_group(both, &all));
    for (int parity = 0; parity < 2; parity++) {
        int range[3] = {parity, size - 1, 2};
        OK(MPI_Group_range_incl(all, 1, &range, &groups[parity]));
    }
    int mine = (size + 1 - rank % 2) / 2;
    OK(MPI_Intercomm_create_from_groups(groups[rank % 2], 0, groups[1 - rank % 2], 0, "halves", MPI_INFO_NULL,
                                        MPI_ERRORS_ARE_FATAL, &inter));
    across(inter, mine, size - mine);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &whole));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, whole));
    CHECK_EQ(sum, size * (size - 1) / 2);
    OK(MPI_Comm_free(&whole));
    for (int parity = 0; parity < 2; parity++)
        OK(MPI_Group_free(&groups[parity]));
    OK(MPI_Group_free(&all));
}

/* The processes of the second job meet those of the first: the parents and the first job are one group. */
static void strangers(MPI_Comm local, MPI_Comm bridge, int remote, int mine, int others) {
    MPI_Comm inter;
    OK(MPI_Intercomm_create(local, 0, bridge, remote, 13, &inter));
    across(inter, mine, others);
    OK(MPI_Comm_disconnect(&inter));
}

static int child(MPI_Comm parent, int round) {
    MPI_Comm both;
    int parents;
    OK(MPI_Comm_remote_size(parent, &parents));
    OK(MPI_Intercomm_merge(parent, 1, &both));
    if (round == 0) {
        halves(both);
        from_groups(both);
        /* What the parents make of both jobs. */
        strangers(both, MPI_COMM_NULL, -1, parents + CHILDREN, CHILDREN);
    } else {
        strangers(MPI_COMM_WORLD, both, 0, CHILDREN, parents + CHILDREN);
    }
    OK(MPI_Comm_disconnect(&both));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
    return 0;
}

int main(int argc, char **argv) {
    MPI_Comm parent, children[2], both[2];
    int size;
    t_begin(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL)
        return child(parent, argv[1][0] - '0');
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int round = 0; round < 2; round++) {
        char *arguments[] = {round == 0 ? "0" : "1", NULL};
        OK(MPI_Comm_spawn(argv[0], arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children[round], MPI_ERRCODES_IGNORE));
        OK(MPI_Intercomm_merge(children[round], 0, &both[round]));
        if (round == 0) {
            halves(both[0]);
            from_groups(both[0]);
        }
    }
    strangers(both[0], both[1], size, size + CHILDREN, CHILDREN);
    for (int round = 0; round < 2; round++) {
        OK(MPI_Comm_disconnect(&both[round]));
        OK(MPI_Comm_disconnect(&children[round]));
    }
    return t_end();
}
