/* A long message whose two sides compute: where each rank has a core for that, or where the message comes in frames,
 * one of them brings it to its end beside its application, whoever came first, and nobody copies it in MPI_Wait. With fewer
 * cores a copy beside the application costs what it costs in MPI_Wait, and is made there.
 * np: 2+
 * args: plain
 * args: frames
 * args: multiple
 * not-on: mpich (no progress outside of MPI)
 * not-on: ompi (no progress outside of MPI)
 */
#include "away.h"

enum { LONG = 16 << 20 };

/* A receiver computes until the message is in its memory, which it may not read before; this
 * looks through a pointer of its own, as a debugger would. */
static void until_there(const char *memory) {
    const volatile char *last = memory;
    while (last[0] == 0 || last[LONG / 2] == 0 || last[LONG - 1] == 0)
        sched_yield();
}

/* Whether the message is to be there while both sides are away. */
static int comes_beside(void) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CHECK(sched_getaffinity(0, sizeof cores, &cores) == 0);
    const char *single_copy = getenv("TERN_SINGLE_COPY");
    return (single_copy && strcmp(single_copy, "0") == 0) || CPU_COUNT(&cores) >= 2 * t_size;
}

static void exchange(char *mine, char *theirs, int receive_first) {
    MPI_Request request = MPI_REQUEST_NULL;
    memset(theirs, 0, LONG);
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 1 && receive_first)
        OK(MPI_Irecv(theirs, LONG, MPI_CHAR, 0, 3, MPI_COMM_WORLD, &request));
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 0)
        OK(MPI_Isend(mine, LONG, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &request));
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 1 && !receive_first)
        OK(MPI_Irecv(theirs, LONG, MPI_CHAR, 0, 3, MPI_COMM_WORLD, &request));
    if (t_rank == 1) {
        if (comes_beside())
            until_there(theirs);
        away_done();
    } else {
        away_until(1);
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (t_rank == 1)
        CHECK_EQ(memcmp(mine, theirs, LONG), 0);
    away_next(1);
}

int main(int argc, char **argv) {
    away_begin(argc, argv);
    char *mine = t_alloc(LONG), *theirs = t_alloc(LONG);
    memset(mine, 5, LONG);
    for (int round = 0; round < 6; round++)
        exchange(mine, theirs, round & 1);
    free(mine);
    free(theirs);
    return t_end();
}
