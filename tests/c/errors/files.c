/* Wrong use of files: the default error handler returns, the class is that of the cause, and the text names the
 * file and where in it.
 * not-on: mpich (leaves the handle of a file that cannot be opened as it was)
 * one-host: which files are the same is known within one host
 */
#include "../io/file_test.h"

#include <fcntl.h>
#include <sys/resource.h>

static int called = 0, handler_code = 0;

static void handler(MPI_File *file, int *code, ...) {
    (void)file;
    called++;
    handler_code = *code;
}

static int try_open(const char *name, int amode) {
    MPI_File file;
    int code = MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file);
    CHECK(file == MPI_FILE_NULL || code == MPI_SUCCESS);
    return code;
}

static void opening(void) {
    char name[600];
    /* Nothing of files is fatal, even while communicators are. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    SAYS(try_open(f_name, MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE, f_name);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    FAILS(try_open(f_name, 0), MPI_ERR_AMODE);
    FAILS(try_open(f_name, MPI_MODE_RDONLY | MPI_MODE_RDWR), MPI_ERR_AMODE);
    FAILS(try_open(f_name, MPI_MODE_RDONLY | MPI_MODE_CREATE), MPI_ERR_AMODE);
    FAILS(try_open(f_name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL), MPI_ERR_AMODE);
    FAILS(try_open("", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
    FAILS(try_open("/", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
    FAILS(try_open("/tmp", MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_BAD_FILE);
    FAILS(try_open("/dev/null/x", MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_BAD_FILE);
    FAILS(try_open("/proc/tern-nothing", MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_NO_SUCH_FILE);
    snprintf(name, sizeof name, "%s/x", f_name);
    FAILS(try_open(name, F_NEW), MPI_ERR_NO_SUCH_FILE);
    if (t_size > 1) {
        int amode = t_rank == 1 ? MPI_MODE_WRONLY | MPI_MODE_CREATE : F_NEW;
        SAYS(try_open(f_name, amode), MPI_ERR_NOT_SAME, "amode");
        /* Which files are the same is known within one host, and each rank is one where the adapter is forced. */
        if (!getenv("TERN_DEVICES"))
            FAILS(try_open(t_rank == 1 ? "/dev/null" : "/dev/zero", MPI_MODE_RDONLY), MPI_ERR_NOT_SAME);
        /* One that cannot makes all fail, each with the cause. */
        int mine = try_open(t_rank == 1 ? "/nonexistent/x" : "/dev/zero", MPI_MODE_RDONLY);
        SAYS(mine, MPI_ERR_NO_SUCH_FILE, t_rank == 1 ? "/nonexistent/x" : "rank 1");
    }
    FAILS(MPI_File_delete("/nonexistent/x", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_delete("/tmp", MPI_INFO_NULL), MPI_ERR_BAD_FILE);

    MPI_File file = f_open(F_NEW);
    OK(MPI_File_close(&file));
    FAILS(try_open(f_name, F_NEW | MPI_MODE_EXCL), MPI_ERR_FILE_EXISTS);
    FAILS(MPI_File_close(&file), MPI_ERR_FILE);
    MPI_Offset size;
    FAILS(MPI_File_get_size(MPI_FILE_NULL, &size), MPI_ERR_FILE);
}

static void arguments(void) {
    int word = 0;
    MPI_Offset at;
    MPI_Status status;
    MPI_File file = f_open(F_NEW), old = file;
    FAILS(MPI_File_write_at(file, -1, &word, 1, MPI_INT, &status), MPI_ERR_ARG);
    FAILS(MPI_File_read_at(file, -8, &word, 1, MPI_INT, &status), MPI_ERR_ARG);
    FAILS(MPI_File_write_at(file, 0, &word, -1, MPI_INT, &status), MPI_ERR_COUNT);
    FAILS(MPI_File_write_at(file, 0, &word, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    FAILS(MPI_File_write_at(file, 0, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
    FAILS(MPI_File_write_at(file, INT64_MAX - 1, &word, 1, MPI_INT, &status), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    FAILS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    FAILS(MPI_File_get_byte_offset(file, -1, &at), MPI_ERR_ARG);
    FAILS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    FAILS(MPI_File_preallocate(file, -1), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_CHAR, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    MPI_Datatype falls, open;
    int lens[2] = {1, 1}, displs[2] = {3, 0};
    OK(MPI_Type_indexed(2, lens, displs, MPI_INT, &falls));
    OK(MPI_Type_dup(falls, &open));
    OK(MPI_Type_commit(&falls));
    FAILS(MPI_File_set_view(file, 0, MPI_INT, falls, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, open, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_Type_free(&falls));
    OK(MPI_Type_free(&open));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    char byte = 0;
    FAILS(MPI_File_write_at(file, 0, &byte, 1, MPI_CHAR, &status), MPI_ERR_TYPE);
    if (t_size > 1) {
        FAILS(MPI_File_set_size(file, t_rank), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_seek_shared(file, t_rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_set_atomicity(file, t_rank == 0), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_set_view(file, 0, t_rank ? MPI_INT : MPI_SHORT, t_rank ? MPI_INT : MPI_SHORT, "native",
                                MPI_INFO_NULL), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, t_rank ? "native" : "internal", MPI_INFO_NULL),
              MPI_ERR_NOT_SAME);
        /* One wrong argument ends the collective for all. */
        FAILS(MPI_File_write_at_all(file, t_rank == 1 ? -3 : 0, &word, 1, MPI_INT, &status), MPI_ERR_ARG);
    }
    int other = 0;
    OK(MPI_File_read_all_begin(file, &word, 1, MPI_INT));
    FAILS(MPI_File_write_all_begin(file, &word, 1, MPI_INT), MPI_ERR_IO);
    FAILS(MPI_File_write_all_end(file, &word, &status), MPI_ERR_IO);
    FAILS(MPI_File_read_all_end(file, &other, &status), MPI_ERR_BUFFER);
    /* What changes the file or its view waits for the end. */
    SAYS(MPI_File_close(&file), MPI_ERR_IO, "`fh`", f_name, "MPI_File_read_all_end");
    SAYS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_IO, "`fh`", f_name,
         "MPI_File_read_all_begin");
    FAILS(MPI_File_set_size(file, 8), MPI_ERR_IO);
    FAILS(MPI_File_preallocate(file, 8), MPI_ERR_IO);
    FAILS(MPI_File_sync(file), MPI_ERR_IO);
    OK(MPI_File_read_all_end(file, &word, &status));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    FAILS(MPI_File_read_all_end(file, &word, &status), MPI_ERR_IO);
    OK(MPI_File_close(&file));
    FAILS(MPI_File_write_at(old, 0, &word, 1, MPI_INT, &status), MPI_ERR_FILE);
}

/* A stream is neither told where its pointers are nor moved. */
static void sequential(void) {
    MPI_Offset at;
    MPI_File file = f_open(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    SAYS(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION, "`fh`", f_name, "MPI_MODE_SEQUENTIAL");
    SAYS(MPI_File_get_byte_offset(file, 0, &at), MPI_ERR_UNSUPPORTED_OPERATION, "`fh`", f_name, "MPI_MODE_SEQUENTIAL");
    SAYS(MPI_File_get_position_shared(file, &at), MPI_ERR_UNSUPPORTED_OPERATION, "`fh`", f_name,
         "MPI_MODE_SEQUENTIAL");
    SAYS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION, "`fh`", f_name,
         "MPI_MODE_SEQUENTIAL");
    SAYS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG, "`disp`",
         "MPI_MODE_SEQUENTIAL");
    OK(MPI_File_close(&file));
}

static void the_system(void) {
    int words[2000] = {0};
    MPI_Status status;
    MPI_File file = f_open(MPI_MODE_RDONLY);
    SAYS(MPI_File_write_at(file, 0, words, 1, MPI_INT, &status), MPI_ERR_READ_ONLY, "`fh`", f_name, "MPI_MODE_RDONLY");
    SAYS(MPI_File_write(file, words, 1, MPI_INT, &status), MPI_ERR_READ_ONLY, "`fh`", f_name);
    SAYS(MPI_File_set_size(file, 5), MPI_ERR_READ_ONLY, "`fh`", f_name);
    OK(MPI_File_close(&file));
    file = f_open(MPI_MODE_WRONLY);
    SAYS(MPI_File_read_at(file, 0, words, 1, MPI_INT, &status), MPI_ERR_ACCESS, "`fh`", f_name, "MPI_MODE_WRONLY");
    OK(MPI_File_close(&file));
    /* A disk that is full. */
    OK(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    SAYS(MPI_File_write_at(file, 4096, words, 10, MPI_INT, &status), MPI_ERR_NO_SPACE,
         "40 bytes at offset 4096 of /dev/full");
    FAILS(MPI_File_write_at_all(file, 40 * t_rank, words, 10, MPI_INT, &status), MPI_ERR_NO_SPACE);
    OK(MPI_File_close(&file));
    /* Removed meanwhile: those who have it open keep it. */
    file = f_open(F_NEW);
    OK(MPI_File_write_at_all(file, 8000 * t_rank, words, 2000, MPI_INT, &status));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        OK(MPI_File_delete(f_name, MPI_INFO_NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_read_at_all(file, 0, words, 2000, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 2000);
    OK(MPI_File_close(&file));
    FAILS(try_open(f_name, MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE);
    file = f_open(F_NEW | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        unlink(f_name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    FAILS(MPI_File_close(&file), MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL);
}

static void handlers(void) {
    MPI_Errhandler mine, found;
    MPI_File file;
    MPI_Offset at;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    CHECK(found == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(handler, &mine));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    FAILS(try_open("/nonexistent/x", MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(called, 1);
    int class = 0;
    OK(MPI_Error_class(handler_code, &class));
    CHECK_EQ(class, MPI_ERR_NO_SUCH_FILE);
    /* A file has from its birth what MPI_FILE_NULL has. */
    file = f_open(F_NEW);
    FAILS(MPI_File_get_byte_offset(file, -1, &at), MPI_ERR_ARG);
    CHECK_EQ(called, 2);
    OK(MPI_File_call_errhandler(file, MPI_ERR_IO));
    CHECK_EQ(called, 3);
    OK(MPI_File_get_errhandler(file, &found));
    CHECK(found == mine);
    OK(MPI_Errhandler_free(&found));
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    FAILS(MPI_File_get_byte_offset(file, -1, &at), MPI_ERR_ARG);
    CHECK_EQ(called, 3);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    opening();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    arguments();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    sequential();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    the_system();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    handlers();
    return f_end();
}
