/* What the user is told of a program that cannot be started: its name and why. */
// np: 1
// args: ./no-such-program
// args: no-such-program-in-path
// args: /dev/null
// args: /tmp
// expect-exit: nonzero
// expect-stderr: no process was started: cannot start '(\./no-such-program': No such file|no-such-program-in-path': it is in no directory of PATH|/dev/null': it is not executable|/tmp': it is a directory)
// not-on: mpich (another text)
#include "../tern_test.h"

int main(int argc, char **argv) {
    MPI_Comm children;
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    return 0;
}
