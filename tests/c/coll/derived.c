/* Collectives over derived types: a strided column is broadcast, gathered, scattered and
 * exchanged; what lies between its elements is never touched. */
#include "coll_forms.h"

enum { ROWS = 700, COLUMNS = 5 };

static MPI_Datatype column;

static void clear(int (*m)[COLUMNS]) {
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            m[i][j] = -9;
}

static void check_column(int (*m)[COLUMNS], int which, int rank) {
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            CHECK_AT(i, m[i][j], j == which ? item(rank, i) : -9);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Datatype vector;
    OK(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &vector));
    OK(MPI_Type_create_resized(vector, 0, sizeof(int), &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_free(&vector));
    int(*m)[COLUMNS] = t_alloc(sizeof(int) * ROWS * COLUMNS), *flat = ints((long long)ROWS * t_size);
    for (int root = 0; root < t_size; root++) {
        clear(m);
        for (int i = 0; i < ROWS; i++)
            flat[i] = t_rank == root ? item(root, i) : -1;
        if (t_rank == root)
            for (int i = 0; i < ROWS; i++)
                m[i][2] = flat[i];
        /* A column on even ranks, contiguous on odd ones. */
        if (t_rank % 2 == 0) {
            OK(MPI_Bcast(&m[0][2], 1, column, root, MPI_COMM_WORLD));
            check_column(m, 2, root);
        } else {
            OK(MPI_Bcast(flat, ROWS, MPI_INT, root, MPI_COMM_WORLD));
            for (int i = 0; i < ROWS; i++)
                CHECK_AT(i, flat[i], item(root, i));
        }
    }
    /* Columns are gathered into a flat array and scattered back from it. */
    clear(m);
    for (int i = 0; i < ROWS; i++)
        m[i][1] = item(t_rank, i);
    OK(MPI_Allgather(&m[0][1], 1, column, flat, ROWS, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < ROWS * t_size; i++)
        CHECK_AT(i, flat[i], item(i / ROWS, i % ROWS));
    clear(m);
    OK(MPI_Scatter(flat, ROWS, MPI_INT, &m[0][3], 1, column, t_size - 1, MPI_COMM_WORLD));
    check_column(m, 3, t_rank);
    /* Everybody's columns come interleaved: a transposition on the way. */
    int *wide = blank((long long)ROWS * t_size), *mine = contribution(t_rank, ROWS);
    MPI_Datatype spread, slot;
    OK(MPI_Type_vector(ROWS, 1, t_size, MPI_INT, &spread));
    OK(MPI_Type_create_resized(spread, 0, sizeof(int), &slot));
    OK(MPI_Type_commit(&slot));
    OK(MPI_Allgather(mine, ROWS, MPI_INT, wide, 1, slot, MPI_COMM_WORLD));
    for (int i = 0; i < ROWS; i++)
        for (int r = 0; r < t_size; r++)
            CHECK_AT(i, wide[i * t_size + r], item(r, i));
    memset(flat, 0, sizeof(int) * ROWS * (size_t)t_size);
    OK(MPI_Alltoall(wide, 1, slot, flat, ROWS, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < t_size; r++)
        for (int i = 0; i < ROWS; i++)
            CHECK_AT(i, flat[r * ROWS + i], item(t_rank, i));
    OK(MPI_Type_free(&spread));
    OK(MPI_Type_free(&slot));
    OK(MPI_Type_free(&column));
    free(wide);
    free(mine);
    free(flat);
    free(m);
    return t_end();
}
