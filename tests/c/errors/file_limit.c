/* A file that may not become longer (RLIMIT_FSIZE, as `ulimit -f` sets it): what does not fit is an error on all ranks, what was
 * there before stays, and the file goes on to be used. A program that runs cannot be written to. */
// not-on: mpich (gives MPI_ERR_IO or one of the classes of collectives where a file may not become longer)
// one-host: which files are the same is known within one host
#include "../io/file_test.h"

#include <signal.h>
#include <sys/resource.h>

enum { LIMIT = 4096 };

static char bytes[2 * LIMIT], found[LIMIT];
static MPI_Status status;

static void alone(MPI_File file) {
    SAYS(MPI_File_write_at(file, LIMIT, bytes, 8, MPI_CHAR, &status), MPI_ERR_NO_SPACE, "8 bytes at offset 4096", f_name);
    FAILS(MPI_File_write_at(file, LIMIT - 8, bytes, 16, MPI_CHAR, &status), MPI_ERR_NO_SPACE);
    MPI_Request request;
    int code = MPI_File_iwrite_at(file, LIMIT, bytes, 8, MPI_CHAR, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, &status);
    SAYS(code, MPI_ERR_NO_SPACE, f_name);
}

static void together(MPI_File file) {
    MPI_Offset size;
    FAILS(MPI_File_set_size(file, LIMIT + 1), MPI_ERR_NO_SPACE);
    FAILS(MPI_File_preallocate(file, 2 * LIMIT), MPI_ERR_NO_SPACE);
    OK(MPI_File_get_size(file, &size));
    CHECK(size <= LIMIT);
    /* All of it is beyond the limit for each, so that each is told, whoever writes for whom. */
    FAILS(MPI_File_write_at_all(file, LIMIT + 64 * t_rank, bytes, 64, MPI_CHAR, &status), MPI_ERR_NO_SPACE);
    int code = MPI_File_write_at_all_begin(file, LIMIT + 64 * t_rank, bytes, 64, MPI_CHAR);
    if (code == MPI_SUCCESS)
        code = MPI_File_write_at_all_end(file, bytes, &status);
    FAILS(code, MPI_ERR_NO_SPACE);
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    /* The system would end the process. */
    signal(SIGXFSZ, SIG_IGN);
    MPI_File file = f_open(F_NEW), self;
    t_fill(bytes, LIMIT, 1);
    if (t_rank == 0)
        OK(MPI_File_write_at(file, 0, bytes, LIMIT, MPI_CHAR, &status));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    struct rlimit limit, before;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit = (struct rlimit){LIMIT, before.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    alone(file);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    together(file);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_read_at_all(file, 0, found, LIMIT - 8, MPI_CHAR, &status));
    CHECK_FILL(found, LIMIT - 8, 1);
    OK(MPI_File_write_at_all(file, LIMIT + 64 * t_rank, bytes, 64, MPI_CHAR, &status));
    CHECK_COUNT(status, MPI_CHAR, 64);
    OK(MPI_File_close(&file));
    SAYS(MPI_File_open(MPI_COMM_SELF, argv[0], MPI_MODE_WRONLY, MPI_INFO_NULL, &self), MPI_ERR_FILE_IN_USE, argv[0]);
    return f_end();
}
