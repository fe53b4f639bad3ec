/* What cannot be started: the class is MPI_ERR_SPAWN on all ranks, and the job goes on. refused.c looks at the text. */
// not-on: mpich (starts what does not exist and then waits for it for ever)
// connections: processes of other jobs are reached over TCP alone
#include "../tern_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void refused(const char *command, int most, const char *key, const char *value) {
    MPI_Comm children;
    MPI_Info info = MPI_INFO_NULL;
    int codes[4] = {0, 0, 0, 0};
    if (key != NULL) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, key, value));
    }
    int code = MPI_Comm_spawn(command, MPI_ARGV_NULL, most, info, 0, MPI_COMM_WORLD, &children, codes);
    FAILS(code, MPI_ERR_SPAWN);
    CHECK(children == MPI_COMM_NULL);
    for (int i = 0; i < most; i++)
        CHECK_AT(i, codes[i], MPI_ERR_SPAWN);
    if (info != MPI_INFO_NULL)
        OK(MPI_Info_free(&info));
}

/* Files that may be executed and are no programs here: of these bytes, and the head of this program with another machine
 * in it. No shell gets to see them. */
static void rubbish(const char *own) {
    const int foreign_machine = 18;
    char name[] = "/tmp/tern-wrong-XXXXXX", bytes[4096];
    for (int round = 0; round < 2; round++) {
        if (t_rank == 0) {
            int file = mkstemp(name), program = open(own, O_RDONLY);
            CHECK(file >= 0 && program >= 0);
            CHECK_EQ(read(program, bytes, sizeof bytes), sizeof bytes);
            close(program);
            if (round)
                memset(bytes + foreign_machine, 0x77, 2);
            else
                for (size_t i = 0; i < sizeof bytes; i++)
                    bytes[i] = (char)(i * 7 + 1);
            CHECK_EQ(write(file, bytes, sizeof bytes), sizeof bytes);
            CHECK_EQ(fchmod(file, 0755), 0);
            close(file);
        }
        MPI_Comm children;
        int code = MPI_Comm_spawn(name, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        if (t_rank == 0) {
            SAYS(code, MPI_ERR_SPAWN, name, round ? "for machine 30583 of ELF, not" : "it is no program");
            unlink(name);
            memcpy(strrchr(name, '-') + 1, "XXXXXX", 6);
        } else
            FAILS(code, MPI_ERR_SPAWN);
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    refused("./no-such-program", 2, NULL, NULL);
    refused("no-such-program-in-path", 1, NULL, NULL);
    refused("/dev/null", 1, NULL, NULL);
    refused("/tmp", 1, NULL, NULL);
    refused(argv[0], 0, NULL, NULL);
    refused(argv[0], -1, NULL, NULL);
    refused(argv[0], 2, "wdir", "/no/such/directory");
    refused(argv[0], 2, "host", "no-such-host");
    refused(argv[0], 4, "soft", "5:9");
    refused(argv[0], 4, "soft", "many");
    rubbish(argv[0]);
    MPI_Comm children;
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, t_size, MPI_COMM_WORLD, &children,
                         MPI_ERRCODES_IGNORE), MPI_ERR_ROOT);
    return t_end();
}
