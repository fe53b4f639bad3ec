/* A thread that waits for a message of its own process is still told of it when another thread has taken the process to the
 * others of its job meanwhile, and opens and ends sessions while that one waits for them. */
// one-host: ranks on one host have one parent, by which they know each other
// not-on: mpich (MPI_Session_init waits for all processes)
// not-on: ompi (MPI_Session_init waits for all processes)
#include "../tern_test.h"
#include "first.h"
#include "made_of.h"
#include <pthread.h>

static MPI_Comm own;
static int is_first;

static void *waits(void *nothing) {
    int got = 0;
    OK(MPI_Recv(&got, 1, MPI_INT, 0, 5, own, MPI_STATUS_IGNORE));
    CHECK_EQ(got, 42);
    return nothing;
}

/* The other processes begin only after this. */
static void *opens(void *nothing) {
    MPI_Session session;
    /* Long enough for the main thread to be among those that wait for all, and for the other one to sleep. */
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Comm comm = made_of(session, "mpi://SELF", "beside");
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    if (is_first)
        first_tells(1);
    return nothing;
}

int main(void) {
    MPI_Session session;
    MPI_Info info;
    MPI_Comm all;
    pthread_t waiting, opening;
    int answer = 42;
    is_first = first_is_me();
    if (!is_first)
        first_has_told();
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    own = made_of(session, "mpi://SELF", "own");
    CHECK(pthread_create(&waiting, NULL, waits, NULL) == 0);
    CHECK(pthread_create(&opening, NULL, opens, NULL) == 0);
    all = made_of(session, "mpi://WORLD", "all");
    OK(MPI_Comm_rank(all, &t_rank));
    CHECK(pthread_join(opening, NULL) == 0);
    OK(MPI_Send(&answer, 1, MPI_INT, 0, 5, own));
    CHECK(pthread_join(waiting, NULL) == 0);
    OK(MPI_Barrier(all));
    if (is_first)
        unlink(first_file);
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_free(&own));
    OK(MPI_Session_finalize(&session));
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
