/* Contiguous, vector, hvector, indexed, hindexed, indexed_block, hindexed_block, struct,
 * resized, dup: size, bounds, true bounds; and that a message of the type carries exactly
 * the bytes of its type map, in its order, touching nothing else. */
#include "tern_test.h"

enum { SPAN = 400 };

/* A type, and the offsets of the ints it covers, in order. */
typedef struct {
    const char *name;
    MPI_Datatype type;
    int count;
    int offsets[32];
    MPI_Aint lower, extent;
} sample;

static void check_shape(const sample *s) {
    int size = -1;
    MPI_Aint lower = -99, extent = -99;
    MPI_Count large = -1, large_lower = -99, large_extent = -99;
    OK(MPI_Type_size(s->type, &size));
    OK(MPI_Type_get_extent(s->type, &lower, &extent));
    if (size != 4 * s->count || lower != s->lower || extent != s->extent)
        t_fail(__FILE__, __LINE__, "%s: size %d, lower %ld, extent %ld; expected %d, %ld, %ld", s->name, size,
               (long)lower, (long)extent, 4 * s->count, (long)s->lower, (long)s->extent);
    OK(MPI_Type_size_c(s->type, &large));
    OK(MPI_Type_get_extent_c(s->type, &large_lower, &large_extent));
    CHECK(large == size && large_lower == lower && large_extent == extent);
    OK(MPI_Type_size_x(s->type, &large));
    OK(MPI_Type_get_extent_x(s->type, &large_lower, &large_extent));
    CHECK(large == size && large_lower == lower && large_extent == extent);
    MPI_Aint least = 1 << 20, most = -(1 << 20);
    for (int i = 0; i < s->count; i++) {
        least = s->offsets[i] < least ? s->offsets[i] : least;
        most = s->offsets[i] + 4 > most ? s->offsets[i] + 4 : most;
    }
    if (s->count == 0)
        return;
    OK(MPI_Type_get_true_extent(s->type, &lower, &extent));
    if (lower != least || extent != most - least)
        t_fail(__FILE__, __LINE__, "%s: true lower %ld, true extent %ld; expected %ld, %ld", s->name, (long)lower,
               (long)extent, (long)least, (long)(most - least));
}

/* Three of the type go around the ring: as the type to ints, and as ints to the type. */
static void check_message(const sample *s) {
    enum { COPIES = 3 };
    unsigned char *memory = t_alloc(2 * SPAN), *base = memory + SPAN / 2;
    int flat[32 * COPIES], total = COPIES * s->count, next = (t_rank + 1) % t_size,
                           previous = (t_rank + t_size - 1) % t_size;
    for (int i = 0; i < 2 * SPAN; i++)
        memory[i] = (unsigned char)(i * 7 + t_rank);
    MPI_Status status;
    OK(MPI_Sendrecv(base, COPIES, s->type, next, 1, flat, total, MPI_INT, previous, 1, MPI_COMM_WORLD, &status));
    int got = -1;
    OK(MPI_Get_count(&status, MPI_INT, &got));
    CHECK_EQ(got, total);
    for (int k = 0; k < total; k++) {
        MPI_Aint at = SPAN / 2 + s->offsets[k % s->count] + (k / s->count) * s->extent;
        for (int b = 0; b < 4; b++)
            if (((unsigned char *)&flat[k])[b] != (unsigned char)((at + b) * 7 + previous))
                t_fail(__FILE__, __LINE__, "%s: int %d of the message is wrong", s->name, k);
    }
    memset(memory, 0xAB, 2 * SPAN);
    for (int k = 0; k < total; k++)
        flat[k] = 1000 * t_rank + k;
    OK(MPI_Sendrecv(flat, total, MPI_INT, next, 2, base, COPIES, s->type, previous, 2, MPI_COMM_WORLD, &status));
    if (s->count) {
        OK(MPI_Get_count(&status, s->type, &got));
        CHECK_EQ(got, COPIES);
    }
    unsigned char *want = t_alloc(2 * SPAN);
    memset(want, 0xAB, 2 * SPAN);
    for (int k = 0; k < total; k++) {
        int value = 1000 * previous + k;
        memcpy(want + SPAN / 2 + s->offsets[k % s->count] + (k / s->count) * s->extent, &value, 4);
    }
    for (int i = 0; i < 2 * SPAN; i++)
        if (memory[i] != want[i])
            t_fail(__FILE__, __LINE__, "%s: byte %d of the receiver's memory is 0x%02x, expected 0x%02x", s->name,
                   i - SPAN / 2, memory[i], want[i]);
    free(want);
    free(memory);
}

static int made;
static sample samples[24];

static sample *add(const char *name, MPI_Aint lower, MPI_Aint extent, int count, const int *offsets) {
    sample *s = &samples[made++];
    s->name = name;
    s->lower = lower;
    s->extent = extent;
    s->count = count;
    memcpy(s->offsets, offsets, sizeof(int) * (size_t)count);
    return s;
}

#define ADD(name, lower, extent, ...)                                          \
    add(name, lower, extent, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

static void build(void) {
    OK(MPI_Type_contiguous(3, MPI_INT, &ADD("contiguous", 0, 12, 0, 4, 8)->type));
    OK(MPI_Type_vector(3, 2, 4, MPI_INT, &ADD("vector", 0, 40, 0, 4, 16, 20, 32, 36)->type));
    OK(MPI_Type_vector(2, 1, -3, MPI_INT, &ADD("vector, negative stride", -12, 16, 0, -12)->type));
    OK(MPI_Type_create_hvector(3, 1, 20, MPI_INT, &ADD("hvector", 0, 44, 0, 20, 40)->type));
    OK(MPI_Type_indexed(3, (int[]){2, 0, 1}, (int[]){5, 9, 1}, MPI_INT, &ADD("indexed", 4, 24, 20, 24, 4)->type));
    OK(MPI_Type_create_hindexed(2, (int[]){1, 2}, (MPI_Aint[]){24, 4}, MPI_INT,
                                &ADD("hindexed", 4, 24, 24, 4, 8)->type));
    OK(MPI_Type_create_indexed_block(3, 2, (int[]){0, 6, 3}, MPI_INT,
                                     &ADD("indexed_block", 0, 32, 0, 4, 24, 28, 12, 16)->type));
    OK(MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){-8, 16}, MPI_INT,
                                      &ADD("hindexed_block", -8, 28, -8, 16)->type));
    OK(MPI_Type_create_struct(2, (int[]){1, 2}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_INT},
                              &ADD("struct with hole", 0, 16, 0, 8, 12)->type));
    MPI_Datatype pair = samples[0].type, gap = samples[1].type;
    OK(MPI_Type_create_resized(pair, -4, 24, &ADD("resized", -4, 24, 0, 4, 8)->type));
    OK(MPI_Type_create_resized(pair, 4, 16, &ADD("resized, lower bound inside", 4, 16, 0, 4, 8)->type));
    OK(MPI_Type_dup(gap, &ADD("dup", 0, 40, 0, 4, 16, 20, 32, 36)->type));
    OK(MPI_Type_contiguous(2, gap, &ADD("contiguous of vector", 0, 80, 0, 4, 16, 20, 32, 36, 40, 44, 56, 60, 72,
                                        76)->type));
    OK(MPI_Type_vector(2, 1, 2, samples[8].type, &ADD("vector of struct", 0, 48, 0, 8, 12, 32, 40, 44)->type));
    OK(MPI_Type_create_struct(3, (int[]){1, 1, 0}, (MPI_Aint[]){40, 0, 99},
                              (MPI_Datatype[]){pair, samples[8].type, gap},
                              &ADD("struct of types", 0, 52, 40, 44, 48, 0, 8, 12)->type));
    OK(MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_C, MPI_INT,
                                &ADD("subarray C", 0, 80, 24, 28, 32, 44, 48, 52)->type));
    OK(MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_FORTRAN, MPI_INT,
                                &ADD("subarray Fortran", 0, 80, 20, 24, 36, 40, 52, 56)->type));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    build();
    for (int i = 0; i < made; i++) {
        check_shape(&samples[i]);
        OK(MPI_Type_commit(&samples[i].type));
        OK(MPI_Type_commit(&samples[i].type)); /* a second time is no error */
        check_message(&samples[i]);
    }
    /* Freeing the parts does not harm what was built of them. */
    for (int i = 0; i < made - 1; i++) {
        OK(MPI_Type_free(&samples[i].type));
        CHECK(samples[i].type == MPI_DATATYPE_NULL);
    }
    check_message(&samples[made - 1]);
    OK(MPI_Type_free(&samples[made - 1].type));
    /* A type of size zero. */
    MPI_Datatype none;
    int size = -1;
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    OK(MPI_Type_size(none, &size));
    CHECK_EQ(size, 0);
    OK(MPI_Sendrecv(NULL, 5, none, t_rank, 0, NULL, 5, none, t_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&none));
    return t_end();
}
