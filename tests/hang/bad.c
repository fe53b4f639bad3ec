/* One wrong call, by name, on all ranks: what the user is told is checked by bad.py. A program
 * that gets past its mistake says so. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, value, values[4096];
static const MPI_Comm world = MPI_COMM_WORLD;
static void *nothing;

static void count(void) { MPI_Send(values, -1, MPI_INT, 0, 0, world); }
static void dest(void) { MPI_Send(values, 1, MPI_INT, size, 0, world); }
static void source(void) { MPI_Recv(values, 1, MPI_INT, -7, 0, world, MPI_STATUS_IGNORE); }
static void tag(void) { MPI_Send(values, 1, MPI_INT, 0, -5, world); }
static void any_tag(void) { MPI_Send(values, 1, MPI_INT, 0, MPI_ANY_TAG, world); }
static void any_source(void) { MPI_Send(values, 1, MPI_INT, MPI_ANY_SOURCE, 0, world); }
static void comm(void) { MPI_Send(values, 1, MPI_INT, 0, 0, (MPI_Comm)0x7654321); }
static void comm_null(void) { MPI_Barrier(MPI_COMM_NULL); }
static void type(void) { MPI_Send(values, 1, (MPI_Datatype)0x7654321, 0, 0, world); }
static void type_null(void) { MPI_Send(values, 1, MPI_DATATYPE_NULL, 0, 0, world); }
static void null_buffer(void) { MPI_Send(nothing, 3, MPI_INT, 0, 0, world); }
static void null_receive(void) { MPI_Recv(nothing, 3, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE); }
static void root(void) { MPI_Bcast(values, 1, MPI_INT, size, world); }
static void op(void) { MPI_Allreduce(&value, values, 1, MPI_FLOAT, MPI_BAND, world); }
static void op_null(void) { MPI_Allreduce(&value, values, 1, MPI_INT, MPI_OP_NULL, world); }
static void alias(void) { MPI_Allreduce(values, values, 1, MPI_INT, MPI_SUM, world); }
static void overlap(void) { MPI_Allreduce(values, values + 3, 8, MPI_INT, MPI_SUM, world); }
static void overlap_gather(void) { MPI_Allgather(values + rank, 1, MPI_INT, values, 1, MPI_INT, world); }
static void in_place(void) { MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 0, world); }
static void in_place_receive(void) { MPI_Allreduce(values, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world); }
static void counts(void) { MPI_Gather(values, 1, MPI_INT, values + 64, -2, MPI_INT, 0, MPI_COMM_SELF); }
static void null_request(void) { MPI_Wait(nothing, MPI_STATUS_IGNORE); }
static void window(void) { MPI_Win win; MPI_Win_create(values, -4, 4, MPI_INFO_NULL, world, &win); }
static void colour(void) { MPI_Comm made; MPI_Comm_split(world, -9, 0, &made); }

static void uncommitted(void) {
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Send(values, 1, pair, 0, 0, world);
}

static void freed_type(void) {
    MPI_Datatype pair, copy;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    copy = pair;
    MPI_Type_free(&pair);
    MPI_Send(values, 1, copy, 0, 0, world);
}

static void freed_comm(void) {
    MPI_Comm made, copy;
    MPI_Comm_dup(world, &made);
    copy = made;
    MPI_Comm_free(&made);
    MPI_Barrier(copy);
}

static void freed_request(void) {
    MPI_Request made, copy;
    MPI_Recv_init(values, 1, MPI_INT, 0, 0, world, &made);
    copy = made;
    MPI_Request_free(&made);
    MPI_Wait(&copy, MPI_STATUS_IGNORE);
}

static void freed_group(void) {
    MPI_Group made, copy;
    MPI_Comm_group(world, &made);
    copy = made;
    MPI_Group_free(&made);
    MPI_Group_size(copy, &value);
}

static void truncation(void) {
    int from = (rank + size - 1) % size;
    MPI_Request request;
    MPI_Isend(values, 10, MPI_INT, (rank + 1) % size, 33, world, &request);
    MPI_Recv(values, 4, MPI_INT, from, 33, world, MPI_STATUS_IGNORE);
}

static void long_truncation(void) {
    static char big[1 << 20];
    if (rank % 2 == 0)
        MPI_Send(big, sizeof big, MPI_CHAR, rank + 1, 33, world);
    else
        MPI_Recv(big, 1000, MPI_CHAR, rank - 1, 33, world, MPI_STATUS_IGNORE);
    sleep(600);
}

static void in_status(void) {
    MPI_Request requests[2];
    MPI_Isend(values, 10, MPI_INT, rank, 33, world, &requests[0]);
    MPI_Irecv(values + 64, 4, MPI_INT, rank, 33, world, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void kinds(void) {
    if (rank == 0)
        MPI_Bcast(values, 1, MPI_INT, 0, world);
    MPI_Barrier(world);
}

static void roots(void) {
    MPI_Bcast(values, 1, MPI_INT, rank < 2 ? rank : 0, world);
    MPI_Finalize();
    exit(0); /* only those who have been sent what they never received can tell */
}

static void lengths(void) {
    MPI_Bcast(values, rank == 0 ? 1 : 2, MPI_INT, 0, world);
    MPI_Finalize();
}

/* So different that the ranks choose different algorithms. */
static void algorithms(void) {
    static double from[1 << 17], to[1 << 17];
    MPI_Allreduce(from, to, rank == 0 ? 1 << 17 : 1, MPI_DOUBLE, MPI_SUM, world);
    MPI_Finalize();
}

static void init_twice(void) { MPI_Init(NULL, NULL); }
static void after_finalize(void) {
    MPI_Finalize();
    MPI_Barrier(world);
}

static void abort_7(void) {
    if (rank == size - 1)
        MPI_Abort(world, 7);
    MPI_Barrier(world);
}

/* Every pair of ranks exchanges messages of all sizes: needs all memory the device ever needs. */
static void all_memory(void) {
    static char out[4096], in[8][4096];
    for (int peer = 0; peer < size; peer++)
        for (int i = 0; i < 64; i++) {
            MPI_Request request;
            MPI_Isend(out, sizeof out, MPI_CHAR, peer, i, world, &request);
            MPI_Request_free(&request);
        }
    for (int peer = 0; peer < size; peer++)
        for (int i = 0; i < 64; i++)
            MPI_Recv(in[peer], sizeof out, MPI_CHAR, peer, i, world, MPI_STATUS_IGNORE);
}

static void good(void) {
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world);
    all_memory();
    MPI_Finalize();
    if (rank == 0)
        printf("sum %d of %d\n", sum, size);
    exit(sum == size * (size - 1) / 2 ? 0 : 3);
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(count), CASE(dest), CASE(source), CASE(tag), CASE(any_tag), CASE(any_source), CASE(comm), CASE(comm_null),
    CASE(type), CASE(type_null), CASE(null_buffer), CASE(null_receive), CASE(root), CASE(op), CASE(op_null), CASE(alias),
    CASE(overlap), CASE(overlap_gather), CASE(in_place), CASE(in_place_receive), CASE(counts), CASE(null_request), CASE(window), CASE(colour),
    CASE(uncommitted), CASE(freed_type), CASE(freed_comm), CASE(freed_request), CASE(freed_group), CASE(truncation),
    CASE(long_truncation), CASE(in_status), CASE(kinds), CASE(roots), CASE(lengths), CASE(algorithms),
    CASE(init_twice),
    CASE(after_finalize), CASE(abort_7), CASE(all_memory), CASE(good),
};

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "before_init") == 0)
        MPI_Barrier(world);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    fprintf(stderr, "bad: rank %d of %d got past its mistake\n", rank, size);
    return 1;
}
