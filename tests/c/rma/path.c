/* What the info key `tern_win_path` says is so: who carries out what, by what TERN_WIN forces; between ranks that share memory, and with a
 * second argument as between hosts, by Tern's adapter in this manner. A variable says whether the origin did. */
// np: 2,4
// args: auto
// args: direct
// args: active
// args: auto rc
// args: auto rd
// args: direct rc
// args: active rc
// one-host: what is there is what the arguments make
// not-on: mpich (other variables)
// not-on: ompi (other variables)
#include "../window.h"
#include "counter.h"

enum { LONG = 1 << 16 };

static char own[LONG], got[LONG];

static void begins(MPI_Win win, const char *word) {
    const char *path = t_path_of(win);
    if (strncmp(path, word, strlen(word)) != 0)
        t_fail(__FILE__, __LINE__, "`%s` does not begin with %s", path, word);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "auto";
    int by_adapter = argc > 2, next;
    setenv("TERN_WIN", way, 1);
    if (by_adapter) {
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
    }
    t_begin(&argc, &argv);
    next = (t_rank + 1) % t_size;
    int is_auto = strcmp(way, "auto") == 0, is_active = strcmp(way, "active") == 0;
    MPI_Win win;
    char *base;

    /* Memory of the library. */
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    begins(win, by_adapter ? (is_auto ? "adapter: " : "active: ") : is_active ? "active: by the target" : "direct: ");
    OK(MPI_Win_free(&win));

    /* Memory of the program. */
    OK(MPI_Win_create(own, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    begins(win, by_adapter && is_auto ? "adapter: Put and Get" : "active: ");
    int copies = strstr(t_path_of(win), "in one run on this host by the origin") != NULL;
    int is_software = strstr(t_path_of(win), "which is software of the target") != NULL;
    int has_atomics = strstr(t_path_of(win), "atomics on integers of 8 bytes") != NULL;
    CHECK_EQ(is_software, by_adapter && is_auto);
    CHECK_EQ(has_atomics, by_adapter && is_auto && strcmp(argv[2], "rc") == 0);
    CHECK(!copies || !(by_adapter || is_active));
    /* Where the kernel copies between them ranks of one host need no messages to synchronise. */
    CHECK_EQ(copies, strstr(t_path_of(win), "by words in shared memory") != NULL);
    uint64_t copied = t_counted("tern_window_copied");
    memset(got, 1 + t_rank, LONG);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(got, LONG, MPI_BYTE, next, 0, LONG, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(t_counted("tern_window_copied") - copied, copies);
    CHECK_EQ(own[LONG - 1], 1 + (t_rank + t_size - 1) % t_size);
    OK(MPI_Win_free(&win));
    return t_end();
}
