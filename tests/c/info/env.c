/* MPI_INFO_ENV says how the program was started: also before MPI_Init by Info_create_env. */
// np: 1,3
// not-on: mpich (does not fill in all keys)
#include "tern_test.h"

int main(int argc, char **argv) {
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL], want[32];
    int flag = 0, length = (int)sizeof value;
    OK(MPI_Info_create_env(argc, argv, &info));
    OK(MPI_Info_set(info, "own", "1"));
    OK(MPI_Info_free(&info));
    t_begin(&argc, &argv);
    OK(MPI_Info_get_string(MPI_INFO_ENV, "maxprocs", &length, value, &flag));
    CHECK(flag);
    snprintf(want, sizeof want, "%d", t_size);
    CHECK_STR(value, want);
    length = (int)sizeof value;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "command", &length, value, &flag));
    CHECK(flag);
    CHECK(strstr(value, "env") != NULL);
    length = (int)sizeof value;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "thread_level", &length, value, &flag));
    CHECK(flag);
    CHECK_STR(value, "MPI_THREAD_SINGLE");
    return t_end();
}
