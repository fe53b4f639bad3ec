/* Opening, closing, deleting, sizes and what is asked of a file as a whole. */
#include "file_test.h"

static void new_file(MPI_File file) {
    int amode = 0, result = -1;
    MPI_Offset size = -1;
    OK(MPI_File_get_amode(file, &amode));
    CHECK_EQ(amode, F_NEW);
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Group group, world;
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &result));
    CHECK_EQ(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
}

static void accesses(MPI_File file) {
    MPI_Offset size = -1;
    int mine[4] = {t_rank, t_rank + 1, t_rank + 2, t_rank + 3}, there[4] = {0};
    MPI_Status status;
    OK(MPI_File_write_at(file, 16 * t_rank, mine, 4, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 4);
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(file));
    int next = (t_rank + 1) % t_size;
    OK(MPI_File_read_at(file, 16 * next, there, 4, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 4);
    for (int i = 0; i < 4; i++)
        CHECK_AT(i, there[i], next + i);
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 16 * t_size);

    /* Behind the end there is nothing; across it there is what is before it. */
    OK(MPI_File_read_at(file, 16 * t_size + 8, there, 4, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 0);
    OK(MPI_File_read_at(file, 16 * t_size - 8, there, 4, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 2);
    CHECK_EQ(there[1], t_size + 2);
}

static void sizes(MPI_File file) {
    MPI_Offset size = -1;
    int flag = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_size(file, 10));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 10);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_preallocate(file, 5000));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 5000);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_preallocate(file, 20));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 5000);

    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_EQ(flag, 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_EQ(flag, 1);
}

/* All pointers at the end; and gone when it is closed. */
static void once_more(void) {
    MPI_File file = f_open(MPI_MODE_WRONLY | MPI_MODE_APPEND);
    MPI_Offset at = -1;
    OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, 5000);
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 5000);
    OK(MPI_File_close(&file));

    file = f_open(MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_close(&file));
    CHECK_EQ(access(f_name, F_OK), -1);
}

/* On parts of the world, and with a prefix. */
static void halves(void) {
    MPI_File file;
    MPI_Offset size = -1;
    MPI_Comm half;
    OK(MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, t_rank, &half));
    char name[600];
    snprintf(name, sizeof name, "ufs:%s.%d", f_name, t_rank % 2);
    OK(MPI_File_open(half, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_write_shared(file, &t_rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(half));
    int members = 0;
    OK(MPI_Comm_size(half, &members));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 4 * members);
    OK(MPI_File_close(&file));
    int part = 0;
    OK(MPI_Comm_rank(half, &part));
    if (part == 0) {
        OK(MPI_File_delete(name, MPI_INFO_NULL));
        FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    }
    OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    MPI_File file = f_open(F_NEW);
    new_file(file);
    accesses(file);
    sizes(file);
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    once_more();
    halves();
    return f_end();
}
