/* What a rank has added or put at a target before a fence it finds there behind it, whatever way either goes: the one is told the target
 * by a message, the other may be read or copied without it. The target waits in the fence already. With two more arguments by
 * Tern's adapter, in this manner, with one more with fences of this kind. */
// np: 2+
// args: allocate
// args: create
// args: create rc
// args: create rd
// args: create ud
// args: create hybrid
// args: creates
// args: creates rc
// args: creates rd
// args: creates ud
// args: creates hybrid
// args: create rc told
// args: create rc asked
// timeout: 120
#include <unistd.h>

#include "tern_test.h"

enum { ROUNDS = 200, RUN = 1000 };

static long *base, own[RUN], one[RUN], got[RUN];
static MPI_Win win;

int main(int argc, char **argv) {
    if (argc > 2) { /* no other library knows of these */
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
        setenv("TERN_WIN_FENCE", argc > 3 ? argv[3] : "auto", 1);
    }
    t_begin(&argc, &argv);
    base = own;
    if (argc > 1 && strncmp(argv[1], "create", 6) == 0)
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    else
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, sizeof own);
    for (int i = 0; i < RUN; i++)
        one[i] = 1;
    OK(MPI_Win_fence(0, win));
    int puts = argc > 1 && argv[1][strlen(argv[1]) - 1] == 's';
    for (int round = 1; round <= ROUNDS; round++) {
        int run = round % 2 ? RUN : 1;
        if (t_rank == 0) {
            if (round % 4 < 2)
                usleep(100);
            if (puts) {
                for (int i = 0; i < RUN; i++)
                    one[i] = round;
                OK(MPI_Put(one + RUN - run, run, MPI_LONG, 1, RUN - run, run, MPI_LONG, win));
            } else
                OK(MPI_Accumulate(one, RUN, MPI_LONG, 1, 0, RUN, MPI_LONG, MPI_SUM, win));
        }
        OK(MPI_Win_fence(0, win));
        if (t_rank == 0)
            OK(MPI_Get(got, run, MPI_LONG, 1, RUN - run, run, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        for (int i = 0; i < run && t_rank == 0; i++)
            CHECK_AT(i, got[i], round);
    }
    OK(MPI_Win_free(&win));
    return t_end();
}
