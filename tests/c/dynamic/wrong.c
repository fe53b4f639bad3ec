/* What cannot be started: the class is MPI_ERR_SPAWN on all ranks, the text says why, and the job goes on. */
#include "../tern_test.h"

static void refused(const char *command, int most, const char *key, const char *value, const char *why) {
    MPI_Comm children;
    MPI_Info info = MPI_INFO_NULL;
    int codes[4] = {0, 0, 0, 0}, length;
    char text[MPI_MAX_ERROR_STRING];
    if (key != NULL) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, key, value));
    }
    int code = MPI_Comm_spawn(command, MPI_ARGV_NULL, most, info, 0, MPI_COMM_WORLD, &children, codes);
    FAILS(code, MPI_ERR_SPAWN);
    CHECK(children == MPI_COMM_NULL);
    OK(MPI_Error_string(code, text, &length));
    if (t_rank == 0 && strstr(text, why) == NULL)
        t_fail(__FILE__, __LINE__, "%s: expected %s", text, why);
    if (info != MPI_INFO_NULL)
        OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    refused("./no-such-program", 2, NULL, NULL, "no-such-program");
    refused("no-such-program-in-path", 1, NULL, NULL, "PATH");
    refused("/dev/null", 1, NULL, NULL, "/dev/null");
    refused("/tmp", 1, NULL, NULL, "directory");
    refused(argv[0], 0, NULL, NULL, "maxprocs");
    refused(argv[0], -1, NULL, NULL, "maxprocs");
    refused(argv[0], 2, "wdir", "/no/such/directory", "/no/such/directory");
    refused(argv[0], 2, "host", "no-such-host", "no-such-host");
    refused(argv[0], 4, "soft", "5:9", "soft");
    refused(argv[0], 4, "soft", "many", "soft");
    MPI_Comm children;
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, t_size, MPI_COMM_WORLD, &children,
                         MPI_ERRCODES_IGNORE), MPI_ERR_ROOT);
    return t_end();
}
