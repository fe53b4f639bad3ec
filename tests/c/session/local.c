/* A session needs no other process (MPI 5.0 section 11.3.1): one is opened, asked everything, used with `mpi://SELF` and ended
 * before any other process has called MPI. What is under way on a communicator of one process goes on when the process gets to
 * the others. */
// one-host: ranks on one host have one parent, by which they know each other
// not-on: mpich (MPI_Session_init waits for all processes)
// not-on: ompi (MPI_Session_init waits for all processes)
#include "../tern_test.h"
#include "first.h"
#include "made_of.h"

enum { SMALL = 10, MIDDLE = 6000, LONG = 3000000, KINDS = 3, EACH = 20 };
static const int lengths[KINDS] = {SMALL, MIDDLE, LONG};

/* What can be asked of a session and of groups. */
static void asked(MPI_Session session) {
    int sets, length = 0, size, rank, in_world, result, room = 32, flag;
    char value[32];
    MPI_Group world, self, both;
    MPI_Info info;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets));
    CHECK(sets >= 2);
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, sets - 1, &length, NULL));
    CHECK(length > 1);
    OK(MPI_Session_get_info(session, &info));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &self));
    OK(MPI_Session_get_pset_info(session, "mpi://WORLD", &info));
    OK(MPI_Info_get_string(info, "mpi_size", &room, value, &flag));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_size(world, &size));
    CHECK(flag && atoi(value) == size);
    OK(MPI_Group_rank(world, &rank));
    OK(MPI_Group_translate_ranks(self, 1, (int[]){0}, world, &in_world));
    CHECK_EQ(in_world, rank);
    OK(MPI_Group_union(self, world, &both));
    OK(MPI_Group_compare(both, world, &result));
    CHECK_EQ(result, rank == 0 ? MPI_IDENT : MPI_SIMILAR);
    OK(MPI_Group_free(&both));
    FAILS(MPI_Group_from_session_pset(session, "mpi://NOBODY", &both), MPI_ERR_ARG);
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&self));
    t_rank = rank, t_size = size;
}

static int deleted;

static int at_delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

/* Messages, collectives, a window, attributes and buffered sends of one process. */
static void used(MPI_Session session) {
    MPI_Comm comm = made_of(session, "mpi://SELF", "used"), dup;
    int got = 0, sum = 0, key, size = 2 * (MPI_BSEND_OVERHEAD + 64);
    int *memory;
    MPI_Win win;
    OK(MPI_Sendrecv(&t_rank, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
    CHECK_EQ(got, t_rank);
    OK(MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, t_rank);
    OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, comm, &memory, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&size, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(*memory, size);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_dup(comm, &dup));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_delete, &key, NULL));
    OK(MPI_Comm_set_attr(dup, key, NULL));
    OK(MPI_Comm_free(&dup));
    CHECK_EQ(deleted, 1);
    OK(MPI_Comm_free_keyval(&key));
    char *room = t_alloc(size), *back;
    OK(MPI_Session_attach_buffer(session, room, size));
    OK(MPI_Bsend(&t_rank, 1, MPI_INT, 0, 2, comm));
    OK(MPI_Recv(&got, 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE));
    OK(MPI_Session_detach_buffer(session, &back, &size));
    CHECK(back == room);
    free(room);
    OK(MPI_Comm_free(&comm));
}

static unsigned char *sent[KINDS][EACH], *kept[KINDS][EACH];
static MPI_Request sends[KINDS][EACH], receives[KINDS][EACH];

/* Of each length some receives without a message, then messages without a receive, of which one is synchronous. */
static void begin(MPI_Comm comm) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < EACH; i++) {
            sent[kind][i] = t_alloc(lengths[kind]);
            kept[kind][i] = t_alloc(lengths[kind]);
            for (int at = 0; at < lengths[kind]; at++)
                sent[kind][i][at] = (unsigned char)(at * 7 + i + kind);
        }
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < EACH / 2; i++)
            OK(MPI_Irecv(kept[kind][i], lengths[kind], MPI_BYTE, 0, kind * EACH + i, comm, &receives[kind][i]));
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = EACH / 2; i < EACH; i++)
            OK((i == EACH - 1 ? MPI_Issend : MPI_Isend)(sent[kind][i], lengths[kind], MPI_BYTE, 0, kind * EACH + i, comm,
                                                         &sends[kind][i]));
}

/* What was begun by one of the two is met by the other. */
static void end(MPI_Comm comm) {
    int flag;
    MPI_Status status;
    for (int kind = 0; kind < KINDS; kind++) {
        OK(MPI_Test(&sends[kind][EACH - 1], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        OK(MPI_Iprobe(MPI_ANY_SOURCE, kind * EACH + EACH / 2, comm, &flag, &status));
        CHECK(flag);
        OK(MPI_Get_count(&status, MPI_BYTE, &flag));
        CHECK_EQ(flag, lengths[kind]);
    }
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < EACH; i++) {
            int tag = kind * EACH + i;
            if (i < EACH / 2) {
                OK(MPI_Send(sent[kind][i], lengths[kind], MPI_BYTE, 0, tag, comm));
                OK(MPI_Wait(&receives[kind][i], MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Recv(kept[kind][i], lengths[kind], MPI_BYTE, i % 2 ? 0 : MPI_ANY_SOURCE, tag, comm, MPI_STATUS_IGNORE));
                OK(MPI_Wait(&sends[kind][i], MPI_STATUS_IGNORE));
            }
            CHECK(memcmp(sent[kind][i], kept[kind][i], lengths[kind]) == 0);
            free(sent[kind][i]);
            free(kept[kind][i]);
        }
}

int main(void) {
    MPI_Session session, second;
    MPI_Comm own, all;
    int is_first = first_is_me(), one = 1, sum = 0;
    if (!is_first)
        first_has_told();
    for (int round = 0; round < 2; round++) {
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        asked(session);
        used(session);
        OK(MPI_Session_finalize(&session));
        deleted = 0;
    }
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second));
    own = made_of(second, "mpi://SELF", "own");
    begin(own);
    if (is_first)
        first_tells(1);
    all = made_of(second, "mpi://WORLD", "all");
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK_EQ(sum, t_size);
    end(own);
    asked(second);
    OK(MPI_Barrier(all));
    if (is_first)
        unlink(first_file);
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_free(&own));
    OK(MPI_Session_finalize(&second));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
