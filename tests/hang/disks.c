/* Files on a file system that is full, or that may not be written to: TMPDIR is that file system. */
#include "io/file_test.h"

#include <errno.h>
#include <fcntl.h>

enum { LENGTH = 65536 };

static char bytes[LENGTH], found[LENGTH];
static MPI_Status status;

/* Another file takes what is left; its length. */
static long long fill(const char *name) {
    long long length = 0;
    int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    CHECK(file >= 0);
    for (ssize_t n; (n = write(file, bytes, 4096)) > 0; length += n) {
    }
    CHECK(errno == ENOSPC);
    CHECK(close(file) == 0);
    return length;
}

static void full(void) {
    char other[600];
    snprintf(other, sizeof other, "%s-other", f_name);
    MPI_File file = f_open(F_NEW);
    t_fill(bytes, LENGTH, 5);
    if (t_rank == 0) {
        OK(MPI_File_write_at(file, 0, bytes, LENGTH, MPI_CHAR, &status));
        CHECK(fill(other) > LENGTH);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Offset beyond = LENGTH + (MPI_Offset)t_rank * LENGTH;
    SAYS(MPI_File_write_at(file, beyond, bytes, LENGTH, MPI_CHAR, &status), MPI_ERR_NO_SPACE, f_name, "No space left");
    MPI_Request request;
    int code = MPI_File_iwrite_at(file, beyond, bytes, LENGTH, MPI_CHAR, &request);
    SAYS(code == MPI_SUCCESS ? MPI_Wait(&request, &status) : code, MPI_ERR_NO_SPACE, f_name);
    OK(MPI_File_seek_shared(file, LENGTH, MPI_SEEK_SET));
    SAYS(MPI_File_write_shared(file, bytes, LENGTH, MPI_CHAR, &status), MPI_ERR_NO_SPACE, f_name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    SAYS(MPI_File_write_at_all(file, beyond, bytes, LENGTH, MPI_CHAR, &status), MPI_ERR_NO_SPACE, f_name);
    FAILS(MPI_File_preallocate(file, 64 * (MPI_Offset)LENGTH), MPI_ERR_NO_SPACE);
    OK(MPI_File_read_at_all(file, 0, found, LENGTH, MPI_CHAR, &status));
    CHECK_FILL(found, LENGTH, 5);
    /* With the space comes everything back. */
    if (t_rank == 0)
        CHECK(unlink(other) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    t_fill(bytes, LENGTH, 6 + t_rank);
    OK(MPI_File_write_at_all(file, beyond, bytes, LENGTH, MPI_CHAR, &status));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int next = (t_rank + 1) % t_size;
    OK(MPI_File_read_at_all(file, LENGTH + (MPI_Offset)next * LENGTH, found, LENGTH, MPI_CHAR, &status));
    CHECK_FILL(found, LENGTH, 6 + next);
    OK(MPI_File_close(&file));
}

/* Pieces in holes of a file that has its length already: of some tries all are written by calls, of others most by one call into a
 * mapping, where a full disk must be no signal. */
static void holes(void) {
    enum { BLOCK = 512, STRIDE = 8192, PIECES = 24, TRIES = 20, SUM = BLOCK * PIECES };
    char other[600];
    snprintf(other, sizeof other, "%s-other", f_name);
    MPI_File file = f_open(F_NEW);
    MPI_Datatype block, blocks;
    OK(MPI_Type_contiguous(BLOCK, MPI_CHAR, &block));
    OK(MPI_Type_create_resized(block, 0, (MPI_Aint)STRIDE * t_size, &blocks));
    OK(MPI_Type_commit(&blocks));
    OK(MPI_File_set_view(file, (MPI_Offset)STRIDE * t_rank, MPI_CHAR, blocks, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, SUM - BLOCK, bytes, BLOCK, MPI_CHAR, &status));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        CHECK(fill(other) > 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < TRIES; i++)
        SAYS(MPI_File_write_at(file, 0, bytes, SUM, MPI_CHAR, &status), MPI_ERR_NO_SPACE, f_name, "No space left");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        CHECK(unlink(other) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < TRIES; i++) {
        t_fill(bytes, SUM, i + t_rank);
        OK(MPI_File_write_at(file, 0, bytes, SUM, MPI_CHAR, &status));
        OK(MPI_File_read_at(file, 0, found, SUM, MPI_CHAR, &status));
        CHECK_FILL(found, SUM, i + t_rank);
    }
    OK(MPI_Type_free(&block));
    OK(MPI_Type_free(&blocks));
    OK(MPI_File_close(&file));
}

/* The file is there, and one byte long. */
static void read_only(const char *there) {
    MPI_File file;
    SAYS(MPI_File_open(MPI_COMM_WORLD, there, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_READ_ONLY, there);
    SAYS(MPI_File_open(MPI_COMM_WORLD, f_name, F_NEW, MPI_INFO_NULL, &file), MPI_ERR_READ_ONLY, f_name);
    SAYS(MPI_File_open(MPI_COMM_SELF, there, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file), MPI_ERR_READ_ONLY, there);
    if (t_rank == 0)
        SAYS(MPI_File_delete(there, MPI_INFO_NULL), MPI_ERR_READ_ONLY, there);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, there, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read_at_all(file, 0, found, 2, MPI_CHAR, &status));
    CHECK_COUNT(status, MPI_CHAR, 1);
    OK(MPI_File_read_shared(file, found, 1, MPI_CHAR, &status));
    FAILS(MPI_File_write_at(file, 0, bytes, 1, MPI_CHAR, &status), MPI_ERR_READ_ONLY);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    if (argc > 1)
        read_only(argv[1]);
    else {
        full();
        if (t_rank == 0)
            unlink(f_name);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        holes();
    }
    return f_end();
}
