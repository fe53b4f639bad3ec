/* Every predefined operation on types of each kind and size: all ranks combine
 * into one target at once, and what MPI_Reduce says is what must be there. Then
 * what a rank fetches is one of the values that lay there in between, REPLACE,
 * NO_OP, strides, and the order of one origin's operations. */
// args: allocate
// args: create
#include "tern_test.h"

enum { N = 37 };

static MPI_Win win;
static char *base;

static void fill(void *buffer, MPI_Datatype type, int rank) {
    for (int i = 0; i < N; i++) {
        int v = (i * 7 + rank * 3) % 5 + 1;
#define AS(mpi, c) if (type == mpi) ((c *)buffer)[i] = (c)v
        AS(MPI_CHAR, char); AS(MPI_SIGNED_CHAR, signed char); AS(MPI_UNSIGNED_CHAR, unsigned char);
        AS(MPI_SHORT, short); AS(MPI_UNSIGNED_SHORT, unsigned short); AS(MPI_INT, int);
        AS(MPI_UNSIGNED, unsigned); AS(MPI_LONG, long); AS(MPI_UNSIGNED_LONG, unsigned long);
        AS(MPI_LONG_LONG, long long); AS(MPI_FLOAT, float); AS(MPI_DOUBLE, double);
        AS(MPI_LONG_DOUBLE, long double); AS(MPI_C_BOOL, _Bool); AS(MPI_BYTE, unsigned char);
        AS(MPI_C_FLOAT_COMPLEX, float _Complex); AS(MPI_C_DOUBLE_COMPLEX, double _Complex);
        AS(MPI_AINT, MPI_Aint); AS(MPI_INT8_T, int8_t); AS(MPI_UINT64_T, uint64_t);
#undef AS
#define PAIR(mpi, c) if (type == mpi) { struct { c v; int i; } *p = buffer; p[i].v = (c)v; p[i].i = rank; }
        PAIR(MPI_2INT, int) PAIR(MPI_FLOAT_INT, float) PAIR(MPI_DOUBLE_INT, double) PAIR(MPI_LONG_INT, long)
        PAIR(MPI_SHORT_INT, short) PAIR(MPI_LONG_DOUBLE_INT, long double)
#undef PAIR
    }
}

static void check(MPI_Datatype type, MPI_Op op, const char *name) {
    MPI_Aint lb, extent;
    OK(MPI_Type_get_extent(type, &lb, &extent));
    size_t bytes = N * extent;
    char *mine = t_alloc(bytes), *want = t_alloc(bytes), *packed[2];
    int size, position = 0;
    OK(MPI_Pack_size(N, type, MPI_COMM_SELF, &size));
    memset(mine, 0, bytes);
    memset(want, 0, bytes);
    fill(mine, type, t_rank);
    if (t_rank == 0)
        memcpy(base, mine, bytes);
    OK(MPI_Win_fence(0, win));
    if (t_rank != 0)
        OK(MPI_Accumulate(mine, N, type, 0, 0, N, type, op, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Reduce(mine, want, N, type, op, 0, MPI_COMM_WORLD));
    if (t_rank == 0) {
        for (int i = 0; i < 2; i++) {
            packed[i] = calloc(1, size);
            position = 0;
            OK(MPI_Pack(i ? want : base, N, type, packed[i], size, &position, MPI_COMM_SELF));
        }
        /* Of a long double not all bytes mean something. */
        int width = type == MPI_LONG_DOUBLE ? 16 : type == MPI_LONG_DOUBLE_INT ? 20 : 1;
        for (int i = 0; i < position; i++)
            if (width == 1 || i % width < 10 || i % width >= 16)
                if (packed[0][i] != packed[1][i])
                    t_fail(__FILE__, __LINE__, "%s: byte %d is %02x, expected %02x", name, i, packed[0][i] & 255,
                           packed[1][i] & 255);
        free(packed[0]);
        free(packed[1]);
    }
    OK(MPI_Win_fence(0, win));
    free(mine);
    free(want);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Aint bytes = 4096;
    if (argc > 1 && strcmp(argv[1], "create") == 0) {
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base));
        OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
#define EACH(...) do { MPI_Datatype types_[] = {__VA_ARGS__}; \
        for (size_t i_ = 0; i_ < sizeof types_ / sizeof *types_; i_++) { check(types_[i_], OP, #__VA_ARGS__); } } while (0)
#define INTEGERS MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT, MPI_UNSIGNED, MPI_LONG, \
        MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_AINT, MPI_INT8_T, MPI_UINT64_T
#define FLOATS MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE
#define COMPLEX MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX
#define OP MPI_SUM
    EACH(INTEGERS, FLOATS, COMPLEX);
#undef OP
#define OP MPI_PROD
    EACH(INTEGERS, FLOATS);
#undef OP
#define OP MPI_MIN
    EACH(INTEGERS, FLOATS);
#undef OP
#define OP MPI_MAX
    EACH(INTEGERS, FLOATS);
#undef OP
#define OP MPI_BAND
    EACH(INTEGERS, MPI_BYTE);
#undef OP
#define OP MPI_BOR
    EACH(INTEGERS, MPI_BYTE);
#undef OP
#define OP MPI_BXOR
    EACH(INTEGERS, MPI_BYTE);
#undef OP
#define OP MPI_LAND
    EACH(INTEGERS, MPI_C_BOOL);
#undef OP
#define OP MPI_LOR
    EACH(INTEGERS, MPI_C_BOOL);
#undef OP
#define OP MPI_LXOR
    EACH(INTEGERS, MPI_C_BOOL);
#undef OP
#define OP MPI_MINLOC
    EACH(MPI_2INT, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT);
#undef OP
#define OP MPI_MAXLOC
    EACH(MPI_2INT, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT);
#undef OP

    /* What is fetched: with SUM of ones the ranks see all numbers, each once. */
    double *cells = (double *)base, one = 1, old[2] = {-1, -1};
    memset(base, 0, bytes);
    OK(MPI_Win_fence(0, win));
    double ones[2] = {1, 1};
    OK(MPI_Get_accumulate(ones, 2, MPI_DOUBLE, old, 2, MPI_DOUBLE, 0, 8, 2, MPI_DOUBLE, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    double sums[2], *all = t_alloc(sizeof *all * 2 * t_size);
    OK(MPI_Gather(old, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    if (t_rank == 0) {
        CHECK_EQ(cells[1], t_size);
        CHECK_EQ(cells[2], t_size);
        for (int value = 0; value < t_size; value++)
            for (int k = 0; k < 2; k++) {
                int times = 0;
                for (int rank = 0; rank < t_size; rank++)
                    times += all[2 * rank + k] == value;
                CHECK_AT(value, times, 1);
            }
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, sums, 2, MPI_DOUBLE, 0, 8, 2, MPI_DOUBLE, MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(sums[0], t_size);
    CHECK_EQ(sums[1], t_size);

    /* One origin's operations on one place come in order. */
    memset(base, 0, bytes);
    OK(MPI_Win_fence(0, win));
    int to = (t_rank + 1) % t_size;
    double two = 2, three = 3, seen[3] = {0};
    OK(MPI_Accumulate(&two, 1, MPI_DOUBLE, to, 0, 1, MPI_DOUBLE, MPI_REPLACE, win));
    OK(MPI_Fetch_and_op(&three, &seen[0], MPI_DOUBLE, to, 0, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&one, &seen[1], MPI_DOUBLE, to, 0, MPI_REPLACE, win));
    OK(MPI_Fetch_and_op(NULL, &seen[2], MPI_DOUBLE, to, 0, MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(seen[0], 2);
    CHECK_EQ(seen[1], 5);
    CHECK_EQ(seen[2], 1);

    /* Strides: every third double of all ranks' neighbours, from every second. */
    MPI_Datatype third, second;
    OK(MPI_Type_vector(20, 1, 3, MPI_DOUBLE, &third));
    OK(MPI_Type_vector(20, 1, 2, MPI_DOUBLE, &second));
    OK(MPI_Type_commit(&third));
    OK(MPI_Type_commit(&second));
    memset(base, 0, bytes);
    OK(MPI_Win_fence(0, win));
    double values[40];
    for (int i = 0; i < 40; i++)
        values[i] = t_rank + i;
    for (int round = 0; round < 3; round++)
        OK(MPI_Accumulate(values, 1, second, to, 0, 1, third, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    int from = (t_rank + t_size - 1) % t_size;
    for (int i = 0; i < 60; i++)
        CHECK_AT(i, cells[i], i % 3 ? 0 : 3 * (from + 2 * (i / 3)));
    OK(MPI_Type_free(&third));
    OK(MPI_Type_free(&second));
    OK(MPI_Win_free(&win));
    return t_end();
}
