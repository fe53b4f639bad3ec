/* Messages from and into one place in memory again and again, behind which there is other memory each time: what a library
 * keeps of a buffer that comes again must not outlive it. */
// np: 1+
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../tern_test.h"

enum { ROUNDS = 60, PIECES = 5, MOST = 1 << 20 };

static const int sizes[PIECES] = {200, 4000, 20000, 65536, MOST};

/* Other pages at `where`, or anywhere if there is none yet. */
static unsigned char *fresh(unsigned char *where) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0);
    unsigned char *memory = mmap(where, MOST, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static unsigned char content(int rank, int round, int at) {
    return (unsigned char)(rank * 91 + round * 7 + at * 13 + at / 256);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    unsigned char *out = fresh(NULL), *in = fresh(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 3 == 2) {
            out = fresh(out);
            in = fresh(in);
        }
        int n = sizes[round % PIECES];
        for (int at = 0; at < n; at++)
            out[at] = content(t_rank, round, at);
        MPI_Request request;
        OK(MPI_Irecv(in, n, MPI_BYTE, last, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Send(out, n, MPI_BYTE, next, 0, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int at = 0; at < n; at++)
            CHECK(in[at] == content(last, round, at));
    }
    return t_end();
}
