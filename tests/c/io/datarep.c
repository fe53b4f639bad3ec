/* external32 and the representations of a program. */
// not-on: mpich (registers functions that convert, and never calls them)
#include <stddef.h>

#include "file_test.h"

static int extents = 0, reads = 0, writes = 0;

static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *extra) {
    CHECK_EQ(*(int *)extra, 77);
    CHECK(type == MPI_INT);
    extents++;
    *extent = 8;
    return MPI_SUCCESS;
}

/* An int as eight digits of base 16. */
static int to_file(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
    CHECK_EQ(*(int *)extra, 77);
    CHECK(type == MPI_INT && position == 0);
    writes++;
    for (int i = 0; i < count; i++) {
        char digits[9];
        snprintf(digits, sizeof digits, "%08x", ((unsigned *)user)[i]);
        memcpy((char *)file + 8 * i, digits, 8);
    }
    return MPI_SUCCESS;
}

static int from_file(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *extra) {
    (void)extra;
    CHECK(type == MPI_INT && position == 0);
    reads++;
    for (MPI_Count i = 0; i < count; i++) {
        char digits[9] = "";
        memcpy(digits, (char *)file + 8 * i, 8);
        ((unsigned *)user)[i] = (unsigned)strtoul(digits, NULL, 16);
    }
    return MPI_SUCCESS;
}

static int from_file_small(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
    return from_file(user, type, count, file, position, extra);
}

static int refuses(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
    (void)user, (void)type, (void)count, (void)file, (void)position, (void)extra;
    return MPI_ERR_OTHER;
}

/* A long has 4 bytes in external32: each rank has every t_size-th. */
static void external32(MPI_File file) {
    MPI_Status status;
    MPI_Aint extent = 0;
    long out[6] = {1, -2, 3, -4, 5, t_rank}, in[6];
    unsigned char raw[4];

    MPI_Datatype tile;
    OK(MPI_Type_vector(2, 1, t_size, MPI_LONG, &tile));
    OK(MPI_Type_commit(&tile));
    int lens[1] = {1}, starts[1] = {t_rank}, sizes[1] = {t_size};
    MPI_Datatype part;
    OK(MPI_Type_create_subarray(1, sizes, lens, starts, MPI_ORDER_C, MPI_LONG, &part));
    OK(MPI_Type_commit(&part));
    OK(MPI_File_set_view(file, 0, MPI_LONG, part, "external32", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK_EQ(extent, 4);
    OK(MPI_File_get_type_extent(file, tile, &extent));
    CHECK_EQ(extent, 4 * (t_size + 1));
    OK(MPI_File_write_all(file, out, 6, MPI_LONG, &status));
    CHECK_COUNT(status, MPI_LONG, 6);
    MPI_Offset at = -1, size = -1;
    OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, 6);
    OK(MPI_File_get_byte_offset(file, 2, &at));
    CHECK_EQ(at, 4 * (2 * t_size + t_rank));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 24 * t_size);
    memset(in, 0x77, sizeof in);
    OK(MPI_File_read_at(file, 1, in, 6, MPI_LONG, &status));
    CHECK_COUNT(status, MPI_LONG, 5);
    for (int i = 0; i < 5; i++)
        CHECK_AT(i, in[i], out[i + 1]);
    CHECK_EQ(in[5], 0x7777777777777777L);
    long large = 1L << 40;
    FAILS(MPI_File_write_at(file, 0, &large, 1, MPI_LONG, &status), MPI_ERR_CONVERSION);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 4 * (t_size + t_rank), raw, 4, MPI_BYTE, &status));
    CHECK(raw[0] == 0xff && raw[3] == 0xfe);
    OK(MPI_Type_free(&tile));
    OK(MPI_Type_free(&part));
}

/* An int and a long take 8 bytes of a file in external32, where displacements in bytes are those of the file. */
static void external32_of_several(MPI_File file) {
    MPI_Status status;
    struct item {
        int number;
        long value;
    } out[3], in[3];
    int lens[2] = {1, 1};
    MPI_Datatype parts[2] = {MPI_INT, MPI_LONG}, item, memory, etype, tile, resized;
    MPI_Aint there[2] = {offsetof(struct item, number), offsetof(struct item, value)};
    MPI_Aint unit[2] = {0, 4}, places[2] = {8 * t_rank, 8 * t_rank + 4}, extent = 0;
    OK(MPI_Type_create_struct(2, lens, there, parts, &item));
    OK(MPI_Type_create_resized(item, 0, sizeof(struct item), &memory));
    OK(MPI_Type_create_struct(2, lens, unit, parts, &etype));
    OK(MPI_Type_create_struct(2, lens, places, parts, &tile));
    OK(MPI_Type_create_resized(tile, 0, 8 * t_size, &resized));
    MPI_Datatype *used[3] = {&memory, &etype, &resized};
    for (int i = 0; i < 3; i++)
        OK(MPI_Type_commit(used[i]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 0, etype, resized, "external32", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, etype, &extent));
    CHECK_EQ(extent, 8);
    for (int i = 0; i < 3; i++)
        out[i] = (struct item){100 * t_rank + i, -1 - i};
    OK(MPI_File_write_at_all(file, 0, out, 3, memory, &status));
    CHECK_COUNT(status, memory, 3);
    MPI_Offset at = -1, size = -1;
    OK(MPI_File_get_byte_offset(file, 2, &at));
    CHECK_EQ(at, 8 * (2 * t_size + t_rank));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 24 * t_size);
    memset(in, 0, sizeof in);
    OK(MPI_File_read_at(file, 1, in, 2, memory, &status));
    CHECK_COUNT(status, memory, 2);
    for (int i = 0; i < 2; i++)
        CHECK(in[i].number == out[i + 1].number && in[i].value == out[i + 1].value);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    unsigned char raw[8], want[8] = {0, 0, (100 * t_rank + 2) >> 8, 100 * t_rank + 2, 255, 255, 255, 253};
    OK(MPI_File_read_at(file, at, raw, 8, MPI_BYTE, &status));
    CHECK(memcmp(raw, want, 8) == 0);
    MPI_Datatype *made[5] = {&item, &memory, &etype, &tile, &resized};
    for (int i = 0; i < 5; i++)
        OK(MPI_Type_free(made[i]));
}

static void of_the_program(MPI_File file) {
    MPI_Status status;
    static int extra = 77;
    FAILS(MPI_Register_datarep("native", from_file_small, to_file, extent_of, &extra), MPI_ERR_DUP_DATAREP);
    OK(MPI_Register_datarep("hex", from_file_small, to_file, extent_of, &extra));
    FAILS(MPI_Register_datarep("hex", from_file_small, to_file, extent_of, &extra), MPI_ERR_DUP_DATAREP);
    OK(MPI_Register_datarep_c("hex-in", from_file, MPI_CONVERSION_FN_NULL_C, extent_of, &extra));
    OK(MPI_Register_datarep("as-it-is", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, &extra));
    OK(MPI_Register_datarep("refuses", refuses, refuses, extent_of, &extra));
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no such", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "hex", MPI_INFO_NULL));
    int digits[3] = {0xabc, t_rank, -1}, again[3] = {0, 0, 0};
    OK(MPI_File_write_at_all(file, 3 * t_rank, digits, 3, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 3);
    CHECK(extents > 0 && writes == 1);
    OK(MPI_File_read_at_all(file, 3 * t_rank, again, 3, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 3);
    CHECK(reads == 1 && again[0] == 0xabc && again[1] == t_rank && again[2] == -1);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "hex-in", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, again, 3, MPI_INT, &status));
    CHECK(reads == 2 && again[0] == 0xabc && again[1] == 0);
    FAILS(MPI_File_write_at(file, 0, again, 3, MPI_INT, &status), MPI_ERR_CONVERSION);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "refuses", MPI_INFO_NULL));
    FAILS(MPI_File_read_at(file, 0, again, 3, MPI_INT, &status), MPI_ERR_CONVERSION);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    unsigned char raw[8];
    OK(MPI_File_read_at(file, 24 * t_rank, raw, 8, MPI_BYTE, &status));
    CHECK(memcmp(raw, "00000abc", 8) == 0);
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    MPI_File file = f_open(F_NEW);
    external32(file);
    external32_of_several(file);
    of_the_program(file);
    OK(MPI_File_close(&file));
    return f_end();
}
