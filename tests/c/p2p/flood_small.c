/* 100,000 small messages that nobody expects yet: none is lost, order holds, and a
 * receiver that starts late gets them all. The receiver takes them last tag first. */
// np: 2,3
// np[mpich]: 2
// timeout: 120
#include "tern_test.h"

#include <unistd.h>

enum { N = 100000, TAGS = 2 };

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    if (t_rank > 0) {
        for (int i = 0; i < N; i++) {
            uint64_t word = ((uint64_t)t_rank << 32) | (uint64_t)i;
            OK(MPI_Send(&word, 1, MPI_UINT64_T, 0, i >= N / 2, MPI_COMM_WORLD));
        }
    } else {
        usleep(100000);
        for (int tag = TAGS - 1; tag >= 0; tag--)
            for (int source = 1; source < t_size; source++)
                for (int i = 0; i < N / 2; i++) {
                    uint64_t word = 0;
                    MPI_Status status;
                    OK(MPI_Recv(&word, 1, MPI_UINT64_T, source, tag, MPI_COMM_WORLD, &status));
                    CHECK_AT(i, word, ((uint64_t)source << 32) | (uint64_t)(i + tag * N / 2));
                }
    }
    return t_end();
}
