/* Large counts: the _c forms of constructors, sizes and messages. No memory of that size is
 * needed: the types are large, the messages moderate. */
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const MPI_Count huge = (MPI_Count)3 << 30;
    MPI_Datatype type, wide;
    MPI_Count size, lower, extent, true_lower, true_extent;
    int small;
    OK(MPI_Type_contiguous_c(huge, MPI_DOUBLE, &type));
    OK(MPI_Type_size_c(type, &size));
    CHECK_EQ(size, 8 * huge);
    OK(MPI_Type_size(type, &small));
    CHECK_EQ(small, MPI_UNDEFINED);
    OK(MPI_Type_get_extent_c(type, &lower, &extent));
    CHECK(lower == 0 && extent == 8 * huge);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_vector_c(2, 1, huge, MPI_INT, &type));
    OK(MPI_Type_get_true_extent_c(type, &true_lower, &true_extent));
    CHECK(true_lower == 0 && true_extent == 4 * huge + 4);
    CHECK(MPI_Type_get_true_extent_x(type, &lower, &extent) == MPI_SUCCESS && lower == 0 && extent == 4 * huge + 4);
    OK(MPI_Type_size_c(type, &size));
    CHECK_EQ(size, 8);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_struct_c(2, (MPI_Count[]){1, huge}, (MPI_Count[]){0, 16}, (MPI_Datatype[]){MPI_INT, MPI_BYTE},
                                &type));
    OK(MPI_Type_size_c(type, &size));
    CHECK_EQ(size, 4 + huge);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_indexed_c(2, (MPI_Count[]){1, 2}, (MPI_Count[]){0, huge}, MPI_BYTE, &type));
    OK(MPI_Type_get_extent_c(type, &lower, &extent));
    CHECK_EQ(extent, huge + 2);
    OK(MPI_Type_create_resized_c(type, 0, 2 * huge, &wide));
    OK(MPI_Type_get_extent_c(wide, &lower, &extent));
    CHECK_EQ(extent, 2 * huge);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&wide));

    /* Messages by the large entry points. */
    enum { N = 1000 };
    int out[N], in[N], next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    MPI_Request request;
    MPI_Status status;
    MPI_Count count;
    for (int i = 0; i < N; i++)
        out[i] = t_rank * N + i;
    OK(MPI_Irecv_c(in, (MPI_Count)N, MPI_INT, previous, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Send_c(out, (MPI_Count)N, MPI_INT, next, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count_c(&status, MPI_INT, &count));
    CHECK_EQ(count, N);
    for (int i = 0; i < N; i++)
        CHECK_AT(i, in[i], previous * N + i);
    OK(MPI_Bcast_c(out, (MPI_Count)N, MPI_INT, 0, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++)
        CHECK_AT(i, out[i], i);
    OK(MPI_Allreduce_c(MPI_IN_PLACE, out, (MPI_Count)N, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++)
        CHECK_AT(i, out[i], i * t_size);
    MPI_Count counts[16];
    MPI_Aint offsets[16];
    int *all = t_alloc(sizeof(int) * (size_t)t_size * 3);
    for (int r = 0; r < t_size; r++) {
        counts[r] = 3;
        offsets[r] = 3 * (t_size - 1 - r);
    }
    int mine[3] = {t_rank, t_rank * 2, t_rank * 3};
    OK(MPI_Allgatherv_c(mine, 3, MPI_INT, all, counts, offsets, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < t_size; r++)
        for (int k = 0; k < 3; k++)
            CHECK_AT(r, all[offsets[r] + k], r * (k + 1));
    free(all);
    return t_end();
}
