/* Programs that never end, by name: what mpiexec says of each is checked by run.py. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, value, values[64];
static const MPI_Comm world = MPI_COMM_WORLD;

static void receive(int source, int tag, MPI_Comm comm) {
    MPI_Recv(&value, 1, MPI_INT, source, tag, comm, MPI_STATUS_IGNORE);
}

static void compute(void) {
    for (;;)
        pause();
}

static void partitioned(void) {
    static char bytes[40];
    MPI_Request request;
    if (rank == 0) {
        MPI_Psend_init(bytes, 4, 10, MPI_CHAR, 1, 6, world, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready(2, request);
    } else {
        MPI_Precv_init(bytes, 2, 20, MPI_CHAR, 0, 6, world, MPI_INFO_NULL, &request);
        MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void cycle(void) { receive(1 - rank, 3, world); }

static void wrong_tag(void) {
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, 6, world);
        receive(1, 9, world);
    }
    receive(0, 7, world);
}

static void wrong_communicator(void) {
    MPI_Comm halo, unnamed;
    MPI_Comm_dup(world, &halo);
    MPI_Comm_set_name(halo, "halo");
    MPI_Comm_dup(world, &unnamed);
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, 7, halo);
        receive(1, 9, unnamed);
    }
    receive(0, 7, world);
}

static void peer_computes(void) {
    if (rank == 0)
        compute();
    receive(0, 7, world);
}

static void peer_finalizes(void) {
    if (rank == 0) {
        MPI_Finalize();
        compute();
    }
    receive(0, 7, world);
}

static void bcast_reduce(void) {
    if (rank == 0)
        MPI_Bcast(&value, 1, MPI_INT, 1, world);
    else
        MPI_Reduce(&value, values, 1, MPI_INT, MPI_SUM, 1, world);
}

static void bcast_allreduce(void) {
    /* Rank 0 waits for a message from rank 1; the broadcast reaches it from rank 3. */
    if (rank == 0)
        MPI_Allreduce(&value, values, 1, MPI_INT, MPI_SUM, world);
    else
        MPI_Bcast(&value, 1, MPI_INT, 1, world);
    MPI_Barrier(world);
}

static void not_in_barrier(void) {
    if (rank == 2)
        compute();
    MPI_Barrier(world);
}

static void one_receives(void) {
    if (rank == 1)
        receive(0, 2, world);
    MPI_Barrier(world);
}

static void ahead(void) {
    /* The root leaves the broadcast and is in the next collective; rank 2 never comes. */
    if (rank == 2)
        compute();
    MPI_Bcast(&value, 1, MPI_INT, 0, world);
    MPI_Barrier(world);
}

static void ssend_ring(void) { MPI_Ssend(&value, 1, MPI_INT, (rank + 1) % size, 4, world); }

static void posted(void) {
    MPI_Request request;
    MPI_Irecv(values, 1, MPI_INT, 1 - rank, 11, world, &request);
    if (rank == 0)
        receive(1, 5, world);
    compute();
}

static void waitall(void) {
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank == 2)
        compute();
    MPI_Irecv(values, 1, MPI_INT, 1 - rank, 1, world, &requests[0]);
    MPI_Irecv(values + 1, 1, MPI_INT, 2, 2, world, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void waitany(void) {
    MPI_Request requests[2];
    if (rank == 1)
        receive(0, 1, world);
    if (rank == 2)
        compute();
    MPI_Irecv(values, 1, MPI_INT, 1, 1, world, &requests[0]);
    MPI_Irecv(values + 1, 1, MPI_INT, 2, 2, world, &requests[1]);
    int index;
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
}

static void wait_one(void) {
    MPI_Request request;
    MPI_Irecv(values, 2, MPI_DOUBLE, 1 - rank, 8, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void probe(void) {
    if (rank == 0)
        compute();
    MPI_Probe(0, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
}

static void ibarrier(void) {
    MPI_Request request;
    if (rank == 1)
        compute();
    MPI_Ibarrier(world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void duplicate(void) {
    MPI_Comm copy;
    if (rank == 0)
        compute();
    MPI_Comm_dup(world, &copy);
}

static void sendrecv(void) {
    MPI_Sendrecv(&value, 1, MPI_INT, 1 - rank, 1, values, 1, MPI_INT, 1 - rank, 2, world, MPI_STATUS_IGNORE);
}

static void large_send(void) {
    static char big[1 << 20];
    MPI_Send(big, sizeof big, MPI_CHAR, 1 - rank, 0, world);
}

static void any_source(void) { receive(MPI_ANY_SOURCE, MPI_ANY_TAG, world); }

static void itself(void) { receive(0, 1, MPI_COMM_SELF); }

static void test_loop(void) {
    MPI_Request request;
    int flag = 0;
    MPI_Irecv(values, 1, MPI_INT, 1 - rank, 3, world, &request);
    if (rank == 1)
        receive(0, 3, world);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static MPI_Win window(void) {
    MPI_Win win;
    int *base;
    MPI_Win_allocate(sizeof value, 1, MPI_INFO_NULL, world, &base, &win);
    MPI_Win_set_name(win, "counters");
    return win;
}

static void miss_fence(MPI_Win win) {
    MPI_Win_fence(0, win);
    if (rank == 1)
        compute();
    MPI_Win_fence(0, win);
}

static void fence(void) {
    miss_fence(window());
}

/* Of memory that is not shared. */
static void fence_told(void) {
    MPI_Win win;
    MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, world, &win);
    MPI_Win_set_name(win, "counters");
    miss_fence(win);
}

static void miss_free(void) {
    MPI_Win win = window();
    if (rank == 1)
        compute();
    MPI_Win_free(&win);
}

static void start_without_post(void) {
    MPI_Win win = window();
    MPI_Group all, group;
    int other = 1 - rank;
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 1, &other, &group);
    if (rank == 1)
        receive(0, 5, world);
    MPI_Win_start(group, 0, win);
}

static void lock_held(void) {
    MPI_Win win = window();
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Barrier(world);
        compute();
    }
    MPI_Barrier(world);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
}

/* Ends when the file exists. */
static void slow(const char *file) {
    if (rank == 0) {
        while (access(file, F_OK) != 0)
            usleep(10000);
        MPI_Send(&value, 1, MPI_INT, 1, 7, world);
    } else if (rank == 1) {
        receive(0, 7, world);
    }
    MPI_Finalize();
    if (rank == 1)
        puts("the message came");
    exit(0);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"cycle", cycle},
    {"partitioned", partitioned},
    {"wrong-tag", wrong_tag},
    {"wrong-communicator", wrong_communicator},
    {"peer-computes", peer_computes},
    {"peer-finalizes", peer_finalizes},
    {"bcast-reduce", bcast_reduce},
    {"bcast-allreduce", bcast_allreduce},
    {"not-in-barrier", not_in_barrier},
    {"one-receives", one_receives},
    {"ahead", ahead},
    {"ssend-ring", ssend_ring},
    {"posted", posted},
    {"waitall", waitall},
    {"waitany", waitany},
    {"wait", wait_one},
    {"probe", probe},
    {"ibarrier", ibarrier},
    {"dup", duplicate},
    {"sendrecv", sendrecv},
    {"large-send", large_send},
    {"any-source", any_source},
    {"itself", itself},
    {"test-loop", test_loop},
    {"fence", fence},
    {"fence-told", fence_told},
    {"free-window", miss_free},
    {"start-without-post", start_without_post},
    {"lock-held", lock_held},
};

int main(int argc, char **argv) {
    /* Cases «ahead» and «bcast-allreduce» are about who sends to whom. */
    if (argc > 1 && strcmp(argv[1], "fence-told") == 0)
        setenv("TERN_WIN", "active", 1); /* else ranks of one host meet by words, as those of the other fence do */
    setenv("TERN_COLL_BCAST", "binomial", 1);
    setenv("TERN_COLL_ALLREDUCE", "recursive-doubling", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    if (argc == 3 && strcmp(argv[1], "slow") == 0)
        slow(argv[2]);
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    fprintf(stderr, "hang: rank %d of %d should not come here\n", rank, size);
    return 1;
}
