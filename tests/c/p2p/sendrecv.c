/* Sendrecv, Sendrecv_replace, Isendrecv and Isendrecv_replace: rings in both directions,
 * to oneself, to MPI_PROC_NULL, with different types on the two sides. */
#include "tern_test.h"

static void ring(int bytes, int step) {
    int to = (t_rank + step) % t_size, from = (t_rank + t_size - step % t_size) % t_size;
    unsigned char *out = t_alloc((size_t)bytes), *in = t_alloc((size_t)bytes + 8);
    MPI_Status status;
    MPI_Request request;
    t_fill(out, (size_t)bytes, (uint64_t)t_rank);
    memset(in, 0x11, (size_t)bytes + 8);
    OK(MPI_Sendrecv(out, bytes, MPI_BYTE, to, 1, in, bytes + 8, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, from, 1, bytes);
    CHECK_FILL(in, bytes, (uint64_t)from);
    CHECK_UNTOUCHED(in + bytes, 8, 0x11);
    memset(in, 0x22, (size_t)bytes + 8);
    OK(MPI_Isendrecv(out, bytes, MPI_BYTE, to, 2, in, bytes, MPI_BYTE, from, 2, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_FILL(in, bytes, (uint64_t)from);
    OK(MPI_Sendrecv_replace(out, bytes, MPI_BYTE, to, 3, from, 3, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, from, 3, bytes);
    CHECK_FILL(out, bytes, (uint64_t)from);
    /* And back again. */
    OK(MPI_Isendrecv_replace(out, bytes, MPI_BYTE, from, 4, to, 4, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_FILL(out, bytes, (uint64_t)t_rank);
    free(out);
    free(in);
}

/* A strided column goes out, a contiguous row comes in. */
static void mixed_types(void) {
    enum { N = 300 };
    int to = (t_rank + 1) % t_size, from = (t_rank + t_size - 1) % t_size;
    int *matrix = t_alloc(sizeof(int) * N * N), row[N];
    for (int i = 0; i < N * N; i++)
        matrix[i] = t_rank * N * N + i;
    MPI_Datatype column;
    MPI_Status status;
    OK(MPI_Type_vector(N, 1, N, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Sendrecv(matrix + 5, 1, column, to, 9, row, N, MPI_INT, from, 9, MPI_COMM_WORLD, &status));
    for (int i = 0; i < N; i++)
        CHECK_AT(i, row[i], from * N * N + i * N + 5);
    /* Replacing a column touches nothing beside it. */
    OK(MPI_Sendrecv_replace(matrix + 7, 1, column, to, 10, from, 10, MPI_COMM_WORLD, &status));
    for (int i = 0; i < N * N; i++)
        CHECK_AT(i, matrix[i], (i % N == 7 ? from : t_rank) * N * N + i);
    OK(MPI_Type_free(&column));
    free(matrix);
}

static void to_nobody(void) {
    int out = 5, in = 6;
    MPI_Status status;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, 1, &in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    CHECK_EQ(in, 6);
    OK(MPI_Sendrecv_replace(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    CHECK_EQ(in, 6);
    /* A chain with open ends. */
    int to = t_rank + 1 < t_size ? t_rank + 1 : MPI_PROC_NULL, from = t_rank > 0 ? t_rank - 1 : MPI_PROC_NULL;
    out = t_rank;
    in = -7;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, to, 2, &in, 1, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(in, t_rank > 0 ? t_rank - 1 : -7);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const int sizes[] = {0, 1, 64, 4097, 70000, 1048576, 3000001};
    for (int s = 0; s < 7; s++)
        for (int step = 1; step <= t_size; step++)
            ring(sizes[s], step);
    mixed_types();
    to_nobody();
    return t_end();
}
