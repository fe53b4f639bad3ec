/* Functions of the application run in its own thread, inside MPI, also when a
 * collective comes to need them while the application computes.
 * np: 2+
 * args: plain
 * args: multiple
 */
#include "away.h"

#include <pthread.h>

enum { COUNT = 3000 };
static int mine[COUNT], all[COUNT];
static pthread_t own;
static int inside;

static void sum(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    CHECK(pthread_equal(pthread_self(), own));
    CHECK(inside);
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

int main(int argc, char **argv) {
    away_begin(argc, argv);
    own = pthread_self();
    MPI_Op op;
    OK(MPI_Op_create(sum, 1, &op));
    for (int round = 0; round < 20; round++) {
        MPI_Request requests[3];
        for (int i = 0; i < COUNT; i++)
            mine[i] = t_rank + i;
        int other = -1;
        inside = 1;
        OK(MPI_Iallreduce(mine, all, COUNT, MPI_INT, op, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]));
        if (t_rank == 0)
            other = round;
        OK(MPI_Ibcast(&other, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[2]));
        inside = 0;
        /* Long enough that messages come and the engine looks; nothing depends on it. */
        usleep(2000);
        inside = 1;
        OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        inside = 0;
        CHECK_EQ(other, round);
        for (int i = 0; i < COUNT; i++)
            CHECK_EQ(all[i], t_size * (t_size - 1) / 2 + t_size * i);
    }
    OK(MPI_Op_free(&op));
    return t_end();
}
