/* MPI_Comm_spawn: all ranks start two processes together; messages, collectives, merging, the processes' parent, and
 * a second time after the first have gone. */
// not-on: mpich (Hydra 5.0.2 ends the job over an empty argument: it is unable to parse the command)
// connections: processes of other jobs are reached over TCP alone
#include "../tern_test.h"

#define CHILDREN 2

/* Both groups know each other. */
static void across(MPI_Comm inter, int mine, int others) {
    int rank, size, remote, is_inter;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Comm_test_inter(inter, &is_inter));
    CHECK(is_inter);
    CHECK_EQ(size, mine);
    CHECK_EQ(remote, others);
    /* A message to each of the other group, short and long. */
    enum { LONG = 300000 };
    int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int count = 1; count <= LONG; count = count == 1 ? LONG : LONG + 1) {
        MPI_Request requests[16];
        CHECK(others <= 16);
        for (int i = 0; i < count; i++)
            out[i] = 1000 * rank + i;
        for (int to = 0; to < others; to++)
            OK(MPI_Isend(out, count, MPI_INT, to, 7, inter, &requests[to]));
        for (int from = 0; from < others; from++) {
            MPI_Status status;
            OK(MPI_Recv(in, count, MPI_INT, from, 7, inter, &status));
            CHECK_EQ(status.MPI_SOURCE, from);
            CHECK_EQ(in[0], 1000 * from);
            CHECK_EQ(in[count - 1], 1000 * from + count - 1);
        }
        OK(MPI_Waitall(others, requests, MPI_STATUSES_IGNORE));
    }
    free(out);
    free(in);
    int sum = -1;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK_EQ(sum, others * (others - 1) / 2);
    OK(MPI_Barrier(inter));
}

static void merged(MPI_Comm inter, int high, int mine, int others) {
    MPI_Comm both, copy, half;
    int rank, size, own, sum = 0, result;
    OK(MPI_Intercomm_merge(inter, high, &both));
    OK(MPI_Comm_rank(both, &rank));
    OK(MPI_Comm_size(both, &size));
    OK(MPI_Comm_rank(inter, &own));
    CHECK_EQ(size, mine + others);
    CHECK_EQ(rank, own + (high ? others : 0));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both));
    CHECK_EQ(sum, size * (size - 1) / 2);
    OK(MPI_Comm_dup(both, &copy));
    int next = (rank + 1) % size, got = -1;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, next, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE, 0, copy, MPI_STATUS_IGNORE));
    CHECK_EQ(got, (rank + size - 1) % size);
    OK(MPI_Comm_split(copy, high, 0, &half));
    OK(MPI_Comm_compare(half, MPI_COMM_WORLD, &result));
    CHECK_EQ(result, MPI_CONGRUENT);
    OK(MPI_Barrier(half));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&both));
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    int size;
    t_begin(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        int parents;
        CHECK_EQ(argc, 3);
        CHECK_STR(argv[1], "a child");
        OK(MPI_Comm_remote_size(parent, &parents));
        OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
        CHECK_EQ(size, CHILDREN);
        across(parent, CHILDREN, parents);
        merged(parent, 1, CHILDREN, parents);
        OK(MPI_Comm_disconnect(&parent));
        CHECK(parent == MPI_COMM_NULL);
        OK(MPI_Comm_get_parent(&parent));
        CHECK(parent == MPI_COMM_NULL);
        OK(MPI_Finalize());
        return 0;
    }
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    char *arguments[] = {"a child", "", NULL};
    for (int round = 0; round < 2; round++) {
        MPI_Comm children;
        int codes[CHILDREN] = {-1, -1};
        OK(MPI_Comm_spawn(argv[0], arguments, CHILDREN, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &children, codes));
        for (int i = 0; i < CHILDREN; i++)
            CHECK_AT(i, codes[i], MPI_SUCCESS);
        across(children, size, CHILDREN);
        merged(children, 0, size, CHILDREN);
        OK(MPI_Comm_disconnect(&children));
        CHECK(children == MPI_COMM_NULL);
    }
    return t_end();
}
