/* Initialisation at every thread level: what is provided is what was asked for. */
// args: 0
// args: 1
// args: 2
// args: 3
// np: 1,2
#include "tern_test.h"

#include <pthread.h>

static void *other(void *main_flag) {
    OK(MPI_Is_thread_main(main_flag));
    return NULL;
}

int main(int argc, char **argv) {
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    int wanted = levels[argc > 1 ? atoi(argv[1]) : 0], provided = -1, again = -1, flag = -1;
    OK(MPI_Initialized(&flag));
    CHECK(!flag);
    OK(MPI_Finalized(&flag));
    CHECK(!flag);
    OK(MPI_Init_thread(&argc, &argv, wanted, &provided));
    t_started();
    CHECK_EQ(argc, 2);
    CHECK(provided >= wanted);
    CHECK(MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED && MPI_THREAD_FUNNELED < MPI_THREAD_SERIALIZED &&
          MPI_THREAD_SERIALIZED < MPI_THREAD_MULTIPLE);
    OK(MPI_Query_thread(&again));
    CHECK_EQ(again, provided);
    OK(MPI_Initialized(&flag));
    CHECK(flag);
    flag = 0;
    OK(MPI_Is_thread_main(&flag));
    CHECK(flag);
    if (wanted == MPI_THREAD_MULTIPLE) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, other, &flag) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(!flag);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    OK(MPI_Initialized(&flag));
    CHECK(flag);
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
