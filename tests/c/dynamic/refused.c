/* What the user is told of a program that cannot be started: its name and why. */
// np: 1
// args: ./no-such-program
// args: no-such-program-in-path
// args: /dev/null
// args: /tmp
// args: no-such-program path /usr/lib
// args: ./program wdir /no/such/directory
// expect-exit: nonzero
// expect-stderr: no process was started: cannot start '(\./no-such-program': No such file|no-such-program-in-path': it is in no directory of PATH|no-such-program': it is in no directory of info key `path`, '/usr/lib'|/dev/null': it is not executable|/tmp': it is a directory)|no process was started: info key `wdir`: the working directory '/no/such/directory'
// not-on: mpich (another text)
#include "../tern_test.h"

int main(int argc, char **argv) {
    MPI_Comm children;
    MPI_Info info = MPI_INFO_NULL;
    OK(MPI_Init(&argc, &argv));
    if (argc > 3) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, argv[2], argv[3]));
    }
    MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    return 0;
}
