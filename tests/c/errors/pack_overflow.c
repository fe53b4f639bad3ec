/* Packing and unpacking beyond the end of the packed buffer. */
// np: 1
// not-on: mpich (MPI_Pack does not look at outsize)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int data[8] = {0}, position = 0;
    char packed[64];
    memset(packed, 0x5C, sizeof packed);
    FAILS_EITHER(MPI_Pack(data, 8, MPI_INT, packed, 31, &position, MPI_COMM_WORLD), MPI_ERR_TRUNCATE, MPI_ERR_ARG);
    position = 8;
    FAILS_EITHER(MPI_Pack(data, 7, MPI_INT, packed, 32, &position, MPI_COMM_WORLD), MPI_ERR_TRUNCATE, MPI_ERR_ARG);
    CHECK_UNTOUCHED(packed, 64, 0x5C);
    position = 0;
    FAILS_EITHER(MPI_Unpack(packed, 31, &position, data, 8, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TRUNCATE, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Pack(data, 1, MPI_INT, packed, -1, &position, MPI_COMM_WORLD), MPI_ERR_ARG, MPI_ERR_COUNT);
    return t_end();
}
