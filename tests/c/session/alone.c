/* Sessions without MPI_Init: process sets, groups of them, communicators without MPI_COMM_WORLD; several sessions,
 * one after the other and at once. */
// np[mpich]: 2+
#include "made_of.h"

/* A communicator of a set works. */
static void works(MPI_Comm comm, int size) {
    int n, rank, sum = -1, got = -1;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &rank));
    CHECK_EQ(n, size);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, n * (n - 1) / 2);
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % n, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE));
    CHECK_EQ(got, (rank + n - 1) % n);
}

/* All sets have a name, and so many members as they say. */
static int sets(MPI_Session session) {
    int count, world = 0, self = 0, size = 0;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
    CHECK(count >= 2);
    for (int i = 0; i < count; i++) {
        char name[MPI_MAX_PSET_NAME_LEN], value[MPI_MAX_INFO_VAL + 1];
        int length = 0, flag, members, room = sizeof value;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        CHECK(length > 1 && length <= (int)sizeof name);
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        CHECK_EQ(strlen(name) + 1, length);
        MPI_Info info;
        OK(MPI_Session_get_pset_info(session, name, &info));
        OK(MPI_Info_get_string(info, "mpi_size", &room, value, &flag));
        CHECK(flag);
        OK(MPI_Info_free(&info));
        MPI_Group group;
        OK(MPI_Group_from_session_pset(session, name, &group));
        OK(MPI_Group_size(group, &members));
        OK(MPI_Group_free(&group));
        CHECK_EQ(members, atoi(value));
        if (!strcmp(name, "mpi://WORLD"))
            world = 1, size = members;
        if (!strcmp(name, "mpi://SELF")) {
            self = 1;
            CHECK_EQ(members, 1);
        }
    }
    CHECK(world && self);
    MPI_Group group; /* in a URI capitals say nothing (RFC 3986) */
    int members;
    OK(MPI_Group_from_session_pset(session, "MPI://self", &group));
    OK(MPI_Group_size(group, &members));
    OK(MPI_Group_free(&group));
    CHECK_EQ(members, 1);
    return size;
}

/* Even and odd ranks by group operations, at the same time under one name. */
static void halves(MPI_Comm all) {
    MPI_Group whole, half;
    MPI_Comm part;
    int range[1][3] = {{t_rank % 2, t_size - 1, 2}};
    OK(MPI_Comm_group(all, &whole));
    OK(MPI_Group_range_incl(whole, 1, range, &half));
    OK(MPI_Comm_create_from_group(half, "half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part));
    works(part, (t_size + 1 - t_rank % 2) / 2);
    OK(MPI_Comm_free(&part));

    /* And both as the groups of an intercommunicator. */
    if (t_size > 1) {
        MPI_Group rest;
        MPI_Comm inter, merged;
        int remote;
        OK(MPI_Group_difference(whole, half, &rest));
        OK(MPI_Intercomm_create_from_groups(half, 0, rest, 0, "both", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        OK(MPI_Comm_remote_size(inter, &remote));
        CHECK_EQ(remote, (t_size + t_rank % 2) / 2);
        OK(MPI_Intercomm_merge(inter, t_rank % 2, &merged));
        works(merged, t_size);
        OK(MPI_Comm_free(&merged));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Group_free(&rest));
    }
    OK(MPI_Group_free(&half));
    OK(MPI_Group_free(&whole));
}

/* A second session at once; its communicator has a life of its own. */
static void second(MPI_Session session, MPI_Comm all, int size) {
    MPI_Session other;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    CHECK(other != session);
    MPI_Comm again = made_of(other, "mpi://WORLD", "all"), dup;
    int result;
    OK(MPI_Comm_compare(all, again, &result));
    CHECK_EQ(result, MPI_CONGRUENT);
    OK(MPI_Send(&t_rank, 1, MPI_INT, t_rank, 1, all));
    works(again, size);
    OK(MPI_Comm_dup(again, &dup));
    works(dup, size);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&again));
    OK(MPI_Session_finalize(&other));
    CHECK(other == MPI_SESSION_NULL);
    int got = -1;
    OK(MPI_Recv(&got, 1, MPI_INT, t_rank, 1, all, MPI_STATUS_IGNORE));
    CHECK_EQ(got, t_rank);
}

int main(void) {
    MPI_Session session;
    MPI_Info hints, used;
    char level[64];
    int flag, up = 1, down = 1, room = sizeof level;
    for (int round = 0; round < 3; round++) {
        OK(MPI_Info_create(&hints));
        OK(MPI_Info_set(hints, "thread_level", "MPI_THREAD_MULTIPLE"));
        /* Who asks for no level gets this one too. */
        OK(MPI_Session_init(round == 1 ? MPI_INFO_NULL : hints, MPI_ERRORS_RETURN, &session));
        OK(MPI_Info_free(&hints));
        OK(MPI_Session_get_info(session, &used));
        room = sizeof level;
        OK(MPI_Info_get_string(used, "thread_level", &room, level, &flag));
        CHECK(flag);
        CHECK_STR(level, "MPI_THREAD_MULTIPLE");
        OK(MPI_Info_free(&used));
        OK(MPI_Initialized(&up));
        OK(MPI_Finalized(&down));
        CHECK(!up && !down);

        int size = sets(session);
        MPI_Comm self = made_of(session, "mpi://SELF", "alone"), all = made_of(session, "mpi://WORLD", "all");
        works(self, 1);
        works(all, size);
        OK(MPI_Comm_rank(all, &t_rank));
        OK(MPI_Comm_size(all, &t_size));

        second(session, all, size);
        halves(all);
        MPI_Comm part;
        OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part));
        CHECK(part == MPI_COMM_NULL);
        OK(MPI_Barrier(all));
        OK(MPI_Comm_free(&self));
        OK(MPI_Comm_disconnect(&all));
        OK(MPI_Session_finalize(&session));
    }
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
