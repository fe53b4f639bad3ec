/* A buffer that is not memory: with single copy the kernel finds it, and the error is that of the rank that
 * gave it; the other one is told that it was not its own. */
// np: 2
// one-host: an adapter has no say in it: the rank that gave no memory ends by SIGSEGV
// not-on: mpich (ends with a signal or blames the receiver)
// not-on: ompi (ends with a signal or blames the receiver)
#define _GNU_SOURCE
#include "tern_test.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BYTES = 8 << 20 };

/* Whether this rank can copy from the other's memory; else messages go by frames, which the sender fills. */
static int single_copy(void) {
    static long word = 42;
    long mine[2] = {getpid(), (long)&word}, theirs[2], found = 0;
    MPI_Sendrecv(mine, 2, MPI_LONG, 1 - t_rank, 0, theirs, 2, MPI_LONG, 1 - t_rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    struct iovec to = {&found, sizeof found}, from = {(void *)theirs[1], sizeof found};
    int can = process_vm_readv((pid_t)theirs[0], &to, 1, &from, 1, 0) == (ssize_t)sizeof found;
    MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return can;
}

/* Rank 0 sends to rank 1; `late` comes second. */
static void transfer(void *send, void *recv, int late, int bad) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == late)
        usleep(50000);
    int code = t_rank == 0 ? MPI_Ssend(send, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD)
                           : MPI_Recv(recv, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    FAILS(code, t_rank == bad ? MPI_ERR_BUFFER : MPI_ERR_OTHER);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    char *good = t_alloc(BYTES);
    memset(good, 1, BYTES);
    void *none = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *constant = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(none != MAP_FAILED && constant != MAP_FAILED);
    for (int late = 0; late < 2 && single_copy(); late++) {
        transfer(none, good, late, 0);
        transfer(good, none, late, 1);
        transfer(good, constant, late, 1);
    }
    /* Nothing is left of it. */
    int word = t_rank;
    OK(MPI_Bcast(&word, 1, MPI_INT, 1, MPI_COMM_WORLD));
    CHECK_EQ(word, 1);
    free(good);
    return t_end();
}
