/* Intercommunicators: made, asked, merged, duplicated, divided; messages name ranks of the other group. */
#include "../inter.h"

static void compare(MPI_Comm a, MPI_Comm b, int want) {
    int result = -1;
    OK(MPI_Comm_compare(a, b, &result));
    CHECK_EQ(result, want);
}

/* Both groups are what they should be. */
static void asked(const sides *s) {
    int flag = 0, size = -1, rank = -1;
    OK(MPI_Comm_test_inter(s->inter, &flag));
    CHECK(flag);
    OK(MPI_Comm_test_inter(s->local, &flag));
    CHECK(!flag);
    OK(MPI_Comm_size(s->inter, &size));
    OK(MPI_Comm_rank(s->inter, &rank));
    CHECK_EQ(size, s->size);
    CHECK_EQ(rank, s->rank);
    CHECK_EQ(sides_world(s, 0, s->rank), t_rank);
    compare(s->inter, s->local, MPI_UNEQUAL);
    compare(s->inter, MPI_COMM_WORLD, MPI_UNEQUAL);
    compare(s->inter, s->inter, MPI_IDENT);
    MPI_Group mine, theirs;
    OK(MPI_Comm_group(s->inter, &mine));
    OK(MPI_Comm_remote_group(s->inter, &theirs));
    MPI_Group both;
    OK(MPI_Group_intersection(mine, theirs, &both));
    OK(MPI_Group_size(both, &size));
    CHECK_EQ(size, 0);
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&theirs));
    if (both != MPI_GROUP_EMPTY)
        OK(MPI_Group_free(&both));
}

/* Everybody sends its world rank to all of the other group, in every form. */
static void messages(MPI_Comm inter, const sides *s) {
    int sent[2] = {t_rank, 0}, got[2];
    MPI_Status status;
    MPI_Request *requests = t_alloc(sizeof *requests * s->remote);
    for (int form = 0; form < 5; form++) {
        int(*in)[2] = t_alloc(sizeof *in * s->remote);
        int(*out)[2] = t_alloc(sizeof *out * s->remote);
        for (int r = 0; r < s->remote; r++)
            OK(MPI_Irecv(in[r], 2, MPI_INT, r, form, inter, &requests[r]));
        if (form == 4) /* ready sends need their receives */
            OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int r = 0; r < s->remote; r++) {
            out[r][0] = t_rank, out[r][1] = r;
            MPI_Request request = MPI_REQUEST_NULL;
            if (form == 0)
                OK(MPI_Send(out[r], 2, MPI_INT, r, form, inter));
            else if (form == 1)
                OK(MPI_Issend(out[r], 2, MPI_INT, r, form, inter, &request));
            else if (form == 2)
                OK(MPI_Isend(out[r], 2, MPI_INT, r, form, inter, &request));
            else if (form == 3)
                OK(MPI_Send_init(out[r], 2, MPI_INT, r, form, inter, &request));
            else
                OK(MPI_Irsend(out[r], 2, MPI_INT, r, form, inter, &request));
            if (form == 3)
                OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (request != MPI_REQUEST_NULL)
                OK(MPI_Request_free(&request));
        }
        for (int r = 0; r < s->remote; r++) {
            OK(MPI_Wait(&requests[r], &status));
            CHECK_EQ(status.MPI_SOURCE, r);
            CHECK_EQ(in[r][0], sides_world(s, 1, r));
            CHECK_EQ(in[r][1], s->rank);
        }
        free(in);
        free(out);
    }
    free(requests);
    /* From anybody, seen by a probe first. The lowest ranks of both groups speak to all. */
    if (s->rank == 0)
        for (int r = 0; r < s->remote; r++)
            OK(MPI_Send(sent, 1, MPI_INT, r, 9, inter));
    OK(MPI_Probe(MPI_ANY_SOURCE, 9, inter, &status));
    CHECK_EQ(status.MPI_SOURCE, 0);
    OK(MPI_Recv(got, 1, MPI_INT, MPI_ANY_SOURCE, 9, inter, &status));
    CHECK_EQ(status.MPI_SOURCE, 0);
    CHECK_EQ(got[0], sides_world(s, 1, 0));
    MPI_Message message;
    if (s->rank == s->size - 1)
        for (int r = 0; r < s->remote; r++)
            OK(MPI_Send(sent, 1, MPI_INT, r, 10, inter));
    OK(MPI_Mprobe(MPI_ANY_SOURCE, 10, inter, &message, &status));
    CHECK_EQ(status.MPI_SOURCE, s->remote - 1);
    OK(MPI_Mrecv(got, 1, MPI_INT, &message, &status));
    CHECK_EQ(status.MPI_SOURCE, s->remote - 1);
    CHECK_EQ(got[0], sides_world(s, 1, s->remote - 1));
    OK(MPI_Send(sent, 1, MPI_INT, MPI_PROC_NULL, 9, inter));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Pairs exchange. */
    if (s->rank < s->remote) {
        OK(MPI_Sendrecv(sent, 1, MPI_INT, s->rank, 3, got, 1, MPI_INT, s->rank, 3, inter, &status));
        CHECK_EQ(got[0], sides_world(s, 1, s->rank));
    }
}

/* One communicator of both groups, the high one behind; equal arguments in any order. */
static void merged(const sides *s) {
    for (int high = 0; high < 2; high++) {
        MPI_Comm all;
        int rank, size, sum = 0;
        OK(MPI_Intercomm_merge(s->inter, s->low ? high : !high, &all));
        OK(MPI_Comm_rank(all, &rank));
        OK(MPI_Comm_size(all, &size));
        CHECK_EQ(size, t_size);
        CHECK_EQ(rank, (s->low ? high : !high) ? s->remote + s->rank : s->rank);
        OK(MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK_EQ(sum, t_size * (t_size - 1) / 2);
        OK(MPI_Comm_free(&all));
    }
    MPI_Comm all;
    int first = -1, rank;
    OK(MPI_Intercomm_merge(s->inter, 1, &all));
    OK(MPI_Comm_rank(all, &rank));
    int mine[2] = {rank - s->rank, s->low}, others[2];
    CHECK(mine[0] == 0 || mine[0] == s->remote);
    first = mine[0] == 0;
    OK(MPI_Sendrecv(mine, 2, MPI_INT, t_size - 1 - rank, 0, others, 2, MPI_INT, t_size - 1 - rank, 0, all,
                    MPI_STATUS_IGNORE));
    CHECK_EQ(others[1] == s->low ? first : !first, others[0] == 0);
    OK(MPI_Comm_free(&all));
}

static int copied(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key;
    ++*(int *)extra;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static void duplicated(const sides *s) {
    int key, copies = 0, flag, length;
    char name[MPI_MAX_OBJECT_NAME];
    void *value;
    MPI_Comm a, b, c;
    MPI_Request request;
    OK(MPI_Comm_create_keyval(copied, MPI_COMM_NULL_DELETE_FN, &key, &copies));
    OK(MPI_Comm_set_attr(s->inter, key, &copies));
    OK(MPI_Comm_set_name(s->inter, "bridge"));
    OK(MPI_Comm_get_name(s->inter, name, &length));
    CHECK_STR(name, "bridge");
    OK(MPI_Comm_get_attr(s->inter, MPI_TAG_UB, &value, &flag));
    CHECK(flag);
    OK(MPI_Comm_dup(s->inter, &a));
    OK(MPI_Comm_idup(a, &b, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_dup_with_info(b, MPI_INFO_NULL, &c));
    CHECK_EQ(copies, 3);
    MPI_Comm all[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        compare(s->inter, all[i], MPI_CONGRUENT);
        OK(MPI_Comm_test_inter(all[i], &flag));
        CHECK(flag);
        OK(MPI_Comm_get_attr(all[i], key, &value, &flag));
        CHECK(flag && value == (void *)&copies);
        messages(all[i], s);
        OK(MPI_Comm_free(&all[i]));
    }
    OK(MPI_Comm_delete_attr(s->inter, key));
    OK(MPI_Comm_free_keyval(&key));
}

/* By colour: ranks of both groups that agree, in reverse; a colour of one group only gives none. */
static void divided(const sides *s) {
    MPI_Comm part;
    int size, remote, rank, flag;
    OK(MPI_Comm_split(s->inter, s->rank % 2, -s->rank, &part));
    int mine = s->rank % 2 ? s->size / 2 : (s->size + 1) / 2;
    int theirs = s->rank % 2 ? s->remote / 2 : (s->remote + 1) / 2;
    if (theirs == 0) {
        CHECK(part == MPI_COMM_NULL);
    } else {
        OK(MPI_Comm_test_inter(part, &flag));
        CHECK(flag);
        OK(MPI_Comm_size(part, &size));
        OK(MPI_Comm_remote_size(part, &remote));
        OK(MPI_Comm_rank(part, &rank));
        CHECK_EQ(size, mine);
        CHECK_EQ(remote, theirs);
        CHECK_EQ(rank, mine - 1 - s->rank / 2);
        int got[2], sent[2] = {t_rank, s->rank};
        OK(MPI_Sendrecv(sent, 2, MPI_INT, rank == 0 ? 0 : MPI_PROC_NULL, 1, got, 2, MPI_INT,
                        rank == 0 ? 0 : MPI_PROC_NULL, 1, part, MPI_STATUS_IGNORE));
        if (rank == 0)
            CHECK_EQ(got[1], 2 * (theirs - 1) + s->rank % 2);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split(s->inter, s->low, 0, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Comm_split(s->inter, s->low && s->rank == 0 ? MPI_UNDEFINED : 1, 0, &part));
    if (part != MPI_COMM_NULL)
        OK(MPI_Comm_free(&part));
    OK(MPI_Comm_split_type(s->inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    if (part != MPI_COMM_NULL)
        OK(MPI_Comm_free(&part));
}

/* Of the first and last rank of each group, in reverse. */
static void created(const sides *s) {
    MPI_Group group, some;
    MPI_Comm part;
    int ranks[2] = {s->size - 1, 0}, size, remote, rank;
    OK(MPI_Comm_group(s->inter, &group));
    OK(MPI_Group_incl(group, s->size > 1 ? 2 : 1, ranks, &some));
    OK(MPI_Comm_create(s->inter, some, &part));
    if (s->rank != 0 && s->rank != s->size - 1) {
        CHECK(part == MPI_COMM_NULL);
    } else {
        OK(MPI_Comm_size(part, &size));
        OK(MPI_Comm_remote_size(part, &remote));
        OK(MPI_Comm_rank(part, &rank));
        CHECK_EQ(size, s->size > 1 ? 2 : 1);
        CHECK_EQ(remote, s->remote > 1 ? 2 : 1);
        CHECK_EQ(rank, s->rank == s->size - 1 ? 0 : 1);
        int got = -1;
        OK(MPI_Sendrecv(&t_rank, 1, MPI_INT, rank < remote ? rank : MPI_PROC_NULL, 1, &got, 1, MPI_INT,
                        rank < remote ? rank : MPI_PROC_NULL, 1, part, MPI_STATUS_IGNORE));
        if (rank < remote)
            CHECK_EQ(got, sides_world(s, 1, rank == 0 ? s->remote - 1 : 0));
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&group));
}

/* Traffic of the program on the bridge is not disturbed: messages of the same tag wait there meanwhile. */
static void undisturbed(void) {
    int other = t_rank ^ 1, got = -1;
    MPI_Comm inter, local;
    if (other >= t_size)
        other = MPI_PROC_NULL;
    MPI_Request request;
    OK(MPI_Isend(&t_rank, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &request));
    OK(MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, 0, &local));
    OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, t_rank % 2 ? 0 : 1, 5, &inter));
    OK(MPI_Recv(&got, 1, MPI_INT, other, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (other >= 0)
        CHECK_EQ(got, other);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* An intercommunicator is a bridge too: both groups again, by its remote leader. */
    MPI_Comm again;
    OK(MPI_Intercomm_create(local, 0, inter, 0, 5, &again));
    compare(inter, again, MPI_CONGRUENT);
    OK(MPI_Comm_free(&again));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Comm_free(&local));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    sides s;
    for (int division = 0; division < DIVISIONS; division++) {
        if (!sides_make(division, &s))
            continue;
        asked(&s);
        messages(s.inter, &s);
        merged(&s);
        duplicated(&s);
        divided(&s);
        created(&s);
        sides_free(&s);
    }
    if (t_size > 1)
        undisturbed();
    return t_end();
}
