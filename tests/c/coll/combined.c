/* Reductions of messages that may be combined where they lie: lengths on both sides of what goes by a block, types whose elements are cut nowhere
 * and others, ranks out of step, and several collectives behind each other whose messages meet in one ring. */
#include "tern_test.h"

#include <unistd.h>

static int rank, size;

/* Small enough for the sum of 64 ranks to be exact in 24 bits. */
static int item(int r, long i) { return (int)((i * 31 + r * 7 + i / 113) % 1000); }

static int sum(int last, long i) {
    int total = 0;
    for (int r = 0; r < last; r++)
        total += item(r, i);
    return total;
}

/* Some ranks come late, others in the middle of what the first ones write. */
static void out_of_step(int round) {
    if ((round + rank) % 5 == 0)
        usleep(50 * (unsigned)(rank + 1));
}

#define SUMS(type, handle)                                                                                             \
    static void sums_of_##type(long count, int round) {                                                                \
        type *out = malloc((size_t)count * size * sizeof *out), *in = malloc((size_t)count * size * sizeof *in);       \
        for (long i = 0; i < count * size; i++)                                                                        \
            out[i] = (type)item(rank, i);                                                                              \
        out_of_step(round);                                                                                            \
        OK(MPI_Allreduce(out, in, (int)count, handle, MPI_SUM, MPI_COMM_WORLD));                                 \
        for (long i = 0; i < count; i++)                                                                               \
            CHECK(in[i] == (type)sum(size, i));                                                                        \
        memcpy(in, out, (size_t)count * sizeof *in);                                                                   \
        OK(MPI_Allreduce(MPI_IN_PLACE, in, (int)count, handle, MPI_SUM, MPI_COMM_WORLD));                        \
        for (long i = 0; i < count; i++)                                                                               \
            CHECK(in[i] == (type)sum(size, i));                                                                        \
        int root = round % size;                                                                                       \
        OK(MPI_Reduce(out, in, (int)count, handle, MPI_SUM, root, MPI_COMM_WORLD));                              \
        for (long i = 0; i < count && rank == root; i++)                                                               \
            CHECK(in[i] == (type)sum(size, i));                                                                        \
        out_of_step(round + 1);                                                                                        \
        OK(MPI_Reduce_scatter_block(out, in, (int)count, handle, MPI_SUM, MPI_COMM_WORLD));                      \
        for (long i = 0; i < count; i++)                                                                               \
            CHECK(in[i] == (type)sum(size, rank * count + i));                                                         \
        OK(MPI_Scan(out, in, (int)count, handle, MPI_SUM, MPI_COMM_WORLD));                                      \
        for (long i = 0; i < count; i++)                                                                               \
            CHECK(in[i] == (type)sum(rank + 1, i));                                                                    \
        for (long i = 0; i < count * size; i++)                                                                        \
            CHECK(out[i] == (type)item(rank, i));                                                                      \
        free(out);                                                                                                     \
        free(in);                                                                                                      \
    }

typedef long double longer;
SUMS(int, MPI_INT)
SUMS(double, MPI_DOUBLE)
SUMS(longer, MPI_LONG_DOUBLE)

/* The largest and who has it, with 8, 12 and 20 bytes of data in an element. */
#define LOCATED(type, handle)                                                                                          \
    static void located_##type(long count, int round) {                                                                \
        struct { type value; int where; } *out = malloc((size_t)count * sizeof *out), *in = calloc((size_t)count, sizeof *in); \
        for (long i = 0; i < count; i++) {                                                                             \
            out[i].value = (type)item(rank, i * 7 + round);                                                            \
            out[i].where = rank;                                                                                       \
        }                                                                                                              \
        out_of_step(round);                                                                                            \
        OK(MPI_Allreduce(out, in, (int)count, handle, MPI_MAXLOC, MPI_COMM_WORLD));                              \
        for (long i = 0; i < count; i++) {                                                                             \
            int best = 0;                                                                                              \
            for (int r = 1; r < size; r++)                                                                             \
                best = item(r, i * 7 + round) > item(best, i * 7 + round) ? r : best;                                  \
            CHECK(in[i].value == (type)item(best, i * 7 + round) && in[i].where == best);                              \
        }                                                                                                              \
        free(out);                                                                                                     \
        free(in);                                                                                                      \
    }

LOCATED(int, MPI_2INT)
LOCATED(double, MPI_DOUBLE_INT)
LOCATED(longer, MPI_LONG_DOUBLE_INT)

/* Operations of the application want their operands as a whole. */
static void application(void *in, void *inout, int *count, MPI_Datatype *type) {
    CHECK(*type == MPI_INT);
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void own_operation(long count, int round) {
    int *out = malloc((size_t)count * sizeof *out), *in = malloc((size_t)count * sizeof *in);
    MPI_Op op;
    OK(MPI_Op_create(application, round % 2, &op));
    for (long i = 0; i < count; i++)
        out[i] = item(rank, i);
    OK(MPI_Allreduce(out, in, (int)count, MPI_INT, op, MPI_COMM_WORLD));
    for (long i = 0; i < count; i++)
        CHECK_EQ(in[i], sum(size, i));
    OK(MPI_Op_free(&op));
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    rank = t_rank;
    size = t_size;
    static const long counts[] = { 255, 256, 257, 1000, 4099, 16384, 65536, 65537, 100000 };
    for (int round = 0; round < 27; round++) {
        long count = counts[round % 9];
        sums_of_int(count, round);
        sums_of_double(count, round);
        if (count <= 16384) {
            sums_of_longer(count, round);
            located_int(count, round);
            located_double(count, round);
            located_longer(count, round);
        }
        own_operation(count, round);
    }
    return t_end();
}
