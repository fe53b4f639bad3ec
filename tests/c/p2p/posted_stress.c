/* Many receives with one tag are posted before, while and after their messages leave, all
 * with room for the largest, small messages of another tag crossing them: each gets the
 * message of its place in the order, whether it was pushed, pulled or copied. */
// args: 1
// args: 2
// args: 3
// timeout: 120
#include "tern_test.h"

enum { WINDOW = 6, ROUNDS = 60, LARGEST = 300000 };

static int size_of(int from, int to, int round, int k, uint64_t seed) {
    t_rng rng = t_seed(seed * 7919 + (uint64_t)((from * 64 + to) * 1000 + round) * 31 + (uint64_t)k);
    switch (t_below(&rng, 4)) {
    case 0: return (int)t_below(&rng, 100);
    case 1: return (int)t_below(&rng, 20000);
    default: return (int)t_below(&rng, LARGEST + 1);
    }
}

static uint64_t pattern(int from, int to, int round, int k) {
    return ((uint64_t)(from * 64 + to) * 1000 + (uint64_t)round) * 100 + (uint64_t)k;
}

/* Small messages in both directions, so that what the two sides have seen differs. */
static void chatter(int peer, t_rng *rng) {
    int out = 1, in = 0, flag = 0;
    if (t_below(rng, 2))
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, 5, &in, 1, MPI_INT, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(in, 1);
}

static void pair(int peer, int round, uint64_t seed, t_rng *rng, unsigned char **out, unsigned char **in) {
    MPI_Request requests[2 * WINDOW];
    MPI_Status statuses[2 * WINDOW];
    int first = (int)t_below(rng, WINDOW + 1), posted = 0;
    for (; posted < first; posted++)
        OK(MPI_Irecv(in[posted], LARGEST, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[posted]));
    if (t_below(&(t_rng){seed * 977 + (uint64_t)round * 13 + 1}, 2))
        chatter(peer, rng);
    for (int k = 0; k < WINDOW; k++) {
        int bytes = size_of(t_rank, peer, round, k, seed);
        t_fill(out[k], (size_t)bytes, pattern(t_rank, peer, round, k));
        OK(MPI_Isend(out[k], bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[WINDOW + k]));
        if (posted < WINDOW && t_below(rng, 2)) {
            OK(MPI_Irecv(in[posted], LARGEST, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[posted]));
            posted++;
        }
    }
    for (; posted < WINDOW; posted++)
        OK(MPI_Irecv(in[posted], LARGEST, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[posted]));
    OK(MPI_Waitall(2 * WINDOW, requests, statuses));
    for (int k = 0; k < WINDOW; k++) {
        int bytes = size_of(peer, t_rank, round, k, seed);
        CHECK_STATUS(statuses[k], peer, 1, bytes);
        CHECK_FILL(in[k], bytes, pattern(peer, t_rank, round, k));
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    uint64_t seed = (uint64_t)(argc > 1 ? atoi(argv[1]) : 1);
    t_rng rng = t_seed(seed * 64 + (uint64_t)t_rank);
    unsigned char *out[WINDOW], *in[WINDOW];
    for (int k = 0; k < WINDOW; k++) {
        out[k] = t_alloc(LARGEST);
        in[k] = t_alloc(LARGEST);
    }
    /* In round r the ranks whose sum is r modulo the size are partners. */
    for (int round = 0; round < ROUNDS; round++)
        pair((round % t_size - t_rank + t_size) % t_size, round, seed, &rng, out, in);
    for (int k = 0; k < WINDOW; k++) {
        free(out[k]);
        free(in[k]);
    }
    return t_end();
}
