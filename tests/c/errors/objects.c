/* Wrong arguments of the calls that make and free objects. */
// np: 1,2
#include "tern_test.h"

static void types(void) {
    MPI_Datatype type = MPI_INT, made;
    int size;
    SAYS(MPI_Type_contiguous(-1, MPI_INT, &made), MPI_ERR_COUNT, "`count`");
    SAYS(MPI_Type_vector(-1, 1, 1, MPI_INT, &made), MPI_ERR_COUNT, "`count`");
    FAILS_EITHER(MPI_Type_vector(1, -1, 1, MPI_INT, &made), MPI_ERR_ARG, MPI_ERR_COUNT);
    FAILS_EITHER(MPI_Type_indexed(1, (int[]){-1}, (int[]){0}, MPI_INT, &made), MPI_ERR_ARG, MPI_ERR_COUNT);
    SAYS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &made), MPI_ERR_TYPE, "`oldtype`");
    SAYS(MPI_Type_size(MPI_DATATYPE_NULL, &size), MPI_ERR_TYPE, "`datatype`");
    SAYS(MPI_Type_free(&type), MPI_ERR_TYPE, "`datatype`");
    type = MPI_DATATYPE_NULL;
    SAYS(MPI_Type_free(&type), MPI_ERR_TYPE, "`datatype`");
    SAYS(MPI_Type_commit(&type), MPI_ERR_TYPE, "`datatype`");
    SAYS(MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL), MPI_ERR_TYPE, "`datatype`");
}

static void groups(void) {
    MPI_Group world, made, null = MPI_GROUP_NULL;
    int size, bad[2] = {0, 0}, range[1][3] = {{0, 0, 0}};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    SAYS(MPI_Group_size(null, &size), MPI_ERR_GROUP, "`group`");
    SAYS(MPI_Group_free(&null), MPI_ERR_GROUP, "`group`");
    bad[0] = t_size;
    FAILS(MPI_Group_incl(world, 1, bad, &made), MPI_ERR_RANK);
    FAILS(MPI_Group_excl(world, 1, bad, &made), MPI_ERR_RANK);
    FAILS_EITHER(MPI_Group_range_incl(world, 1, range, &made), MPI_ERR_ARG, MPI_ERR_RANK);
    FAILS(MPI_Group_translate_ranks(world, 1, bad, world, &size), MPI_ERR_RANK);
    OK(MPI_Group_free(&world));
}

static void communicators(void) {
    MPI_Comm comm = MPI_COMM_NULL, made;
    int size;
    SAYS(MPI_Comm_size(comm, &size), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Comm_rank(comm, &size), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Comm_dup(comm, &made), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Comm_free(&comm), MPI_ERR_COMM, "`comm`");
    comm = MPI_COMM_WORLD;
    SAYS(MPI_Comm_free(&comm), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &made), MPI_ERR_GROUP, "`group`");
    SAYS(MPI_Comm_size(MPI_COMM_WORLD, NULL), MPI_ERR_ARG, "`size`");
    FAILS_EITHER(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL), MPI_ERR_ARG, MPI_ERR_ERRHANDLER);
    int keyval = MPI_KEYVAL_INVALID;
    SAYS(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, NULL), MPI_ERR_KEYVAL, "`keyval`");
    SAYS(MPI_Comm_free_keyval(&keyval), MPI_ERR_KEYVAL, "`keyval`");
}

static void infos(void) {
    MPI_Info info, null = MPI_INFO_NULL;
    char key[MPI_MAX_INFO_KEY + 10];
    int n;
    OK(MPI_Info_create(&info));
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    FAILS(MPI_Info_set(info, key, "v"), MPI_ERR_INFO_KEY);
    FAILS(MPI_Info_set(info, "", "v"), MPI_ERR_INFO_KEY);
    FAILS_EITHER(MPI_Info_set(info, NULL, "v"), MPI_ERR_INFO_KEY, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Info_set(info, "k", NULL), MPI_ERR_INFO_VALUE, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Info_set(null, "k", "v"), MPI_ERR_INFO, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Info_get_nkeys(null, &n), MPI_ERR_INFO, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Info_free(&null), MPI_ERR_INFO, MPI_ERR_ARG);
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    types();
    groups();
    communicators();
    infos();
    return t_end();
}
