/* A program is started by other processes by its name: where they find it, and in which directory they run, is checked.
 * Arguments: its name, then info keys and what they say; DIRECTORY= for where the processes are to be, BEGIN= for where the one
 * that asks goes first. */
#include "tern_test.h"

#include <unistd.h>

enum { CHILDREN = 2, ROOM = 4096 };

static void child(MPI_Comm parent) {
    char here[ROOM] = "";
    CHECK(getcwd(here, sizeof here) != NULL);
    OK(MPI_Send(here, ROOM, MPI_CHAR, 0, 0, parent));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
}

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    MPI_Info info;
    const char *directory = NULL;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        child(parent);
        return 0;
    }
    OK(MPI_Info_create(&info));
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "DIRECTORY=") == 0)
            directory = argv[i + 1];
        else if (strcmp(argv[i], "BEGIN=") == 0)
            CHECK_EQ(chdir(argv[i + 1]), 0);
        else
            OK(MPI_Info_set(info, argv[i], argv[i + 1]));
    }
    OK(MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, CHILDREN, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    for (int from = 0; from < CHILDREN; from++) {
        char there[ROOM];
        OK(MPI_Recv(there, ROOM, MPI_CHAR, from, 0, children, MPI_STATUS_IGNORE));
        if (directory)
            CHECK_STR(there, directory);
    }
    OK(MPI_Comm_disconnect(&children));
    OK(MPI_Info_free(&info));
    OK(MPI_Finalize());
    printf("all were found\n");
    return 0;
}
