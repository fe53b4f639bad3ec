/* What TERN_EXPLAIN says of epochs whose operations went by an adapter: how many there were of a kind, what became of their operations, and what
 * they were predicted to take and took. */
// np: 2
// env: TERN_EXPLAIN=used
// one-host: the adapter is forced
// expect-stderr[tern]: epochs of .*: \d+ \(\d+ operations\); order \S+, \d+ reordered; in messages .*; predicted \d+\.\d us, observed \d+\.\d us
// not-on: mpich (the setting is Tern's)
// not-on: ompi (the setting is Tern's)
#include "tern_test.h"

enum { EPOCHS = 20, PARTS = 4, BYTES = 1 << 16 };

int main(int argc, char **argv) {
    static char own[BYTES], out[BYTES];
    MPI_Win win;
    unsetenv("TERN_WIN"); /* that would be messages alone */
    setenv("TERN_DEVICES", "rnic", 1);
    t_begin(&argc, &argv);
    OK(MPI_Win_create(own, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = 0; i < PARTS && t_rank == 0; i++)
            OK(MPI_Put(out, 64 << 2 * i, MPI_BYTE, 1, i * (BYTES / PARTS), 64 << 2 * i, MPI_BYTE, win));
        OK(MPI_Win_fence(epoch + 1 < EPOCHS ? 0 : MPI_MODE_NOSUCCEED, win));
    }
    OK(MPI_Win_free(&win));
    return t_end();
}
