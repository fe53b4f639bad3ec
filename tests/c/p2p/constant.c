/* Messages of all lengths from memory that may only be read, as a file that is mapped so: what an adapter writes to is the memory of
 * the other side, so no registration is refused, and nothing that is kept has to go for it. */
// np: 2+
// env: TERN_PROTOCOL=rget
// not-on: mpich (other variables)
// not-on: ompi (other variables)
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../tern_test.h"

enum { ROUNDS = 40, KINDS = 5, MOST = 1 << 20 };

static const int sizes[KINDS] = {200, 4000, 20000, 300000, MOST};

static MPI_T_pvar_session session;
static MPI_T_pvar_handle refused;

/* Counts from here on what adapters do not register. */
static void watch(void) {
    int index, count, provided;
    CHECK_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_get_index("tern_registration_refused", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &refused, &count), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_start(session, refused), MPI_SUCCESS);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    watch();
    unsigned char *out = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(out != MAP_FAILED);
    for (int at = 0; at < MOST; at++)
        out[at] = t_byte(t_rank, at);
    CHECK(mprotect(out, MOST, PROT_READ) == 0);
    unsigned char *in = t_alloc(MOST);
    int next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    for (int round = 0; round < ROUNDS; round++) {
        int n = sizes[round % KINDS];
        memset(in, 0, n);
        OK(MPI_Sendrecv(out, n, MPI_BYTE, next, 0, in, n, MPI_BYTE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_FILL(in, n, last);
    }
    /* What was registered to be read is written to, now that it may be. */
    CHECK(mprotect(out, MOST, PROT_READ | PROT_WRITE) == 0);
    t_fill(in, MOST, t_rank + 100);
    for (int round = 0; round < KINDS; round++) {
        int n = sizes[round];
        OK(MPI_Sendrecv(in, n, MPI_BYTE, next, 0, out, n, MPI_BYTE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_FILL(out, n, last + 100);
    }
    uint64_t count = 77;
    CHECK_EQ(MPI_T_pvar_read(session, refused, &count), MPI_SUCCESS);
    CHECK_EQ(count, 0);
    CHECK_EQ(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
    CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
    free(in);
    munmap(out, MOST);
    return t_end();
}
