/* The shared pointer: nobody gets what another has got; ordered accesses; seeking. */
#include "file_test.h"

enum { EACH = 40 };

/* Nobody gets what another has got. */
static void each_its_own(MPI_File file) {
    MPI_Status status;
    for (int i = 0; i < EACH; i++) {
        int pair[2] = {t_rank, i};
        MPI_Request request;
        if (i % 2) {
            OK(MPI_File_write_shared(file, pair, 2, MPI_INT, &status));
        } else {
            OK(MPI_File_iwrite_shared(file, pair, 2, MPI_INT, &request));
            OK(MPI_Wait(&request, &status));
        }
        CHECK_COUNT(status, MPI_INT, 2);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Offset at = -1;
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 2 * EACH * t_size);
    int *all = t_alloc(sizeof(int) * 2 * EACH * t_size), *last = t_alloc(sizeof(int) * t_size);
    OK(MPI_File_read_at(file, 0, all, 2 * EACH * t_size, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 2 * EACH * t_size);
    for (int i = 0; i < t_size; i++)
        last[i] = -1;
    for (int i = 0; i < EACH * t_size; i++) {
        CHECK(all[2 * i] >= 0 && all[2 * i] < t_size);
        CHECK_AT(i, all[2 * i + 1], last[all[2 * i]] + 1);
        last[all[2 * i]]++;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    long mine = 0, sum = 0;
    for (int i = 0; i < EACH; i++) {
        int pair[2];
        OK(MPI_File_read_shared(file, pair, 2, MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, 2);
        mine += pair[0] * 1000 + pair[1];
    }
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    long want = 0;
    for (int r = 0; r < t_size; r++)
        for (int i = 0; i < EACH; i++)
            want += r * 1000 + i;
    CHECK_EQ(sum, want);
    free(all);
    free(last);
}

/* In the order of ranks, of different lengths. */
static void ordered(MPI_File file) {
    MPI_Status status;
    MPI_Offset at = -1;
    OK(MPI_File_seek_shared(file, 7, MPI_SEEK_SET));
    int *out = t_alloc(sizeof(int) * (t_rank + 1)), *in = t_alloc(sizeof(int) * (t_rank + 1));
    for (int i = 0; i <= t_rank; i++)
        out[i] = 100 * t_rank + i;
    OK(MPI_File_write_ordered(file, out, t_rank + 1, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, t_rank + 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 7 + t_size * (t_size + 1) / 2);
    int *row = t_alloc(sizeof(int) * t_size * (t_size + 1));
    OK(MPI_File_read_at(file, 7, row, t_size * (t_size + 1) / 2, MPI_INT, &status));
    for (int r = 0, i = 0; r < t_size; r++)
        for (int k = 0; k <= r; k++, i++)
            CHECK_AT(i, row[i], 100 * r + k);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, -t_size * (t_size + 1) / 2, MPI_SEEK_CUR));
    OK(MPI_File_read_ordered_begin(file, in, t_rank + 1, MPI_INT));
    OK(MPI_File_read_ordered_end(file, in, &status));
    CHECK_COUNT(status, MPI_INT, t_rank + 1);
    for (int i = 0; i <= t_rank; i++)
        CHECK_AT(i, in[i], out[i]);
    /* the same in one call, in twice as many halves */
    OK(MPI_File_seek_shared(file, 7, MPI_SEEK_SET));
    memset(in, 0xee, sizeof(int) * (size_t)(t_rank + 1));
    OK(MPI_File_read_ordered(file, in, 2 * (t_rank + 1), MPI_SHORT, &status));
    CHECK_COUNT(status, MPI_INT, t_rank + 1);
    for (int i = 0; i <= t_rank; i++)
        CHECK_AT(i, in[i], out[i]);
    free(out);
    free(in);
    free(row);
}

static void moved(MPI_File file) {
    MPI_Offset at = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position_shared(file, &at));
    MPI_Offset size = 0;
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(at, size / 4);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 0);
}

/* A stream: only the shared pointer is there. */
static void sequential(void) {
    MPI_Status status;
    MPI_File file = f_open(MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    int one = -1;
    OK(MPI_File_read_shared(file, &one, 1, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 1);
    FAILS(MPI_File_read(file, &one, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_read_at(file, 0, &one, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* nor is it told or moved, and a view begins where it is (MPI 5.0 sections 14.3, 14.4.3 and 14.4.4) */
    MPI_Offset at = -7;
    FAILS(MPI_File_get_position(file, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_get_byte_offset(file, 1, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_get_position_shared(file, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_seek_shared(file, 7, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_set_view(file, 3, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    CHECK_EQ(at, -7);
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    MPI_Offset disp = -1;
    MPI_Datatype etype, filetype;
    char name[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
    CHECK_EQ(disp, 4 * t_size);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    MPI_File file = f_open(F_NEW);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    each_its_own(file);
    ordered(file);
    moved(file);
    OK(MPI_File_close(&file));
    sequential();
    return f_end();
}
