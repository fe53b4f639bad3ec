/* MPI_Comm_spawn_multiple: one job of two programs, their numbers, arguments, working directories; fewer processes than
 * asked for where `soft` allows that; children that start children; ends without MPI_Comm_disconnect. */
// not-on: mpich (starts as many as were asked for, whatever `soft` says, which section 11.8.4 lets it leave uninterpreted)
// connections: processes of other jobs are reached over TCP alone
#include "../tern_test.h"

#include <unistd.h>

static int child(MPI_Comm parent, int argc, char **argv) {
    int size, *appnum, flag;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag));
    CHECK(flag);
    if (argc > 1 && strcmp(argv[1], "grandchild") == 0) {
        int value;
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 5, parent, MPI_STATUS_IGNORE));
        OK(MPI_Send(&value, 1, MPI_INT, 0, 6, parent));
        OK(MPI_Finalize());
        return 0;
    }
    CHECK_EQ(size, 3);
    CHECK_EQ(*appnum, t_rank < 1 ? 0 : 1);
    CHECK_EQ(argc, t_rank < 1 ? 1 : 2);
    char where[1000];
    CHECK(getcwd(where, sizeof where) != NULL);
    if (t_rank > 0)
        CHECK_STR(where, "/");
    int value = 10 * t_rank + *appnum;
    if (t_rank == 0) {
        MPI_Comm below;
        char *arguments[] = {"grandchild", NULL};
        OK(MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &below, MPI_ERRCODES_IGNORE));
        OK(MPI_Send(&value, 1, MPI_INT, 0, 5, below));
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 6, below, MPI_STATUS_IGNORE));
    }
    OK(MPI_Send(&value, 1, MPI_INT, 0, 1, parent));
    OK(MPI_Finalize());
    return 0;
}

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    t_begin(&argc, &argv);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL)
        return child(parent, argc, argv);
    char *commands[] = {argv[0], argv[0]}, *none[] = {NULL}, *one[] = {"x y", NULL}, **arguments[] = {none, one};
    int most[] = {1, 4}, codes[5];
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    OK(MPI_Info_create(&infos[1]));
    OK(MPI_Info_set(infos[1], "wdir", "/"));
    OK(MPI_Info_set(infos[1], "soft", "1:2"));
    OK(MPI_Comm_spawn_multiple(2, commands, arguments, most, infos, 0, MPI_COMM_WORLD, &children, codes));
    int started = 0, size;
    for (int i = 0; i < 5; i++)
        started += codes[i] == MPI_SUCCESS;
    CHECK_EQ(started, 3);
    OK(MPI_Comm_remote_size(children, &size));
    CHECK_EQ(size, 3);
    for (int i = 0; t_rank == 0 && i < size; i++) {
        int value;
        OK(MPI_Recv(&value, 1, MPI_INT, i, 1, children, MPI_STATUS_IGNORE));
        CHECK_EQ(value, 10 * i + (i > 0));
    }
    OK(MPI_Info_free(&infos[1]));
    return t_end();
}
