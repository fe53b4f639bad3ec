/* What a window of Tern says of itself. */
#include "tern_test.h"

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
