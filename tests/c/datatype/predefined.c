/* Every predefined type: size, extent, envelope, name; the C type it stands for. */
#include "tern_test.h"

#include <complex.h>
#include <stdbool.h>
#include <wchar.h>

static void check(MPI_Datatype type, const char *name, size_t size, size_t extent) {
    int got = -1, integers, addresses, types, combiner, length;
    MPI_Aint lower = -1, span = -1;
    char text[MPI_MAX_OBJECT_NAME];
    OK(MPI_Type_size(type, &got));
    OK(MPI_Type_get_extent(type, &lower, &span));
    OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
    OK(MPI_Type_get_name(type, text, &length));
    if ((size_t)got != size || lower != 0 || (size_t)span != extent || combiner != MPI_COMBINER_NAMED)
        t_fail(__FILE__, __LINE__, "%s: size %d, lower %ld, extent %ld, combiner %d; expected %zu, 0, %zu, %d", name,
               got, (long)lower, (long)span, combiner, size, extent, MPI_COMBINER_NAMED);
    /* MPI_LONG_LONG and MPI_LONG_LONG_INT are two names of one type. */
    if (strcmp(text, "MPI_LONG_LONG_INT") != 0)
        CHECK_STR(text, name);
    CHECK_EQ(length, strlen(text));
}

#define TYPE(mpi_type, c_type) check(mpi_type, #mpi_type, sizeof(c_type), sizeof(c_type))
#define PAIR(mpi_type, c_type)                                                 \
    do {                                                                       \
        struct pair { c_type value; int index; };                              \
        check(mpi_type, #mpi_type, sizeof(c_type) + sizeof(int), sizeof(struct pair)); \
    } while (0)

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    TYPE(MPI_CHAR, char);
    TYPE(MPI_SHORT, short);
    TYPE(MPI_INT, int);
    TYPE(MPI_LONG, long);
    TYPE(MPI_LONG_LONG, long long);
    TYPE(MPI_SIGNED_CHAR, signed char);
    TYPE(MPI_UNSIGNED_CHAR, unsigned char);
    TYPE(MPI_UNSIGNED_SHORT, unsigned short);
    TYPE(MPI_UNSIGNED, unsigned);
    TYPE(MPI_UNSIGNED_LONG, unsigned long);
    TYPE(MPI_UNSIGNED_LONG_LONG, unsigned long long);
    TYPE(MPI_FLOAT, float);
    TYPE(MPI_DOUBLE, double);
    TYPE(MPI_LONG_DOUBLE, long double);
    TYPE(MPI_WCHAR, wchar_t);
    TYPE(MPI_C_BOOL, bool);
    TYPE(MPI_INT8_T, int8_t);
    TYPE(MPI_INT16_T, int16_t);
    TYPE(MPI_INT32_T, int32_t);
    TYPE(MPI_INT64_T, int64_t);
    TYPE(MPI_UINT8_T, uint8_t);
    TYPE(MPI_UINT16_T, uint16_t);
    TYPE(MPI_UINT32_T, uint32_t);
    TYPE(MPI_UINT64_T, uint64_t);
    TYPE(MPI_AINT, MPI_Aint);
    TYPE(MPI_COUNT, MPI_Count);
    TYPE(MPI_OFFSET, MPI_Offset);
    TYPE(MPI_BYTE, char);
    TYPE(MPI_PACKED, char);
    TYPE(MPI_C_DOUBLE_COMPLEX, double complex);
    TYPE(MPI_C_LONG_DOUBLE_COMPLEX, long double complex);
    PAIR(MPI_FLOAT_INT, float);
    PAIR(MPI_DOUBLE_INT, double);
    PAIR(MPI_LONG_INT, long);
    PAIR(MPI_2INT, int);
    PAIR(MPI_SHORT_INT, short);
    PAIR(MPI_LONG_DOUBLE_INT, long double);
    /* Every type may be sent; the padding of pairs is not part of the message. */
    struct { short value; int index; } out = {7, 9}, in;
    memset(&in, 0x3C, sizeof in);
    OK(MPI_Sendrecv(&out, 1, MPI_SHORT_INT, t_rank, 0, &in, 1, MPI_SHORT_INT, t_rank, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(in.value == 7 && in.index == 9);
    CHECK_UNTOUCHED((char *)&in + 2, 2, 0x3C);
    return t_end();
}
