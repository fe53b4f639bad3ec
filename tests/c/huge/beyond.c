/* More than 4 GiB at once, which is more than adapters move by one work request: as a message, written to a window and read from
 * one. The source is little memory that is mapped again and again, of a period that is no power of two, so that what went
 * astray by the length of a work request shows. */
// np: 2
// args: message
// args: put
// args: get
// timeout: 180
// memory: 6
#define _GNU_SOURCE
#include "tern_test.h"

#include <sys/mman.h>
#include <unistd.h>

#define PERIOD ((size_t)61 << 20)
static const size_t LEN = ((size_t)4 << 30) + ((size_t)5 << 20) + 3;

static unsigned char *source(void) {
    int file = memfd_create("source", 0);
    CHECK(file >= 0 && ftruncate(file, PERIOD) == 0);
    size_t periods = LEN / PERIOD + 1;
    unsigned char *all = mmap(NULL, periods * PERIOD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    for (size_t at = 0; at < periods; at++)
        CHECK(mmap(all + at * PERIOD, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED);
    unsigned int *words = (unsigned int *)all;
    for (size_t at = 0; at < PERIOD / sizeof *words; at++)
        words[at] = (unsigned int)at * 2654435761u;
    close(file);
    return all;
}

/* Memory that holds nothing of it yet, and a word behind it that nobody writes. */
static unsigned char *room(void) {
    size_t len = LEN + 4096;
    unsigned char *all = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    madvise(all, len, MADV_HUGEPAGE);
    all[LEN] = 77;
    return all;
}

static void message(unsigned char *bytes) {
    if (t_rank == 0) {
        OK(MPI_Send_c(bytes, (MPI_Count)LEN, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
        return;
    }
    MPI_Status status;
    MPI_Count count = -1;
    OK(MPI_Recv_c(bytes, (MPI_Count)LEN + 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
    CHECK_EQ(count, LEN);
}

static void one_sided(unsigned char *bytes, int puts) {
    MPI_Win win;
    MPI_Aint len = t_rank == puts ? (MPI_Aint)LEN : 0;
    OK(MPI_Win_create_c(bytes, len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    if (puts && t_rank == 0)
        OK(MPI_Put_c(bytes, (MPI_Count)LEN, MPI_BYTE, 1, 0, (MPI_Count)LEN, MPI_BYTE, win));
    if (!puts && t_rank == 1)
        OK(MPI_Get_c(bytes, (MPI_Count)LEN, MPI_BYTE, 0, 0, (MPI_Count)LEN, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    CHECK(argc == 2);
    unsigned char *expected = source();
    unsigned char *bytes = t_rank == 0 ? expected : room();
    if (strcmp(argv[1], "message") == 0)
        message(bytes);
    else
        one_sided(bytes, strcmp(argv[1], "put") == 0);
    if (t_rank == 1) {
        for (size_t at = 0; at < LEN; at += PERIOD) {
            size_t part = LEN - at < PERIOD ? LEN - at : PERIOD;
            if (memcmp(bytes + at, expected, part) != 0)
                t_fail(__FILE__, __LINE__, "the bytes from %zu to %zu differ", at, at + part);
        }
        CHECK_EQ(bytes[LEN], 77);
    }
    return t_end();
}
