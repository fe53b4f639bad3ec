/* What every conformance program shares: checks that say where, on which rank,
 * what was expected and what was found; and a closing line that proves the
 * program got to its end. The directives which tests/run.py reads from a
 * program's comments are described there. */
#ifndef TERN_TEST_H
#define TERN_TEST_H

#include <mpi.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int t_rank = -1, t_size = 0;

__attribute__((format(printf, 3, 4), noreturn, unused)) static void t_fail(const char *file, int line,
                                                                         const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: rank %d of %d: %s\n", file, line, t_rank, t_size, text);
    fflush(stderr);
    int up = 0, down = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    if (up && !down)
        MPI_Abort(MPI_COMM_WORLD, 99);
    exit(99);
}

static inline const char *t_error(int code) {
    static char text[2 * MPI_MAX_ERROR_STRING + 64];
    char whole[MPI_MAX_ERROR_STRING + 1] = "?";
    int length = 0, class = -1;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, whole, &length);
    snprintf(text, sizeof text, "class %d: %s", class, whole);
    return text;
}

/* The condition holds. */
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            t_fail(__FILE__, __LINE__, "expected: %s", #condition);            \
    } while (0)

/* Two integers (or values that convert to them) are equal. */
#define CHECK_EQ(got, want)                                                    \
    do {                                                                       \
        long long got_ = (long long)(got), want_ = (long long)(want);          \
        if (got_ != want_)                                                     \
            t_fail(__FILE__, __LINE__, "%s is %lld, expected %s = %lld", #got, \
                   got_, #want, want_);                                        \
    } while (0)

/* As CHECK_EQ, for element `index` of something. */
#define CHECK_AT(index, got, want)                                             \
    do {                                                                       \
        long long got_ = (long long)(got), want_ = (long long)(want);          \
        if (got_ != want_)                                                     \
            t_fail(__FILE__, __LINE__, "%s is %lld, expected %lld (index %lld)", \
                   #got, got_, want_, (long long)(index));                     \
    } while (0)

#define CHECK_STR(got, want)                                                   \
    do {                                                                       \
        const char *got_ = (got), *want_ = (want);                             \
        if (strcmp(got_, want_) != 0)                                          \
            t_fail(__FILE__, __LINE__, "%s is \"%s\", expected \"%s\"", #got,  \
                   got_, want_);                                               \
    } while (0)

/* The call succeeds. */
#define OK(call)                                                               \
    do {                                                                       \
        int code_ = (call);                                                    \
        if (code_ != MPI_SUCCESS)                                              \
            t_fail(__FILE__, __LINE__, "%s failed: %s", #call, t_error(code_)); \
    } while (0)

/* The call fails with an error of this class. */
#define FAILS(call, want)                                                      \
    do {                                                                       \
        int code_ = (call), class_ = -1;                                       \
        MPI_Error_class(code_, &class_);                                       \
        if (class_ != (want))                                                  \
            t_fail(__FILE__, __LINE__, "%s: expected %s (%d), got %s", #call,  \
                   #want, (int)(want), t_error(code_));                        \
    } while (0)

/* The call fails with an error of this class, and where the library is Tern its text has all of these parts. */
#define SAYS(call, want, ...) t_says(__FILE__, __LINE__, #call, call, want, (const char *const[]){__VA_ARGS__, NULL})

__attribute__((unused)) static void t_says(const char *file, int line, const char *call, int code, int want,
                                           const char *const *parts) {
    char text[MPI_MAX_ERROR_STRING + 1] = "", library[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int class = -1, length;
    MPI_Error_class(code, &class);
    if (class != want) {
        t_fail(file, line, "%s: expected class %d, got %s", call, want, t_error(code));
        return;
    }
    MPI_Get_library_version(library, &length);
    MPI_Error_string(code, text, &length);
    for (; strncmp(library, "Tern", 4) == 0 && *parts; parts++)
        if (strstr(text, *parts) == NULL)
            t_fail(file, line, "%s: \"%s\" does not say \"%s\"", call, text, *parts);
}

/* The call fails with an error of one of two classes (where the standard leaves it open). */
#define FAILS_EITHER(call, want, other)                                        \
    do {                                                                       \
        int code_ = (call), class_ = -1;                                       \
        MPI_Error_class(code_, &class_);                                       \
        if (class_ != (want) && class_ != (other))                             \
            t_fail(__FILE__, __LINE__, "%s: expected %s or %s, got %s", #call, \
                   #want, #other, t_error(code_));                             \
    } while (0)

/* Rank and size are known from here on; errors of MPI_COMM_WORLD and MPI_COMM_SELF return. */
static inline void t_started(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

__attribute__((unused)) static void t_begin(int *argc, char ***argv) {
    OK(MPI_Init(argc, argv));
    t_started();
}

/* The closing line: printed by rank 0 once all ranks have come here. */
__attribute__((unused)) static int t_end(void) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}

__attribute__((unused)) static void *t_alloc(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        t_fail(__FILE__, __LINE__, "no memory for %zu bytes", bytes);
    return memory;
}

/* A small reproducible generator (xorshift64*), the same on every rank for the same seed. */
typedef struct {
    uint64_t state;
} t_rng;

static inline t_rng t_seed(uint64_t seed) {
    t_rng rng = {seed * 0x9E3779B97F4A7C15u + 0x1234567u};
    return rng;
}

static inline uint32_t t_next(t_rng *rng) {
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return (uint32_t)((rng->state * 0x2545F4914F6CDD1Du) >> 32);
}

/* A number below `limit` (limit > 0). */
static inline uint32_t t_below(t_rng *rng, uint32_t limit) {
    return (uint32_t)(((uint64_t)t_next(rng) * limit) >> 32);
}

/* Byte `index` of the pattern `seed`: positions and seeds are told apart. */
static inline unsigned char t_byte(uint64_t seed, size_t index) {
    uint64_t mixed = (seed + 1) * 0x9E3779B97F4A7C15u + (index >> 3) * 0xD6E8FEB86659FD93u;
    mixed ^= mixed >> 29;
    return (unsigned char)(mixed >> (8 * (index & 7)));
}

__attribute__((unused)) static void t_fill(void *buffer, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)buffer)[i] = t_byte(seed, i);
}

#define CHECK_FILL(buffer, bytes, seed)                                        \
    do {                                                                       \
        const unsigned char *bytes_ = (const unsigned char *)(buffer);         \
        for (size_t i_ = 0; i_ < (size_t)(bytes); i_++)                        \
            if (bytes_[i_] != t_byte((seed), i_))                              \
                t_fail(__FILE__, __LINE__,                                     \
                       "%s: byte %zu of %zu is 0x%02x, expected 0x%02x (pattern %llu)", \
                       #buffer, i_, (size_t)(bytes), bytes_[i_],               \
                       t_byte((seed), i_), (unsigned long long)(seed));        \
    } while (0)

/* All `bytes` of the buffer have this value: nobody wrote where nobody should. */
#define CHECK_UNTOUCHED(buffer, bytes, value)                                  \
    do {                                                                       \
        const unsigned char *bytes_ = (const unsigned char *)(buffer);         \
        for (size_t i_ = 0; i_ < (size_t)(bytes); i_++)                        \
            if (bytes_[i_] != (unsigned char)(value))                          \
                t_fail(__FILE__, __LINE__, "%s: byte %zu was overwritten with 0x%02x", \
                       #buffer, i_, bytes_[i_]);                               \
    } while (0)

/* The fields of a status after a receive. */
#define CHECK_STATUS(status, source, tag, bytes)                               \
    do {                                                                       \
        int count_ = -2;                                                       \
        CHECK_EQ((status).MPI_SOURCE, source);                                 \
        CHECK_EQ((status).MPI_TAG, tag);                                       \
        OK(MPI_Get_count(&(status), MPI_BYTE, &count_));                       \
        CHECK_EQ(count_, bytes);                                               \
    } while (0)

#endif
