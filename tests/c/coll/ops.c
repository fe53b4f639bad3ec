/* Every predefined operation on every type it is defined for, against an oracle that folds
 * in plain C; and MPI_ERR_OP for the pairs it is not defined for. Values are small
 * integers, so that floating point sums are exact in any order. */
#include "coll_forms.h"

#include <complex.h>
#include <stdbool.h>

enum { COUNT = 37 };

/* Small, often equal, sometimes zero or negative, products stay below 2^14 on 7 ranks. */
static int small(int rank, int i) {
    return (rank * 5 + i * 3) % 4 - 1;
}

static int low(int rank, int i) {
    return (rank * 7 + i * 11) % 120;
}

static void check_errors(MPI_Datatype type, const MPI_Op *list, int count) {
    char in[64 * 4] = {0}, out[64 * 4] = {0};
    for (int i = 0; i < count; i++) {
        FAILS(MPI_Reduce_local(in, out, 1, type, list[i]), MPI_ERR_OP);
        FAILS(MPI_Allreduce(in, out, 1, type, list[i], MPI_COMM_SELF), MPI_ERR_OP);
    }
}

/* One operation on one type: `expression` combines x and y; `source` gives the elements. */
#define FOLD(mpi_type, c_type, op, source, expression)                         \
    do {                                                                       \
        c_type in[COUNT], out[COUNT], want[COUNT];                             \
        for (int i = 0; i < COUNT; i++) {                                      \
            in[i] = (c_type)source(t_rank, i);                                 \
            want[i] = (c_type)source(0, i);                                    \
            for (int r = 1; r < t_size; r++) {                                 \
                c_type x = want[i], y = (c_type)source(r, i);                  \
                want[i] = (c_type)(expression);                                \
            }                                                                  \
        }                                                                      \
        memset((void *)out, 0x5a, sizeof out);                                 \
        OK(MPI_Allreduce(in, out, COUNT, mpi_type, op, MPI_COMM_WORLD));       \
        for (int i = 0; i < COUNT; i++)                                        \
            if (out[i] != want[i])                                             \
                t_fail(__FILE__, __LINE__, "%s of %s: wrong at %d", #op, #mpi_type, i); \
        c_type a = (c_type)source(1, 2), b = (c_type)source(3, 4), x = a, y = b; \
        OK(MPI_Reduce_local(&a, &b, 1, mpi_type, op));                         \
        if (b != (c_type)(expression))                                         \
            t_fail(__FILE__, __LINE__, "reduce_local %s of %s is wrong", #op, #mpi_type); \
    } while (0)

#define ORDERED(mpi_type, c_type)                                              \
    FOLD(mpi_type, c_type, MPI_MAX, low, x > y ? x : y);                       \
    FOLD(mpi_type, c_type, MPI_MIN, low, x < y ? x : y)

#define ARITHMETIC(mpi_type, c_type)                                           \
    FOLD(mpi_type, c_type, MPI_SUM, small, x + y);                             \
    FOLD(mpi_type, c_type, MPI_PROD, small, x *y)

#define LOGICAL(mpi_type, c_type)                                              \
    FOLD(mpi_type, c_type, MPI_LAND, small, x &&y);                            \
    FOLD(mpi_type, c_type, MPI_LOR, small, x || y);                            \
    FOLD(mpi_type, c_type, MPI_LXOR, small, !x != !y)

#define BITWISE(mpi_type, c_type)                                              \
    FOLD(mpi_type, c_type, MPI_BAND, low, x &y);                               \
    FOLD(mpi_type, c_type, MPI_BOR, low, x | y);                               \
    FOLD(mpi_type, c_type, MPI_BXOR, low, x ^ y)

#define NO(mpi_type, ...)                                                      \
    do {                                                                       \
        const MPI_Op list[] = {__VA_ARGS__};                                   \
        check_errors(mpi_type, list, (int)(sizeof list / sizeof *list));       \
    } while (0)

#define INTEGER(mpi_type, c_type)                                              \
    do {                                                                       \
        ORDERED(mpi_type, c_type);                                             \
        ARITHMETIC(mpi_type, c_type);                                          \
        LOGICAL(mpi_type, c_type);                                             \
        BITWISE(mpi_type, c_type);                                             \
        NO(mpi_type, MPI_MINLOC, MPI_MAXLOC);                                  \
    } while (0)

#define FLOATING(mpi_type, c_type)                                             \
    do {                                                                       \
        ORDERED(mpi_type, c_type);                                             \
        ARITHMETIC(mpi_type, c_type);                                          \
        NO(mpi_type, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC);     \
    } while (0)

#define COMPLEX(mpi_type, c_type)                                              \
    do {                                                                       \
        ARITHMETIC(mpi_type, c_type);                                          \
        NO(mpi_type, MPI_MAX, MPI_MIN, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, \
           MPI_MINLOC, MPI_MAXLOC);                                            \
    } while (0)

static void integers(void) {
    INTEGER(MPI_SIGNED_CHAR, signed char);
    INTEGER(MPI_UNSIGNED_CHAR, unsigned char);
    INTEGER(MPI_SHORT, short);
    INTEGER(MPI_UNSIGNED_SHORT, unsigned short);
    INTEGER(MPI_INT, int);
    INTEGER(MPI_UNSIGNED, unsigned);
    INTEGER(MPI_LONG, long);
    INTEGER(MPI_UNSIGNED_LONG, unsigned long);
    INTEGER(MPI_LONG_LONG, long long);
    INTEGER(MPI_UNSIGNED_LONG_LONG, unsigned long long);
    INTEGER(MPI_INT8_T, int8_t);
    INTEGER(MPI_INT16_T, int16_t);
    INTEGER(MPI_INT32_T, int32_t);
    INTEGER(MPI_INT64_T, int64_t);
    INTEGER(MPI_UINT8_T, uint8_t);
    INTEGER(MPI_UINT16_T, uint16_t);
    INTEGER(MPI_UINT32_T, uint32_t);
    INTEGER(MPI_UINT64_T, uint64_t);
    INTEGER(MPI_AINT, MPI_Aint);
    INTEGER(MPI_OFFSET, MPI_Offset);
    INTEGER(MPI_COUNT, MPI_Count);
}

static void others(void) {
    FLOATING(MPI_FLOAT, float);
    FLOATING(MPI_DOUBLE, double);
    FLOATING(MPI_LONG_DOUBLE, long double);
    COMPLEX(MPI_C_FLOAT_COMPLEX, float complex);
    COMPLEX(MPI_C_DOUBLE_COMPLEX, double complex);
    COMPLEX(MPI_C_LONG_DOUBLE_COMPLEX, long double complex);
    LOGICAL(MPI_C_BOOL, bool);
    BITWISE(MPI_BYTE, unsigned char);
    NO(MPI_BYTE, MPI_MINLOC, MPI_MAXLOC);
    /* The standard does not define them for MPI_CHAR; every MPI takes it as an integer. */
    INTEGER(MPI_CHAR, char);
    NO(MPI_CHARACTER, MPI_SUM, MPI_MAX, MPI_BAND, MPI_LAND, MPI_MINLOC, MPI_MAXLOC);
    NO(MPI_WCHAR, MPI_SUM, MPI_MAX, MPI_BAND, MPI_LAND, MPI_MINLOC, MPI_MAXLOC);
}

/* MINLOC and MAXLOC: the smallest index among equal values. */
#define LOCATION(mpi_type, c_type)                                             \
    do {                                                                       \
        typedef struct { c_type value; int index; } pair;                      \
        pair in[COUNT], least[COUNT], most[COUNT];                             \
        for (int i = 0; i < COUNT; i++) {                                      \
            in[i].value = (c_type)small(t_rank, i);                            \
            in[i].index = 100 + t_rank;                                        \
        }                                                                      \
        OK(MPI_Allreduce(in, least, COUNT, mpi_type, MPI_MINLOC, MPI_COMM_WORLD)); \
        OK(MPI_Allreduce(in, most, COUNT, mpi_type, MPI_MAXLOC, MPI_COMM_WORLD)); \
        for (int i = 0; i < COUNT; i++) {                                      \
            int lo = 0, hi = 0;                                                \
            for (int r = 1; r < t_size; r++) {                                 \
                lo = small(r, i) < small(lo, i) ? r : lo;                      \
                hi = small(r, i) > small(hi, i) ? r : hi;                      \
            }                                                                  \
            CHECK_AT(i, least[i].value, small(lo, i));                         \
            CHECK_AT(i, least[i].index, 100 + lo);                             \
            CHECK_AT(i, most[i].value, small(hi, i));                          \
            CHECK_AT(i, most[i].index, 100 + hi);                              \
        }                                                                      \
        NO(mpi_type, MPI_SUM, MPI_MAX, MPI_BAND);                              \
    } while (0)

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    integers();
    others();
    LOCATION(MPI_2INT, int);
    LOCATION(MPI_FLOAT_INT, float);
    LOCATION(MPI_DOUBLE_INT, double);
    LOCATION(MPI_LONG_INT, long);
    LOCATION(MPI_SHORT_INT, short);
    LOCATION(MPI_LONG_DOUBLE_INT, long double);
    MPI_Op all[] = {MPI_MAX,  MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,   MPI_BAND,
                    MPI_LOR,  MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
    for (int i = 0; i < 12; i++) {
        int commutes = 0;
        OK(MPI_Op_commutative(all[i], &commutes));
        CHECK_AT(i, !!commutes, 1);
    }
    return t_end();
}
