/* More operations in one epoch than a rank could keep, short and long ones. */
// args: allocate
// args: create
// timeout: 120
#include "tern_test.h"

enum { SHORT = 50000, LONG = 200, BYTES = 100000 };

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    char *base, *out = t_alloc((size_t)LONG * BYTES);
    long *values = t_alloc(8 * SHORT);
    MPI_Win win;
    MPI_Aint bytes = 8 * SHORT + BYTES;
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        base = t_alloc(bytes);
        OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
    memset(base, 0, bytes);
    int to = (t_rank + 1) % t_size, from = (t_rank + t_size - 1) % t_size;
    OK(MPI_Win_fence(0, win));
    for (long i = 0; i < SHORT; i++) {
        values[i] = i * t_size + t_rank;
        OK(MPI_Put(&values[i], 1, MPI_LONG, to, 8 * i, 1, MPI_LONG, win));
    }
    for (int i = 0; i < LONG; i++) {
        char *part = out + (size_t)i * BYTES;
        memset(part, i + t_rank, BYTES);
        OK(MPI_Accumulate(part, BYTES, MPI_BYTE, to, 8 * SHORT, BYTES, MPI_BYTE, MPI_REPLACE, win));
    }
    OK(MPI_Win_fence(0, win));
    for (long i = 0; i < SHORT; i++)
        CHECK_AT(i, ((long *)base)[i], i * t_size + from);
    CHECK_UNTOUCHED(base + 8 * SHORT, BYTES, LONG - 1 + from);
    long *back = t_alloc(8 * SHORT);
    OK(MPI_Win_fence(0, win));
    for (long i = 0; i < SHORT; i++)
        OK(MPI_Get(&back[i], 1, MPI_LONG, to, 8 * i, 1, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (long i = 0; i < SHORT; i++)
        CHECK_AT(i, back[i], i * t_size + t_rank);
    OK(MPI_Win_free(&win));
    return t_end();
}
