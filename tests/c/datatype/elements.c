/* Partial receives: MPI_Get_elements counts basic elements, MPI_Get_count says undefined. */
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Datatype pair;
    struct { int a; double b; } in[4];
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &pair));
    OK(MPI_Type_commit(&pair));
    char packed[64] = {0};
    /* Bytes 0, 4, 12, 16, 24: nothing, one int, a pair, a pair and an int, two pairs. */
    const int bytes[5] = {0, 4, 12, 16, 24}, elements[5] = {0, 1, 2, 3, 4}, counts[5] = {0, -1, 1, -1, 2};
    for (int i = 0; i < 5; i++) {
        MPI_Status status;
        int got = -5;
        MPI_Count large = -5;
        OK(MPI_Sendrecv(packed, bytes[i], MPI_PACKED, t_rank, 0, in, 4, pair, t_rank, 0, MPI_COMM_WORLD, &status));
        OK(MPI_Get_elements(&status, pair, &got));
        CHECK_AT(i, got, elements[i]);
        OK(MPI_Get_elements_x(&status, pair, &large));
        CHECK_AT(i, large, elements[i]);
        OK(MPI_Get_elements_c(&status, pair, &large));
        CHECK_AT(i, large, elements[i]);
        OK(MPI_Get_count(&status, pair, &got));
        CHECK_AT(i, got, counts[i] < 0 ? MPI_UNDEFINED : counts[i]);
    }
    OK(MPI_Type_free(&pair));
    return t_end();
}
