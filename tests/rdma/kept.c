/* Long messages from and into the same memory again and again, which has other pages every few rounds: registrations are kept, end with
 * their pages, and none that was kept is stale when it is used. Rank 0 says what this was by the counts of both. */
#define _GNU_SOURCE
#include "../c/tern_test.h"

#include <sys/mman.h>

enum { ROUNDS = 64, BYTES = 1 << 20, COUNTS = 4 };

static const char *const names[COUNTS] = {"tern_cache_hit", "tern_cache_miss", "tern_cache_invalidated", "tern_cache_stale"};

static unsigned char *fresh(unsigned char *where) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0);
    unsigned char *memory = mmap(where, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

/* By turns in a mapping that is another one and in the same. */
static void renew(unsigned char *memory, int round) {
    if (round / 8 % 2)
        CHECK_EQ(madvise(memory, BYTES, MADV_DONTNEED), 0);
    else
        CHECK(fresh(memory) == memory);
}

static unsigned char content(int rank, int round, int at) {
    return (unsigned char)(rank * 91 + round * 7 + at * 13 + at / 256);
}

/* These are counted at this rank from now on. */
static void count(MPI_T_pvar_session *session, MPI_T_pvar_handle *handles) {
    OK(MPI_T_pvar_session_create(session));
    for (int at = 0; at < COUNTS; at++) {
        int index, number;
        OK(MPI_T_pvar_get_index(names[at], MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_handle_alloc(*session, index, NULL, &handles[at], &number));
    }
    OK(MPI_T_pvar_start(*session, MPI_T_PVAR_ALL_HANDLES));
}

int main(int argc, char **argv) {
    int level;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    t_begin(&argc, &argv);
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[COUNTS];
    count(&session, handles);
    int next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    unsigned char *out = fresh(NULL), *in = fresh(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 8 == 7) {
            renew(out, round);
            renew(in, round);
        }
        for (int at = 0; at < BYTES; at++)
            out[at] = content(t_rank, round, at);
        OK(MPI_Sendrecv(out, BYTES, MPI_BYTE, next, 0, in, BYTES, MPI_BYTE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int at = 0; at < BYTES; at++)
            CHECK(in[at] == content(last, round, at));
    }
    uint64_t own[COUNTS], sums[COUNTS];
    for (int at = 0; at < COUNTS; at++)
        OK(MPI_T_pvar_read(session, handles[at], &own[at]));
    OK(MPI_Allreduce(own, sums, COUNTS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    for (int at = 0; at < COUNTS && t_rank == 0; at++)
        printf("%s=%" PRIu64 "\n", names[at], sums[at]);
    CHECK(sums[0] > 0 && sums[2] > 0);
    CHECK_EQ(sums[3], 0);
    return t_end();
}
