/* Messages of all lengths that come before their receives, some of them taken at once and some after many others
 * from the same ranks, by receives, probes and matched probes in any order: each is whole, and whoever sends finds room. */
// np: 2,4
// args: 1
// args: 2
// timeout: 120
#include "tern_test.h"

enum { MESSAGES = 60, ROUNDS = 6 };

static int length_of(int from, int index) {
    static const int lengths[] = {8, 3000, 16384, 20000, 65536, 200000, 262144, 700000};
    return lengths[(from * 5 + index * 3 + index / 8) % 8];
}

static uint64_t pattern(int from, int round, int index) {
    return (uint64_t)(from * ROUNDS + round) * 1000 + (uint64_t)index;
}

static void take(int from, int round, int index, int how, unsigned char *buffer) {
    int length = length_of(from, index), count;
    MPI_Status status;
    MPI_Message message;
    switch (how) {
    case 0:
        OK(MPI_Recv(buffer, length, MPI_BYTE, from, index, MPI_COMM_WORLD, &status));
        break;
    case 1:
        OK(MPI_Probe(from, index, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == length);
        OK(MPI_Recv(buffer, count, MPI_BYTE, from, index, MPI_COMM_WORLD, &status));
        break;
    default:
        OK(MPI_Mprobe(from, index, MPI_COMM_WORLD, &message, &status));
        OK(MPI_Mrecv(buffer, length, MPI_BYTE, &message, &status));
    }
    CHECK_STATUS(status, from, index, length);
    CHECK_FILL(buffer, (size_t)length, pattern(from, round, index));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    t_rng rng = t_seed((uint64_t)atoi(argv[1]) * 977 + (uint64_t)t_rank);
    unsigned char *buffer = t_alloc(700000), *data[MESSAGES];
    MPI_Request *requests = t_alloc((size_t)(MESSAGES * t_size) * sizeof *requests);
    for (int i = 0; i < MESSAGES; i++)
        data[i] = t_alloc((size_t)length_of(t_rank, i));
    for (int round = 0; round < ROUNDS; round++) {
        int open = 0;
        for (int i = 0; i < MESSAGES; i++) {
            t_fill(data[i], (size_t)length_of(t_rank, i), pattern(t_rank, round, i));
            for (int to = 0; to < t_size; to++)
                if (to != t_rank)
                    OK(MPI_Isend(data[i], length_of(t_rank, i), MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[open++]));
        }
        for (int from = 0; from < t_size; from++) {
            int order[MESSAGES];
            for (int i = 0; i < MESSAGES; i++)
                order[i] = i;
            for (int i = MESSAGES - 1; i > 0 && from != t_rank; i--) {
                int other = (int)t_below(&rng, (uint32_t)i + 1), was = order[i];
                order[i] = order[other];
                order[other] = was;
            }
            for (int i = 0; i < MESSAGES && from != t_rank; i++)
                take(from, round, order[i], (int)t_below(&rng, 3), buffer);
        }
        OK(MPI_Waitall(open, requests, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < MESSAGES; i++)
        free(data[i]);
    free(requests);
    free(buffer);
    return t_end();
}
