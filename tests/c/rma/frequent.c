/* Short Puts and Gets that go directly leave from a buffer that comes often ("000", section 3.2), unless all are to be
 * copied; either is forced here, for else what is known of costs decides. What they move is right, also when the buffer was
 * mapped anew meanwhile, and for buffers that come once. By Tern's adapter, with this schedule and this protocol of short
 * messages. */
// np: 2
// args: original eager-zero-copy
// args: gets-first eager-zero-copy
// args: original eager-copy
// not-on: mpich (other variables)
// not-on: ompi (other variables)
#include <sys/mman.h>

#include "counter.h"

enum { LEN = 8000, ROOM = 16384, ROUNDS = 400, ONCE = 64 };

static const char *const direct = "tern_put_direct", *const spared = "tern_epoch_zero_copy";
static MPI_Win win;
static char *base;

static char *fresh(char *at) {
    int how = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
    char *memory = mmap(at, ROOM, PROT_READ | PROT_WRITE, how, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static char pattern(int round, int i) {
    return (char)(round * 31 + i * 7 + i / 251);
}

/* Bytes go there and come back. */
static void there_and_back(char *out, char *in, int round) {
    for (int i = 0; i < LEN; i++)
        out[i] = pattern(round, i);
    OK(MPI_Put(out, LEN, MPI_BYTE, 1, 0, LEN, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
    OK(MPI_Get(in, LEN, MPI_BYTE, 1, 0, LEN, MPI_BYTE, win));
    OK(MPI_Win_flush(1, win));
    for (int i = 0; i < LEN; i++)
        CHECK_AT(i, in[i], pattern(round, i));
}

static void origin(int copies) {
    char *out = fresh(NULL), *in = fresh(NULL), *once[ONCE];
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
    for (int round = 0; round < ROUNDS; round++)
        there_and_back(out, in, round);
    long often = (long)t_counted(spared);
    /* The same addresses, other memory. */
    fresh(out);
    for (int round = 0; round < ROUNDS; round++)
        there_and_back(out, in, round + 1);
    /* The first one leaves with the lock, in a message. */
    CHECK((long)t_counted(direct) >= 2 * ROUNDS - 1);
    CHECK(copies ? often == 0 : often > ROUNDS);
    if (!copies)
        CHECK((long)t_counted(spared) > often);
    OK(MPI_Win_unlock(1, win));
    munmap(in, ROOM);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
    for (int i = 0; i < ONCE; i++)
        there_and_back(once[i] = fresh(NULL), out + LEN, i);
    for (int i = 0; i < ONCE; i++)
        munmap(once[i], ROOM);
    OK(MPI_Win_unlock(1, win));
    munmap(out, ROOM);
}

int main(int argc, char **argv) {
    int copies = argc > 2 && strcmp(argv[2], "eager-copy") == 0;
    unsetenv("TERN_WIN"); /* that would be messages alone */
    setenv("TERN_DEVICES", "rnic", 1);
    setenv("TERN_WIN_SCHEDULE", argc > 1 ? argv[1] : "original", 1);
    if (argc > 2)
        setenv("TERN_PROTOCOL", argv[2], 1);
    t_begin(&argc, &argv);
    t_counted(direct);
    t_counted(spared);
    OK(MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    if (t_rank == 0)
        origin(copies);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return t_end();
}
