/* A program that has the processor trap invalid operations, divisions by zero and overflows runs, and in one that does not no such flag is
 * raised by the library: in starting, messages, collectives, windows and files, on one host and by the adapter. */
// np: 1,2,4
// args: trap
// args: look
// args: trap rnic
#define _GNU_SOURCE
#include "tern_test.h"

#include <fenv.h>
#include <unistd.h>

enum { EXCEPTIONS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW, MOST = 1 << 20, ROUNDS = 60 };

static char *out, *in;

static void messages(void) {
    int next = (t_rank + 1) % t_size, before = (t_rank + t_size - 1) % t_size;
    for (int size = 1; size <= MOST; size *= 8)
        for (int round = 0; round < ROUNDS; round++)
            OK(MPI_Sendrecv(out, size, MPI_BYTE, next, 1, in, size, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void collectives(void) {
    MPI_Comm host;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    for (int size = 8; size <= MOST / t_size; size *= 8)
        for (int round = 0; round < 4; round++) {
            MPI_Request request;
            OK(MPI_Bcast(out, size, MPI_BYTE, 0, MPI_COMM_WORLD));
            OK(MPI_Allreduce(out, in, size / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
            OK(MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD));
            OK(MPI_Iallgather(out, size, MPI_BYTE, in, size, MPI_BYTE, host, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    OK(MPI_Comm_free(&host));
}

static void windows(void) {
    MPI_Win win;
    OK(MPI_Win_create(in, MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    for (int size = 8; size <= MOST; size *= 8) {
        OK(MPI_Put(out, size, MPI_BYTE, (t_rank + 1) % t_size, 0, size, MPI_BYTE, win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Accumulate(out, size / 8, MPI_DOUBLE, 0, 0, size / 8, MPI_DOUBLE, MPI_SUM, win));
        OK(MPI_Win_fence(0, win));
    }
    OK(MPI_Win_free(&win));
}

static void files(void) {
    char name[] = "traps.XXXXXX";
    if (t_rank == 0) {
        int made = mkstemp(name);
        CHECK(made >= 0);
        close(made);
    }
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
    MPI_File file;
    MPI_Datatype stripes;
    OK(MPI_Type_vector(16, 64, 64 * t_size, MPI_BYTE, &stripes));
    OK(MPI_Type_commit(&stripes));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 64 * t_rank, MPI_BYTE, stripes, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, out, 1024, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, 0, in, 1024, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&stripes));
}

int main(int argc, char **argv) {
    int traps = argc > 1 && strcmp(argv[1], "trap") == 0;
    if (argc > 2) /* no other library knows of it */
        setenv("TERN_DEVICES", argv[2], 1);
    feclearexcept(FE_ALL_EXCEPT);
    if (traps)
        feenableexcept(EXCEPTIONS);
    t_begin(&argc, &argv);
    CHECK_EQ(fetestexcept(EXCEPTIONS), 0);
    out = calloc(1, MOST);
    in = calloc(1, MOST);
    messages();
    CHECK_EQ(fetestexcept(EXCEPTIONS), 0);
    collectives();
    CHECK_EQ(fetestexcept(EXCEPTIONS), 0);
    windows();
    CHECK_EQ(fetestexcept(EXCEPTIONS), 0);
    files();
    CHECK_EQ(fetestexcept(EXCEPTIONS), 0);
    free(out);
    free(in);
    return t_end();
}
