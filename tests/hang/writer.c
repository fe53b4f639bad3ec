/* Ranks write one file together, locked and not, until one of them is killed; without `write`, one rank opens what is left and
 * reads and writes it. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 18 };

static void check(int result, const char *what) {
    if (result != MPI_SUCCESS) {
        fprintf(stderr, "writer: %s failed\n", what);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

int main(int argc, char **argv) {
    int rank, *data = malloc(COUNT * sizeof *data);
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < COUNT; i++)
        data[i] = 7;
    check(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    check(MPI_File_set_atomicity(file, 1), "atomicity");
    for (long round = 0; argc > 2; round++) {
        MPI_Request request;
        check(MPI_File_iwrite_at(file, 0, data, COUNT, MPI_INT, &request), "iwrite");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(MPI_File_write_shared(file, data, 10, MPI_INT, MPI_STATUS_IGNORE), "write_shared");
        if (round == 0)
            fprintf(stderr, "rank %d writes, process %d\n", rank, (int)getpid());
    }
    int got;
    MPI_Status status;
    check(MPI_File_read_at(file, 0, data, COUNT, MPI_INT, &status), "read");
    MPI_Get_count(&status, MPI_INT, &got);
    for (int i = 0; i < COUNT; i++)
        if (got != COUNT || data[i] != 7)
            check(MPI_ERR_OTHER, "reading what was written");
    check(MPI_File_write_at(file, 0, data, COUNT, MPI_INT, &status), "write");
    check(MPI_File_write_shared(file, data, 10, MPI_INT, MPI_STATUS_IGNORE), "write_shared");
    check(MPI_File_close(&file), "close");
    MPI_Finalize();
    printf("the file is well\n");
    return 0;
}
