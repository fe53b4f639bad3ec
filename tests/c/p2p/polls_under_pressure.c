/* A rank polls for a message that stands behind more unexpected ones than its
 * library wants to keep, by every function that looks without waiting; the other
 * ranks keep it busy meanwhile.
 * np: 2+
 * args: test
 * args: testany
 * args: testsome
 * args: testall
 * args: status
 * args: iprobe
 * args: improbe
 * args: wait
 * env: TERN_UNEXPECTED=1M
 */
#include "../tern_test.h"

enum { MESSAGES = 3000, BYTES = 1000, FLOOD = 1, WANTED = 2, PING = 3, PONG = 4 };
static char buffer[BYTES];
static int value;

/* Looks once by the function of that name; whether the wanted message is there. */
static int look(const char *by, MPI_Request *request) {
    int flag = 0, index, count = 0;
    if (strcmp(by, "test") == 0) {
        OK(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
    } else if (strcmp(by, "testany") == 0) {
        OK(MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE));
    } else if (strcmp(by, "testsome") == 0) {
        OK(MPI_Testsome(1, request, &count, &index, MPI_STATUSES_IGNORE));
        flag = count == 1;
    } else if (strcmp(by, "testall") == 0) {
        OK(MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE));
    } else if (strcmp(by, "status") == 0) {
        OK(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
        if (flag)
            OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    } else if (strcmp(by, "iprobe") == 0) {
        OK(MPI_Iprobe(1, WANTED, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        if (flag)
            OK(MPI_Recv(&value, 1, MPI_INT, 1, WANTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (strcmp(by, "improbe") == 0) {
        MPI_Message message;
        OK(MPI_Improbe(1, WANTED, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
        if (flag)
            OK(MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
        flag = 1;
    }
    return flag;
}

/* Answers one of the ranks that keep this one busy. */
static void answer(void) {
    int flag, stop = 0;
    MPI_Status status;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, PING, MPI_COMM_WORLD, &flag, &status));
    if (!flag)
        return;
    OK(MPI_Recv(NULL, 0, MPI_INT, status.MPI_SOURCE, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Send(&stop, 1, MPI_INT, status.MPI_SOURCE, PONG, MPI_COMM_WORLD));
}

static void receiver(const char *by) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (strstr(by, "probe") == NULL)
        OK(MPI_Irecv(&value, 1, MPI_INT, 1, WANTED, MPI_COMM_WORLD, &request));
    while (!look(by, &request))
        answer();
    CHECK_EQ(value, 42);
    for (int told = 2; told < t_size; told++) {
        int stop = 1;
        OK(MPI_Recv(NULL, 0, MPI_INT, told, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(&stop, 1, MPI_INT, told, PONG, MPI_COMM_WORLD));
    }
    for (int i = 0; i < MESSAGES; i++)
        OK(MPI_Recv(buffer, BYTES, MPI_CHAR, 1, FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const char *by = argc > 1 ? argv[1] : "test";
    if (t_rank == 0) {
        receiver(by);
    } else if (t_rank == 1) {
        static MPI_Request sends[MESSAGES + 1];
        int wanted = 42;
        for (int i = 0; i < MESSAGES; i++)
            OK(MPI_Isend(buffer, BYTES, MPI_CHAR, 0, FLOOD, MPI_COMM_WORLD, &sends[i]));
        OK(MPI_Isend(&wanted, 1, MPI_INT, 0, WANTED, MPI_COMM_WORLD, &sends[MESSAGES]));
        OK(MPI_Waitall(MESSAGES + 1, sends, MPI_STATUSES_IGNORE));
    } else {
        int stop = 0;
        while (!stop) {
            OK(MPI_Send(NULL, 0, MPI_INT, 0, PING, MPI_COMM_WORLD));
            OK(MPI_Recv(&stop, 1, MPI_INT, 0, PONG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
    return t_end();
}
