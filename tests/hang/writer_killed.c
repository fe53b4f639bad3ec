/* A rank is killed inside a collective write of a file, at any moment; then another job opens the file, finds in it what was written
 * and nothing else, and goes on with it.
 *
 * usage: writer_killed FILE plain|atomic MICROSECONDS     the writers: the last rank is killed after so long
 *        writer_killed FILE check                         the others */
#include "io/file_test.h"

#include <signal.h>
#include <sys/time.h>

/* Words of a block, blocks of a rank: each rank has every `t_size`-th block. */
enum { BLOCK = 512, BLOCKS = 64, WRITERS = 3 };

static uint64_t words[BLOCKS * BLOCK];

/* Who has written a word, when, and where in his data it lies. */
static uint64_t word(int rank, uint64_t round, int place) {
    return (uint64_t)(rank + 1) << 56 | (round & 0xffffff) << 24 | (uint64_t)place;
}

static MPI_File see(const char *name, int amode) {
    MPI_File file;
    MPI_Info info;
    MPI_Datatype blocks;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "collective_buffering", "true"));
    OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode, info, &file));
    OK(MPI_Info_free(&info));
    OK(MPI_Type_vector(BLOCKS, BLOCK, WRITERS * BLOCK, MPI_UINT64_T, &blocks));
    OK(MPI_Type_commit(&blocks));
    OK(MPI_File_set_view(file, (MPI_Offset)t_rank * BLOCK * 8, MPI_UINT64_T, blocks, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&blocks));
    return file;
}

static void die(int signal) {
    (void)signal;
    kill(getpid(), SIGKILL);
}

static void writers(const char *name, int is_atomic, long delay_us) {
    MPI_File file = see(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_set_atomicity(file, is_atomic));
    for (uint64_t round = 0;; round++) {
        for (int i = 0; i < BLOCKS * BLOCK; i++)
            words[i] = word(t_rank, round, i);
        OK(MPI_File_write_at_all(file, 0, words, BLOCKS * BLOCK, MPI_UINT64_T, MPI_STATUS_IGNORE));
        if (round > 0)
            continue;
        /* One round at least is whole, which no rank knows of the others by itself; from here on there is nothing but writing. */
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (t_rank == t_size - 1) {
            struct itimerval timer = {.it_value = {.tv_usec = delay_us}};
            signal(SIGALRM, die);
            CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
        }
    }
}

static void others(const char *name) {
    MPI_File file = see(name, MPI_MODE_RDWR);
    MPI_Status status;
    MPI_Offset size;
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, (MPI_Offset)sizeof words * WRITERS);
    OK(MPI_File_read_at_all(file, 0, words, BLOCKS * BLOCK, MPI_UINT64_T, &status));
    CHECK_COUNT(status, MPI_UINT64_T, BLOCKS * BLOCK);
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        CHECK_AT(i, (long long)words[i], (long long)word(t_rank, words[i] >> 24, i));
    /* No lock is left, and the shared pointer begins anew. */
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_write_at_all(file, 0, words, BLOCKS * BLOCK, MPI_UINT64_T, &status));
    OK(MPI_File_set_view(file, 0, MPI_UINT64_T, MPI_UINT64_T, "native", MPI_INFO_NULL));
    MPI_Offset at = -1;
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    uint64_t first = 0;
    OK(MPI_File_read_shared(file, &first, 1, MPI_UINT64_T, &status));
    CHECK_EQ(first >> 56, 1);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    CHECK(argc > 2 && t_size == WRITERS);
    if (argc > 3)
        writers(argv[1], strcmp(argv[2], "atomic") == 0, atol(argv[3]));
    others(argv[1]);
    return t_end();
}
