/* MPI_INFO_ENV says how the program was started; MPI_Info_create_env the same, with the same keys before
 * MPI_Init as after it. */
// np: 1,3
// not-on: mpich (does not fill in all keys)
#include "tern_test.h"

/* The value of a key. */
static const char *value_of(MPI_Info info, const char *key) {
    static char value[MPI_MAX_INFO_VAL];
    int flag = 0, length = (int)sizeof value;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    CHECK(flag);
    return value;
}

static void same_keys(MPI_Info a, MPI_Info b) {
    int of_a, of_b;
    char key[MPI_MAX_INFO_KEY];
    OK(MPI_Info_get_nkeys(a, &of_a));
    OK(MPI_Info_get_nkeys(b, &of_b));
    CHECK_EQ(of_a, of_b);
    for (int i = 0; i < of_a; i++) {
        char copy[MPI_MAX_INFO_VAL];
        OK(MPI_Info_get_nthkey(a, i, key));
        snprintf(copy, sizeof copy, "%s", value_of(a, key));
        CHECK_STR(copy, value_of(b, key));
    }
}

int main(int argc, char **argv) {
    MPI_Info before, after, own;
    OK(MPI_Info_create_env(argc, argv, &before));
    OK(MPI_Info_dup(before, &own));
    OK(MPI_Info_set(own, "own", "1"));
    OK(MPI_Info_free(&own));
    t_begin(&argc, &argv);
    char want[32];
    snprintf(want, sizeof want, "%d", t_size);
    CHECK_STR(value_of(MPI_INFO_ENV, "maxprocs"), want);
    CHECK_STR(value_of(before, "maxprocs"), want);
    CHECK(strstr(value_of(MPI_INFO_ENV, "command"), "env") != NULL);
    OK(MPI_Info_create_env(argc, argv, &after));
    same_keys(before, MPI_INFO_ENV);
    same_keys(before, after);
    OK(MPI_Info_free(&before));
    OK(MPI_Info_free(&after));
    return t_end();
}
