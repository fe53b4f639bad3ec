/* Who makes a communicator of a group waits for its members alone (MPI 5.0 section 11.3.5): not for a process that has opened a
 * session and is busy with something else, here with waiting for a word that it is given only when that communicator works. What
 * that process does afterwards is what it would have done before. */
// np: 2+
// args: all
// args: init
// args: ends
// not-on: mpich (MPI_Session_init waits for all processes)
// not-on: ompi (MPI_Session_init waits for all processes)
#include "made_of.h"
#include <time.h>
#include <unistd.h>

static char word[512];

/* Waits for the word; the test's time ends a wait in vain. */
static void be_elsewhere(void) {
    while (access(word, F_OK) != 0)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    unlink(word);
}

static void give_word(void) {
    FILE *file = fopen(word, "w");
    CHECK(file != NULL);
    CHECK(fclose(file) == 0);
}

/* Messages of all lengths, and collectives. */
static void works(MPI_Comm comm) {
    enum { LONG = 1 << 18 };
    int rank, size, sum = 0, from;
    char *sent = t_alloc(LONG), *got = t_alloc(LONG);
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, size * (size - 1) / 2);
    memset(sent, rank + 1, LONG);
    from = (rank + size - 1) % size;
    for (int bytes = 8; bytes <= LONG; bytes *= 8) {
        OK(MPI_Sendrecv(sent, bytes, MPI_BYTE, (rank + 1) % size, 0, got, bytes, MPI_BYTE, from, 0, comm, MPI_STATUS_IGNORE));
        CHECK_EQ(got[0], (char)(from + 1));
        CHECK_EQ(got[bytes - 1], (char)(from + 1));
    }
    free(sent);
    free(got);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    const char *then = argv[1], *dir = getenv("TMPDIR");
    MPI_Session session;
    MPI_Group world, rest;
    MPI_Comm comm;
    int size;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_rank(world, &t_rank));
    OK(MPI_Group_size(world, &size));
    int last = size - 1, is_elsewhere = t_rank == last;
    /* On hosts that namespaces stand for too, ranks are processes of one session of the system. */
    if (argc > 2)
        snprintf(word, sizeof word, "%s", argv[2]);
    else
        snprintf(word, sizeof word, "%s/tern-elsewhere-%ld-%d-%s", dir ? dir : "/tmp", (long)getsid(0), size, then);
    if (is_elsewhere) {
        be_elsewhere();
    } else {
        OK(MPI_Group_excl(world, 1, &last, &rest));
        OK(MPI_Comm_create_from_group(rest, "rest", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        OK(MPI_Group_free(&rest));
        works(comm);
        if (t_rank == 0)
            give_word();
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&world));
    if (!strcmp(then, "all")) {
        comm = made_of(session, "mpi://WORLD", "all");
        works(comm);
        OK(MPI_Comm_free(&comm));
    } else if (!strcmp(then, "init")) {
        OK(MPI_Init(&argc, &argv));
        works(MPI_COMM_WORLD);
        OK(MPI_Finalize());
    }
    OK(MPI_Session_finalize(&session));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
