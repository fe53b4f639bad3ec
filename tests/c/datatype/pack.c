/* Pack and unpack: sizes, positions, mixed contents, piecewise, as a message of type
 * MPI_PACKED; external32 in its exact, big-endian form. */
#include "tern_test.h"

typedef struct {
    char tag;
    int number;
    double values[3];
} record;

static MPI_Datatype record_type(void) {
    MPI_Datatype type, spaced;
    OK(MPI_Type_create_struct(3, (int[]){1, 1, 3}, (MPI_Aint[]){0, 4, 8}, (MPI_Datatype[]){MPI_CHAR, MPI_INT, MPI_DOUBLE},
                              &type));
    OK(MPI_Type_create_resized(type, 0, sizeof(record), &spaced));
    OK(MPI_Type_commit(&spaced));
    OK(MPI_Type_free(&type));
    return spaced;
}

static void roundtrip(void) {
    enum { N = 50 };
    MPI_Datatype type = record_type();
    record out[N], in[N];
    memset(out, 0x42, sizeof out);
    memset(in, 0x42, sizeof in);
    for (int i = 0; i < N; i++) {
        out[i].tag = (char)i;
        out[i].number = 77 * i;
        for (int k = 0; k < 3; k++)
            out[i].values[k] = i + 0.25 * k;
    }
    int one, room, position = 0, back = 0;
    OK(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &one));
    OK(MPI_Pack_size(N, type, MPI_COMM_WORLD, &room));
    CHECK(one >= 4 && room >= N * 29);
    room += one;
    char *packed = t_alloc((size_t)room), *got = t_alloc((size_t)room);
    int count = N, count_in = -1;
    OK(MPI_Pack(&count, 1, MPI_INT, packed, room, &position, MPI_COMM_WORLD));
    /* Piecewise: the first 20, then the rest. */
    OK(MPI_Pack(out, 20, type, packed, room, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(out + 20, N - 20, type, packed, room, &position, MPI_COMM_WORLD));
    CHECK(position <= room);
    MPI_Status status;
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size, received;
    OK(MPI_Sendrecv(packed, position, MPI_PACKED, next, 0, got, room, MPI_PACKED, previous, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_PACKED, &received));
    CHECK_EQ(received, position);
    OK(MPI_Unpack(got, received, &back, &count_in, 1, MPI_INT, MPI_COMM_WORLD));
    CHECK_EQ(count_in, N);
    OK(MPI_Unpack(got, received, &back, in, 33, type, MPI_COMM_WORLD));
    OK(MPI_Unpack(got, received, &back, in + 33, N - 33, type, MPI_COMM_WORLD));
    CHECK_EQ(back, received);
    CHECK(memcmp(in, out, sizeof in) == 0);
    free(packed);
    free(got);
    OK(MPI_Type_free(&type));
}

/* A packed buffer may be received as what it holds. */
static void packed_as_typed(void) {
    int out[4] = {1, 2, 3, 4}, in[4] = {0}, position = 0, room;
    OK(MPI_Pack_size(4, MPI_INT, MPI_COMM_WORLD, &room));
    char *packed = t_alloc((size_t)room);
    OK(MPI_Pack(out, 4, MPI_INT, packed, room, &position, MPI_COMM_WORLD));
    OK(MPI_Sendrecv(packed, position, MPI_PACKED, t_rank, 0, in, 4, MPI_INT, t_rank, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(memcmp(in, out, sizeof in) == 0);
    free(packed);
}

static void external(void) {
    unsigned char wire[64];
    MPI_Aint position = 0, size = -1;
    short s = 0x0102;
    int i = 0x0A0B0C0D;
    double d = 1.0;
    long l = 0x1122334455667788;
    OK(MPI_Pack_external_size("external32", 3, MPI_INT, &size));
    CHECK_EQ(size, 12);
    OK(MPI_Pack_external_size("external32", 2, MPI_LONG, &size));
    CHECK_EQ(size, 16);
    OK(MPI_Pack_external("external32", &s, 1, MPI_SHORT, wire, sizeof wire, &position));
    CHECK_EQ(position, 2);
    OK(MPI_Pack_external("external32", &i, 1, MPI_INT, wire, sizeof wire, &position));
    CHECK_EQ(position, 6);
    OK(MPI_Pack_external("external32", &d, 1, MPI_DOUBLE, wire, sizeof wire, &position));
    CHECK_EQ(position, 14);
    OK(MPI_Pack_external("external32", &l, 1, MPI_LONG, wire, sizeof wire, &position));
    CHECK_EQ(position, 22);
    const unsigned char want[22] = {1,    2, 0x0A, 0x0B, 0x0C, 0x0D, 0x3F, 0xF0, 0,    0,    0,
                                    0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
    for (int k = 0; k < 22; k++)
        CHECK_AT(k, wire[k], want[k]);
    s = 0, i = 0, d = 0, l = 0, position = 0;
    OK(MPI_Unpack_external("external32", wire, 22, &position, &s, 1, MPI_SHORT));
    OK(MPI_Unpack_external("external32", wire, 22, &position, &i, 1, MPI_INT));
    OK(MPI_Unpack_external("external32", wire, 22, &position, &d, 1, MPI_DOUBLE));
    OK(MPI_Unpack_external("external32", wire, 22, &position, &l, 1, MPI_LONG));
    CHECK(s == 0x0102 && i == 0x0A0B0C0D && d == 1.0 && l == 0x1122334455667788);
    CHECK_EQ(position, 22);
    /* A vector is packed without its gaps. */
    MPI_Datatype type;
    int strided[6] = {1, -1, 2, -1, 3, -1}, back[6] = {9, 9, 9, 9, 9, 9};
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    position = 0;
    OK(MPI_Pack_external("external32", strided, 1, type, wire, sizeof wire, &position));
    CHECK_EQ(position, 12);
    CHECK(wire[3] == 1 && wire[7] == 2 && wire[11] == 3 && wire[0] == 0);
    position = 0;
    OK(MPI_Unpack_external("external32", wire, 12, &position, back, 1, type));
    CHECK(back[0] == 1 && back[1] == 9 && back[2] == 2 && back[3] == 9 && back[4] == 3 && back[5] == 9);
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    roundtrip();
    packed_as_typed();
    external();
    return t_end();
}
