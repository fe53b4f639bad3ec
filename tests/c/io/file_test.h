/* A file name that all ranks have, of a file that is not there. */
#ifndef FILE_TEST_H
#define FILE_TEST_H

#include "../tern_test.h"

#include <sys/stat.h>
#include <unistd.h>

static char f_name[512];

__attribute__((unused)) static void f_begin(int *argc, char ***argv) {
    t_begin(argc, argv);
    const char *directory = getenv("TMPDIR");
    int number = (int)getpid();
    OK(MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(f_name, sizeof f_name, "%s/tern-io-%d", directory ? directory : "/tmp", number);
    if (t_rank == 0)
        unlink(f_name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

__attribute__((unused)) static int f_end(void) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        unlink(f_name);
    return t_end();
}

__attribute__((unused)) static MPI_File f_open_on(MPI_Comm comm, int amode) {
    MPI_File file = MPI_FILE_NULL;
    OK(MPI_File_open(comm, f_name, amode, MPI_INFO_NULL, &file));
    CHECK(file != MPI_FILE_NULL);
    return file;
}

__attribute__((unused)) static MPI_File f_open(int amode) {
    return f_open_on(MPI_COMM_WORLD, amode);
}

#define F_NEW (MPI_MODE_CREATE | MPI_MODE_RDWR)

#define CHECK_COUNT(status, type, want)                                        \
    do {                                                                       \
        int count_ = -2;                                                       \
        OK(MPI_Get_count(&(status), type, &count_));                           \
        CHECK_EQ(count_, want);                                                \
    } while (0)

#endif
