/* Absolute addresses with MPI_BOTTOM; MPI_Get_address, Aint_add and Aint_diff. */
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int a = 10 + t_rank, in_a = -1;
    double b[2] = {1.5 + t_rank, 2.5}, in_b[2] = {0};
    MPI_Aint at[2], in_at[2];
    OK(MPI_Get_address(&a, &at[0]));
    OK(MPI_Get_address(b, &at[1]));
    OK(MPI_Get_address(&in_a, &in_at[0]));
    OK(MPI_Get_address(in_b, &in_at[1]));
    MPI_Aint second;
    OK(MPI_Get_address(&b[1], &second));
    CHECK_EQ(MPI_Aint_diff(second, at[1]), 8);
    CHECK_EQ(MPI_Aint_add(at[1], 8), second);
    MPI_Datatype out, in, types[2] = {MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_create_struct(2, (int[]){1, 2}, at, types, &out));
    OK(MPI_Type_create_struct(2, (int[]){1, 2}, in_at, types, &in));
    OK(MPI_Type_commit(&out));
    OK(MPI_Type_commit(&in));
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    OK(MPI_Sendrecv(MPI_BOTTOM, 1, out, next, 0, MPI_BOTTOM, 1, in, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(in_a, 10 + previous);
    CHECK(in_b[0] == 1.5 + previous && in_b[1] == 2.5);
    OK(MPI_Bcast(MPI_BOTTOM, 1, out, 0, MPI_COMM_WORLD));
    CHECK_EQ(a, 10);
    CHECK(b[0] == 1.5);
    OK(MPI_Type_free(&out));
    OK(MPI_Type_free(&in));
    return t_end();
}
