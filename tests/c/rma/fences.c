/* Many fences of a window whose memory is not shared, by either way and by the one that Tern finds: each completes the Put and the
 * accumulate of every rank at its neighbours before any rank goes on. With two more arguments by Tern's adapter, in this manner, or by
 * messages, and with fences of this kind; it says itself that they were. */
// np: 2+
// args: messages auto
// args: rc auto
// args: rc told
// args: rc asked
// args: rd told
// args: ud asked
// args: hybrid auto
// args: messages told
// args: messages asked
// not-on: mpich (other variables)
// not-on: ompi (other variables)
// timeout: 120
#include "counter.h"

enum { ROUNDS = 1000 };

int main(int argc, char **argv) {
    const char *way = argc > 2 ? argv[2] : "auto";
    if (argc > 1 && strcmp(argv[1], "messages") == 0) {
        setenv("TERN_WIN", "active", 1);
    } else if (argc > 1 && strcmp(argv[1], "auto") != 0) {
        unsetenv("TERN_WIN");
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[1], 1);
    }
    setenv("TERN_WIN_FENCE", way, 1);
    t_begin(&argc, &argv);
    t_counted("tern_window_fence_told");
    MPI_Win win;
    long own[2] = {0, 0}, one = 1;
    int next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (long round = 1; round <= ROUNDS; round++) {
        long mine = round * 1000 + t_rank;
        OK(MPI_Put(&mine, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, last, 1, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Win_fence(0, win));
        CHECK_AT(round, own[0], round * 1000 + last);
        CHECK_AT(round, own[1], round);
        OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE, win));
    }
    OK(MPI_Win_free(&win));
    uint64_t fences = t_counted("tern_window_fence_told");
    if (strcmp(way, "auto") != 0)
        CHECK_EQ((long)fences, strcmp(way, "told") == 0 ? 2L * ROUNDS + 1 : 0L);
    else
        CHECK(fences > 0 && fences < 2 * ROUNDS); /* either is tried */
    return t_end();
}
