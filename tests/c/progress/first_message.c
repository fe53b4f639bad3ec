/* A rank that sleeps in MPI_Recv hears the first message of each rank soon, not only
 * those of ranks it has heard before.
 * np: 4,7
 */
#include "tern_test.h"

#include <stdlib.h>
#include <unistd.h>

/* Long enough for the receiver to fall asleep. */
enum { APART_US = 300000 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    if (t_rank != 0) {
        usleep((useconds_t)(t_rank * APART_US));
        double sent = MPI_Wtime();
        OK(MPI_Send(&sent, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD));
        return t_end();
    }
    double late[64];
    for (int i = 0; i < t_size - 1; i++) {
        double sent;
        OK(MPI_Recv(&sent, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        late[i] = MPI_Wtime() - sent;
    }
    qsort(late, (size_t)(t_size - 1), sizeof *late, by_size);
    double median = late[(t_size - 1) / 2];
    if (median > 0.05) {
        fprintf(stderr, "first messages are %.0f ms late (median), %.0f ms at most\n", median * 1e3, late[t_size - 2] * 1e3);
        CHECK(median <= 0.05);
    }
    return t_end();
}
