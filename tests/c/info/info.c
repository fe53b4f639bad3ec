/* Info objects: set, get, delete, order of keys, dup, limits, MPI_INFO_ENV. */
#include "tern_test.h"

static void check(MPI_Info info, const char *key, const char *want) {
    char value[MPI_MAX_INFO_VAL] = "untouched";
    int flag = -1, length = (int)sizeof value;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    CHECK_EQ(!!flag, want != NULL);
    if (!want)
        return;
    CHECK_STR(value, want);
    CHECK_EQ(length, strlen(want) + 1);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Info info, copy;
    int n = -1, flag = -1, length;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_EQ(n, 0);
    check(info, "absent", NULL);
    OK(MPI_Info_set(info, "one", "1"));
    OK(MPI_Info_set(info, "two", "zwei"));
    OK(MPI_Info_set(info, "three", "a value with blanks"));
    OK(MPI_Info_set(info, "one", "uno"));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK_EQ(n, 3);
    check(info, "one", "uno");
    check(info, "two", "zwei");
    check(info, "three", "a value with blanks");
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        OK(MPI_Info_get_nthkey(info, i, key));
        seen |= strcmp(key, "one") == 0 ? 1 : strcmp(key, "two") == 0 ? 2 : strcmp(key, "three") == 0 ? 4 : 8;
    }
    CHECK_EQ(seen, 7);
    FAILS_EITHER(MPI_Info_get_nthkey(info, 3, key), MPI_ERR_ARG, MPI_ERR_INFO_KEY);
    /* Short buffers: cut, terminated, and the needed length comes back. */
    length = 5;
    OK(MPI_Info_get_string(info, "three", &length, value, &flag));
    CHECK(flag);
    CHECK_STR(value, "a va");
    CHECK_EQ(length, 20);
    length = 0;
    OK(MPI_Info_get_string(info, "two", &length, NULL, &flag));
    CHECK(flag);
    CHECK_EQ(length, 5);
    OK(MPI_Info_get(info, "two", 10, value, &flag));
    CHECK(flag);
    CHECK_STR(value, "zwei");
    OK(MPI_Info_get_valuelen(info, "two", &length, &flag));
    CHECK(flag && length == 4);
    OK(MPI_Info_get_valuelen(info, "absent", &length, &flag));
    CHECK(!flag);
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_delete(info, "two"));
    check(info, "two", NULL);
    check(copy, "two", "zwei");
    FAILS(MPI_Info_delete(info, "two"), MPI_ERR_INFO_NOKEY);
    /* The longest key and value. */
    memset(key, 'k', sizeof key);
    memset(value, 'v', sizeof value);
    key[MPI_MAX_INFO_KEY - 1] = 0;
    value[MPI_MAX_INFO_VAL - 1] = 0;
    OK(MPI_Info_set(copy, key, value));
    check(copy, key, value);
    OK(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL);
    OK(MPI_Info_free(&copy));
    /* The predefined object about the start of the program, and one from argc and argv. */
    OK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
    CHECK(n >= 0);
    OK(MPI_Info_create_env(argc, argv, &info));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n >= 0);
    OK(MPI_Info_free(&info));
    return t_end();
}
