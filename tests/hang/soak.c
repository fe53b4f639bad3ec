/* Random traffic until the time is over: messages of all lengths, from all to all, in several communicators, received in another
 * order than they are sent, with every byte checked; collectives between them. All ranks draw the same numbers from one seed, so
 * each knows what comes.
 *
 * usage: soak SECONDS SEED */
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 48, LONGEST = 1 << 20, COMMS = 3 };

static int rank, size;
static uint64_t state;

static uint64_t next(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int below(int limit) {
    return (int)(next() % (uint64_t)limit);
}

struct message {
    int from, to, comm, length, tag;
    unsigned char *bytes;
};

static unsigned char byte(const struct message *m, long round, int at) {
    return (unsigned char)(at * 131 + at / 251 + m->from * 17 + m->tag * 7 + round);
}

static void fail(const char *what, const struct message *m, long round) {
    fprintf(stderr, "soak: rank %d, round %ld: %s, %d bytes from rank %d\n", rank, round, what, m->length, m->from);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static int draw_length(void) {
    int length = 1 << below(21);
    return below(8) == 0 ? 0 : length / 2 + below(length / 2 + 1);
}

static void play(long round, MPI_Comm *comms) {
    static struct message all[MOST];
    static MPI_Request requests[MOST];
    static MPI_Status statuses[MOST];
    int mine[MOST], count = 1 + below(MOST), posted = 0, shift;
    for (int i = 0; i < count; i++) {
        struct message *m = &all[i];
        m->from = below(size), m->to = below(size), m->comm = below(COMMS), m->length = draw_length(), m->tag = i;
        /* The third has the ranks in reverse order. */
        if (m->from == rank || m->to == rank)
            mine[posted++] = i;
    }
    shift = below(MOST);
    int requested = 0, from[MOST];
    for (int i = 0; i < posted; i++) {
        struct message *m = &all[mine[(i + shift * rank) % posted]];
        MPI_Comm comm = comms[m->comm];
        int to = m->comm == 2 ? size - 1 - m->to : m->to, source = m->comm == 2 ? size - 1 - m->from : m->from;
        if (m->from == m->to)
            continue;
        m->bytes = malloc((size_t)m->length + 1);
        from[requested] = (int)(m - all);
        if (m->from == rank) {
            for (int at = 0; at < m->length; at++)
                m->bytes[at] = byte(m, round, at);
            MPI_Isend(m->bytes, m->length, MPI_BYTE, to, m->tag, comm, &requests[requested++]);
        } else {
            memset(m->bytes, 0xee, (size_t)m->length + 1);
            MPI_Irecv(m->bytes, m->length, MPI_BYTE, source, m->tag, comm, &requests[requested++]);
        }
    }
    MPI_Waitall(requested, requests, statuses);
    for (int i = 0; i < requested; i++) {
        struct message *m = &all[from[i]];
        int got;
        MPI_Get_count(&statuses[i], MPI_BYTE, &got);
        if (m->to == rank && got != m->length)
            fail("a message of another length", m, round);
        for (int at = 0; m->to == rank && at < m->length; at++)
            if (m->bytes[at] != byte(m, round, at))
                fail("a wrong byte", m, round);
        free(m->bytes);
    }
}

int main(int argc, char **argv) {
    MPI_Comm comms[COMMS] = {MPI_COMM_WORLD};
    long rounds = 0;
    int goes_on = 1, sum;
    if (argc < 3)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d, process %d\n", rank, (int)getpid());
    fflush(stdout);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comms[2]);
    state = strtoull(argv[2], NULL, 10);
    double end = MPI_Wtime() + atof(argv[1]);
    for (; goes_on; rounds++) {
        play(rounds, comms);
        int mine = rank == 0 ? MPI_Wtime() < end : 0, one = rank + 1;
        MPI_Bcast(rank == 0 ? &mine : &goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        goes_on = rank == 0 ? mine : goes_on;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[below(COMMS)]);
        if (sum != size * (size + 1) / 2)
            MPI_Abort(MPI_COMM_WORLD, 8);
    }
    if (rank == 0)
        printf("all went well: %ld rounds\n", rounds);
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
    MPI_Finalize();
    return 0;
}
