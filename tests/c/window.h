/* Windows of each kind, and what a window of Tern says of itself. */
#include "tern_test.h"

/* One of `bytes` on each rank, in bytes: by MPI_Win_allocate («allocate»), MPI_Win_create or MPI_Win_create_dynamic («dynamic»: to be
 * detached). `at` has room for where that of each rank begins. */
static inline MPI_Win t_window(const char *how, MPI_Aint bytes, long **base, MPI_Aint *at) {
    MPI_Win win;
    MPI_Aint mine = 0;
    if (strcmp(how, "allocate") == 0) {
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win));
    } else {
        *base = t_alloc(bytes);
        if (strcmp(how, "create") == 0) {
            OK(MPI_Win_create(*base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        } else {
            OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            OK(MPI_Win_attach(win, *base, bytes));
            OK(MPI_Get_address(*base, &mine));
        }
    }
    OK(MPI_Allgather(&mine, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    return win;
}

/* Who carries out what: the info key `tern_win_path`. */
static const char *t_path_of(MPI_Win win) {
    static char path[MPI_MAX_INFO_VAL + 1];
    int length = sizeof path, is_there;
    MPI_Info info;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, "tern_win_path", &length, path, &is_there));
    CHECK_EQ(is_there, 1);
    OK(MPI_Info_free(&info));
    return path;
}

/* Whether all ranks reach its memory by loads and stores. */
static inline int t_is_direct(MPI_Win win) {
    return strncmp(t_path_of(win), "direct", 6) == 0;
}

/* Whether they synchronise by words that all of them map. */
static inline int t_is_by_words(MPI_Win win) {
    return t_is_direct(win) || strstr(t_path_of(win), "by words in shared memory") != NULL;
}
