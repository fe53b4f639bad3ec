/* What TERN_JOURNAL keeps of epochs whose operations went by an adapter: what their plans were like, with what they were predicted to take; and
 * behind them what became of each kind. */
// np: 2
// one-host: the adapter is forced
// not-on: mpich (the setting is Tern's)
// not-on: ompi (the setting is Tern's)
#include "tern_test.h"

#include <unistd.h>

enum { EPOCHS = 20, PARTS = 4, BYTES = 1 << 16 };

/* Whether a line of the file begins so and has all of these in it, in this order. */
static int has_line(const char *name, const char *begin, const char *const *parts) {
    char line[1024];
    FILE *file = fopen(name, "r");
    CHECK(file != NULL);
    int found = 0;
    while (!found && fgets(line, sizeof line, file)) {
        const char *at = strncmp(line, begin, strlen(begin)) == 0 ? line : NULL;
        for (int i = 0; at && parts[i]; i++)
            at = strstr(at, parts[i]);
        found = at != NULL;
    }
    fclose(file);
    return found;
}

int main(int argc, char **argv) {
    static char own[BYTES], out[BYTES];
    char name[64];
    MPI_Win win;
    snprintf(name, sizeof name, "/tmp/tern-journalled-%d", (int)getpid());
    unsetenv("TERN_WIN"); /* that would be messages alone */
    unsetenv("TERN_DECISIONS");
    setenv("TERN_DEVICES", "rnic", 1);
    /* Rank 0 alone, which reads it at the end: others might still write then. */
    const char *rank = getenv("PMI_RANK");
    CHECK(rank != NULL);
    if (strcmp(rank, "0") == 0)
        setenv("TERN_JOURNAL", name, 1);
    t_begin(&argc, &argv);
    OK(MPI_Win_create(own, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = 0; i < PARTS && t_rank == 0; i++)
            OK(MPI_Put(out, 64 << 2 * i, MPI_BYTE, 1, i * (BYTES / PARTS), 64 << 2 * i, MPI_BYTE, win));
        OK(MPI_Win_fence(epoch + 1 < EPOCHS ? 0 : MPI_MODE_NOSUCCEED, win));
    }
    OK(MPI_Win_free(&win));
    int me = t_rank, code = t_end();
    if (me == 0) { /* its own lines are there when MPI_Finalize has returned */
        const char *const change[] = { "to=network puts=4 put=1K gets=0 get=0 order=", " messages=", " sync=", " # ", "operations:", "reordered",
                                       "in messages", "early", "predicted", NULL };
        const char *const kind[] = { "4+ Puts of 1K+, no Gets: 20 (80 operations)", "predicted", "observed", NULL };
        CHECK(has_line(name, "rank=0 at=1 ", change));
        CHECK(has_line(name, "# rank 0: epochs of ", kind));
        unlink(name);
    }
    return code;
}
