/* Views: strided, subarrays, individual pointers, seeking, representations. */
#include "file_test.h"

/* Every rank sees each `t_size`-th int; together they fill the file. */
static void strided(void) {
    MPI_File file = f_open(F_NEW);
    MPI_Datatype one, tile, etype, filetype;
    OK(MPI_Type_contiguous(1, MPI_INT, &one));
    OK(MPI_Type_create_resized(one, 0, (MPI_Aint)sizeof(int) * t_size, &tile));
    OK(MPI_Type_commit(&tile));
    OK(MPI_File_set_view(file, 8 + 4 * t_rank, MPI_INT, tile, "native", MPI_INFO_NULL));
    MPI_Offset disp = -1, at = -1;
    char name[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
    CHECK_EQ(disp, 8 + 4 * t_rank);
    CHECK(etype == MPI_INT);
    CHECK_STR(name, "native");
    if (filetype != MPI_INT)
        OK(MPI_Type_free(&filetype));

    int out[100], in[100];
    for (int i = 0; i < 100; i++)
        out[i] = i * t_size + t_rank;
    MPI_Status status;
    OK(MPI_File_write(file, out, 60, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 60);
    OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, 60);
    OK(MPI_File_write_all(file, out + 60, 40, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 40);
    OK(MPI_File_get_byte_offset(file, 5, &at));
    CHECK_EQ(at, 8 + 4 * t_rank + 5 * 4 * t_size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek(file, 10, MPI_SEEK_SET));
    OK(MPI_File_read(file, in, 5, MPI_INT, &status));
    for (int i = 0; i < 5; i++)
        CHECK_AT(i, in[i], out[10 + i]);
    OK(MPI_File_seek(file, -5, MPI_SEEK_CUR));
    OK(MPI_File_read_all(file, in, 90, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 90);
    for (int i = 0; i < 90; i++)
        CHECK_AT(i, in[i], out[10 + i]);
    OK(MPI_File_seek(file, -1, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, 99);
    OK(MPI_File_read_at_all(file, 98, in, 10, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 2);
    CHECK_EQ(in[1], out[99]);

    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 2 + t_size * 30, in, t_size, MPI_INT, &status));
    for (int i = 0; i < t_size; i++)
        CHECK_AT(i, in[i], 30 * t_size + i);
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&tile));
    OK(MPI_File_close(&file));
}

/* A matrix by blocks of columns, from memory with a border. */
static void subarray(void) {
    enum { ROWS = 37, WIDTH = 5 };
    MPI_File file = f_open(F_NEW);
    int whole[2] = {ROWS, WIDTH * t_size}, part[2] = {ROWS, WIDTH}, start[2] = {0, WIDTH * t_rank};
    int memory[2] = {ROWS + 2, WIDTH + 2}, inside[2] = {1, 1};
    MPI_Datatype there, here;
    OK(MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &there));
    OK(MPI_Type_create_subarray(2, memory, part, inside, MPI_ORDER_C, MPI_DOUBLE, &here));
    OK(MPI_Type_commit(&there));
    OK(MPI_Type_commit(&here));
    OK(MPI_File_set_view(file, 0, MPI_DOUBLE, there, "native", MPI_INFO_NULL));
    double out[ROWS + 2][WIDTH + 2], in[ROWS + 2][WIDTH + 2];
    for (int i = 0; i < ROWS + 2; i++)
        for (int k = 0; k < WIDTH + 2; k++) {
            out[i][k] = 1000 * i + WIDTH * t_rank + k;
            in[i][k] = -1;
        }
    MPI_Status status;
    for (int form = 0; form < 2; form++) {
        if (form == 0)
            OK(MPI_File_write_at_all(file, 0, out, 1, here, &status));
        else
            OK(MPI_File_write_at(file, ROWS * WIDTH, out, 1, here, &status));
        CHECK_COUNT(status, here, 1);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (form == 0)
            OK(MPI_File_read_at_all(file, 0, in, 1, here, &status));
        else
            OK(MPI_File_read_at(file, ROWS * WIDTH, in, 1, here, &status));
        CHECK_COUNT(status, here, 1);
        for (int i = 0; i < ROWS + 2; i++)
            for (int k = 0; k < WIDTH + 2; k++) {
                int border = i == 0 || k == 0 || i > ROWS || k > WIDTH;
                CHECK_AT(100 * i + k, in[i][k], border ? -1 : out[i][k]);
            }
        memset(in, 0, sizeof in);
        for (int i = 0; i < ROWS + 2; i++)
            for (int k = 0; k < WIDTH + 2; k++)
                in[i][k] = -1;
    }
    OK(MPI_Type_free(&there));
    OK(MPI_Type_free(&here));
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        unlink(f_name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    strided();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        unlink(f_name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    subarray();
    return f_end();
}
