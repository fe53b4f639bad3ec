/* All to all at once: random sizes from 0 to 4 MB and few tags, receives by wildcard tag,
 * exact tag or wildcard source in random order. Messages of one pair and tag do not
 * overtake each other, whatever their sizes. Two seeds; a failure names the message. */
// args: 1
// args: 2
// timeout: 120
#include "tern_test.h"

enum { MESSAGES = 24, TAGS = 3, WINDOW = 8 };

/* Sizes span all protocols; very large ones are rare, so that memory stays bounded. */
static int size_of(int from, int to, int index, int seed) {
    t_rng rng = t_seed((uint64_t)seed * 1000003u + (uint64_t)(from * 64 + to) * 1009u + (uint64_t)index);
    switch (t_below(&rng, 8)) {
    case 0: return 0;
    case 1: return (int)t_below(&rng, 64);
    case 2:
    case 3: return (int)t_below(&rng, 4096);
    case 4:
    case 5: return (int)t_below(&rng, 70000);
    case 6: return (int)t_below(&rng, 600000);
    default: return t_below(&rng, 4) ? (int)t_below(&rng, 20000) : (int)t_below(&rng, 4194305);
    }
}

static int tag_of(int from, int to, int index) {
    return (from * 7 + to * 3 + index * index) % TAGS;
}

static uint64_t pattern(int from, int to, int index) {
    return (uint64_t)(from * 64 + to) * 1000 + (uint64_t)index;
}

/* The first message of the window from `from` with this tag (or any) that was not taken yet. */
static int next_index(const char *taken, int first, int from, int tag) {
    for (int i = first; i < first + WINDOW; i++)
        if (!taken[from * MESSAGES + i] && (tag == MPI_ANY_TAG || tag_of(from, t_rank, i) == tag))
            return i;
    return -1;
}

static void receive_one(char *taken, int first, int *left, t_rng *rng, unsigned char *buffer, int seed) {
    int from;
    do
        from = (int)t_below(rng, (uint32_t)t_size);
    while (!left[from]);
    int tag = MPI_ANY_TAG;
    if (t_below(rng, 2)) {
        do
            tag = (int)t_below(rng, TAGS);
        while (next_index(taken, first, from, tag) < 0);
    }
    MPI_Status status;
    int wild = tag == MPI_ANY_TAG && t_below(rng, 3) == 0;
    OK(MPI_Recv(buffer, 4194304, MPI_BYTE, wild ? MPI_ANY_SOURCE : from, tag, MPI_COMM_WORLD, &status));
    from = status.MPI_SOURCE;
    int index = next_index(taken, first, from, tag);
    CHECK(index >= 0);
    int bytes = size_of(from, t_rank, index, seed);
    CHECK_STATUS(status, from, tag_of(from, t_rank, index), bytes);
    CHECK_FILL(buffer, bytes, pattern(from, t_rank, index));
    taken[from * MESSAGES + index] = 1;
    left[from]--;
}

static void send_window(int first, int seed, unsigned char **buffers, MPI_Request *requests) {
    for (int to = 0; to < t_size; to++)
        for (int w = 0; w < WINDOW; w++) {
            int index = first + w, slot = to * WINDOW + w, bytes = size_of(t_rank, to, index, seed);
            buffers[slot] = t_alloc((size_t)bytes);
            t_fill(buffers[slot], (size_t)bytes, pattern(t_rank, to, index));
            OK(MPI_Isend(buffers[slot], bytes, MPI_BYTE, to, tag_of(t_rank, to, index), MPI_COMM_WORLD,
                         &requests[slot]));
        }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int seed = argc > 1 ? atoi(argv[1]) : 1, slots = t_size * WINDOW;
    t_rng rng = t_seed((uint64_t)seed * 31 + (uint64_t)t_rank);
    char *taken = calloc((size_t)(t_size * MESSAGES), 1);
    int *left = t_alloc(sizeof(int) * (size_t)t_size);
    unsigned char *in = t_alloc(4194304), **out = t_alloc(sizeof(void *) * (size_t)slots);
    MPI_Request *requests = t_alloc(sizeof(MPI_Request) * (size_t)slots);
    for (int first = 0; first < MESSAGES; first += WINDOW) {
        for (int r = 0; r < t_size; r++)
            left[r] = WINDOW;
        send_window(first, seed, out, requests);
        for (int k = 0; k < slots; k++)
            receive_one(taken, first, left, &rng, in, seed);
        OK(MPI_Waitall(slots, requests, MPI_STATUSES_IGNORE));
        for (int s = 0; s < slots; s++)
            free(out[s]);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    free(taken);
    free(left);
    free(in);
    free(out);
    free(requests);
    return t_end();
}
