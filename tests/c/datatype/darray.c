/* Distributed arrays: every element of the global array belongs to exactly one rank of the
 * process grid, for block and cyclic distributions, both orders; the local data of each
 * rank, in the order of the type, is what an oracle computes from the definition. */
#include "tern_test.h"

typedef struct {
    int global[2], distribution[2], argument[2], grid[2], order;
} setup;

static const setup setups[] = {
    {{8, 6}, {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK}, {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, {2, 3}, MPI_ORDER_C},
    {{7, 5}, {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, {3, 2}, MPI_ORDER_C},
    {{11, 9}, {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC}, {2, 3}, {2, 2}, MPI_ORDER_C},
    {{11, 9}, {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, {3, 5}, {2, 2}, MPI_ORDER_FORTRAN},
    {{6, 10}, {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC}, {MPI_DISTRIBUTE_DFLT_DARG, 1}, {1, 4}, MPI_ORDER_FORTRAN},
    {{5, 5}, {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, {4, MPI_DISTRIBUTE_DFLT_DARG}, {2, 1}, MPI_ORDER_C},
};

/* Which process coordinate owns index `i` of dimension `d`. */
static int owner(const setup *s, int d, int i) {
    int n = s->global[d], p = s->grid[d], arg = s->argument[d];
    switch (s->distribution[d]) {
    case MPI_DISTRIBUTE_BLOCK:
        return i / (arg == MPI_DISTRIBUTE_DFLT_DARG ? (n + p - 1) / p : arg);
    case MPI_DISTRIBUTE_CYCLIC:
        return i / (arg == MPI_DISTRIBUTE_DFLT_DARG ? 1 : arg) % p;
    default:
        return 0;
    }
}

static void check(const setup *s) {
    int n = s->global[0] * s->global[1], processes = s->grid[0] * s->grid[1], total = 0;
    int *plate = t_alloc(sizeof(int) * (size_t)n), *local = t_alloc(sizeof(int) * (size_t)n);
    for (int i = 0; i < n; i++)
        plate[i] = i;
    for (int rank = 0; rank < processes; rank++) {
        MPI_Datatype type;
        MPI_Aint lower, extent;
        int size, position = 0, back = 0, wanted = 0;
        OK(MPI_Type_create_darray(processes, rank, 2, s->global, s->distribution, s->argument, s->grid, s->order, MPI_INT,
                                  &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_size(type, &size));
        OK(MPI_Type_get_extent(type, &lower, &extent));
        CHECK_EQ(lower, 0);
        CHECK_EQ(extent, n * (int)sizeof(int));
        char packed[4096];
        OK(MPI_Pack(plate, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF));
        OK(MPI_Unpack(packed, position, &back, local, size / 4, MPI_INT, MPI_COMM_SELF));
        /* The process grid is always in row-major order (MPI 5.0, 5.1.4). */
        int row = rank / s->grid[1], column = rank % s->grid[1];
        int fast = s->order == MPI_ORDER_C ? 1 : 0, slow = 1 - fast;
        for (int j = 0; j < s->global[slow]; j++)
            for (int i = 0; i < s->global[fast]; i++) {
                int at[2];
                at[fast] = i;
                at[slow] = j;
                if (owner(s, 0, at[0]) == row && owner(s, 1, at[1]) == column) 
                    {
                    CHECK_AT(wanted, local[wanted], j * s->global[fast] + i);
                    wanted++;
                }
            }
        CHECK_EQ(size, wanted * 4);
        total += wanted;
        OK(MPI_Type_free(&type));
    }
    CHECK_EQ(total, n);
    free(plate);
    free(local);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        check(&setups[i]);
    return t_end();
}
