/* 200 messages of 1 MB that nobody expects yet, taken in reverse order of their tags: the
 * receiver's memory does not grow by all of them (peak resident size is bounded). */
// np: 2,3
// timeout: 120
#include "tern_test.h"

#include <sys/resource.h>
#include <unistd.h>

enum { N = 200, BYTES = 1 << 20 };

static long peak_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    unsigned char *data = t_alloc(BYTES);
    if (t_rank > 0) {
        MPI_Request *requests = t_alloc(N * sizeof *requests);
        t_fill(data, BYTES, (uint64_t)t_rank);
        for (int i = 0; i < N; i++)
            OK(MPI_Isend(data, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Waitall(N, requests, MPI_STATUSES_IGNORE));
        free(requests);
    } else {
        long before = peak_mb();
        usleep(200000);
        for (int source = 1; source < t_size; source++)
            for (int i = N - 1; i >= 0; i--) {
                MPI_Status status;
                OK(MPI_Recv(data, BYTES, MPI_BYTE, source, i, MPI_COMM_WORLD, &status));
                CHECK_STATUS(status, source, i, BYTES);
                if (i % 20 == 0)
                    CHECK_FILL(data, BYTES, (uint64_t)source);
            }
        long grown = peak_mb() - before;
        if (grown > 100)
            t_fail(__FILE__, __LINE__, "the flood took %ld MB of the receiver, expected at most 100", grown);
    }
    free(data);
    return t_end();
}
