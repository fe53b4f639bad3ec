/* What a rank does in its own memory is there behind the fence, also if all others have come to it long before. With two more arguments by
 * Tern's adapter, in this manner and with fences of this kind. */
// np: 2+
// args: allocate
// args: create
// args: create rc told
// args: create rc asked
// args: create rd told
#include <unistd.h>

#include "tern_test.h"

enum { ROUNDS = 60 };

int main(int argc, char **argv) {
    if (argc > 2) { /* no other library knows of these */
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
        setenv("TERN_WIN_FENCE", argv[3], 1);
    }
    t_begin(&argc, &argv);
    long own[2] = {0, 0}, *base = own, one = 1, got = -1;
    MPI_Win win;
    if (argc > 1 && strcmp(argv[1], "create") == 0)
        OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    else
        OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    base[0] = base[1] = 0;
    OK(MPI_Win_fence(0, win));
    for (long round = 1; round <= ROUNDS; round++) {
        if (round % t_size == t_rank)
            usleep(2000);
        OK(MPI_Accumulate(&one, 1, MPI_LONG, t_rank, 0, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Put(&round, 1, MPI_LONG, t_rank, 1, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        CHECK_AT(round, base[0], round);
        CHECK_AT(round, base[1], round);
        OK(MPI_Get(&got, 1, MPI_LONG, t_rank, 0, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        CHECK_AT(round, got, round);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_free(&win));
    return t_end();
}
