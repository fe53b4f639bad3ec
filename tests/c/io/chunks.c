/* As HDF5 describes the chunks of a dataset: whole ones are plain, others resized, so the extent of all is less than what
 * they span (section 5.1.6: markers count, plain bounds do not). The first tile is all that is asked for. */
// not-on: mpich (5.0.2 counts plain bounds beside markers)
#include "file_test.h"

static void chunks(void) {
    MPI_File file = f_open(F_NEW);
    MPI_Datatype whole, half, part, all;
    OK(MPI_Type_contiguous(4, MPI_INT, &whole));
    OK(MPI_Type_contiguous(2, MPI_INT, &half));
    OK(MPI_Type_create_resized(half, 0, 16, &part));
    MPI_Aint lb, extent;
    OK(MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 16, 48}, (MPI_Datatype[]){whole, whole, part}, &all));
    OK(MPI_Type_commit(&all));
    OK(MPI_Type_get_extent(all, &lb, &extent));
    CHECK_EQ(lb, 48);
    CHECK_EQ(extent, 16); /* the next tile would begin inside of this one */
    OK(MPI_File_set_view(file, 64 * t_rank, MPI_INT, all, "native", MPI_INFO_NULL));
    int out[10], in[16];
    for (int i = 0; i < 10; i++)
        out[i] = 100 * t_rank + i;
    MPI_Status status;
    OK(MPI_File_write_all(file, out, 10, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 10);
    OK(MPI_File_read_at(file, 3, in, 7, MPI_INT, &status));
    for (int i = 0; i < 7; i++)
        CHECK_AT(i, in[i], out[3 + i]);
    FAILS(MPI_File_read_at(file, 3, in, 8, MPI_INT, &status), MPI_ERR_TYPE);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 16 * t_rank, in, 14, MPI_INT, &status));
    for (int i = 0; i < 10; i++)
        CHECK_AT(i, in[i < 8 ? i : i + 4], out[i]);
    OK(MPI_Type_free(&whole));
    OK(MPI_Type_free(&half));
    OK(MPI_Type_free(&part));
    OK(MPI_Type_free(&all));
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    chunks();
    return f_end();
}
