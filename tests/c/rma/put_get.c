/* Put, get and fence in windows of each kind: every rank writes to every rank
 * and reads back what all others wrote; strides on the target's side, lengths
 * from nothing to more than a message takes at once. */
// args: create
// args: allocate
// args: shared
// args: dynamic
#include "tern_test.h"

enum { EACH = 1 << 16 };

static MPI_Win make(const char *kind, MPI_Aint bytes, char **base, MPI_Aint *at) {
    MPI_Win win;
    if (strcmp(kind, "create") == 0) {
        *base = t_alloc(bytes);
        OK(MPI_Win_create(*base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else if (strcmp(kind, "allocate") == 0) {
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win));
    } else if (strcmp(kind, "shared") == 0) {
        int code = MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win);
        if (code != MPI_SUCCESS) {
            FAILS(code, MPI_ERR_RMA_SHARED);
            return MPI_WIN_NULL;
        }
    } else {
        *base = t_alloc(bytes);
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, *base, bytes));
    }
    MPI_Aint mine = 0;
    if (strcmp(kind, "dynamic") == 0)
        OK(MPI_Get_address(*base, &mine));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    return win;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const char *kind = argc > 1 ? argv[1] : "create";
    MPI_Aint *at = t_alloc(sizeof *at * t_size);
    char *base, *back = t_alloc(EACH), *out = t_alloc(EACH);
    MPI_Win win = make(kind, (MPI_Aint)EACH * t_size, &base, at);
    if (win == MPI_WIN_NULL)
        return t_end();
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    const int lengths[] = {0, 1, 8, 100, 4096, 5000, EACH};
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        int length = lengths[n];
        memset(base, 0x55, (size_t)EACH * t_size);
        OK(MPI_Win_fence(0, win));
        for (int to = 0; to < t_size; to++) {
            t_fill(out, length, t_rank * 100 + to);
            OK(MPI_Put(out, length, MPI_BYTE, to, at[to] + (MPI_Aint)t_rank * EACH, length, MPI_BYTE, win));
            if (to + 1 < t_size) /* the buffer is used again */
                OK(MPI_Win_fence(0, win));
        }
        OK(MPI_Win_fence(0, win));
        for (int from = 0; from < t_size; from++) {
            CHECK_FILL(base + (size_t)from * EACH, length, from * 100 + t_rank);
            CHECK_UNTOUCHED(base + (size_t)from * EACH + length, EACH - length, 0x55);
        }
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        int next = (t_rank + 1) % t_size;
        for (int row = 0; row < t_size; row++) {
            memset(back, 0, EACH);
            OK(MPI_Get(back, length, MPI_BYTE, next, at[next] + (MPI_Aint)row * EACH, length, MPI_BYTE, win));
            OK(MPI_Win_fence(0, win));
            CHECK_FILL(back, length, row * 100 + next);
        }
    }
    /* Every second int of the target, from ints that lie together, and back. */
    MPI_Datatype odd;
    OK(MPI_Type_vector(100, 1, 2, MPI_INT, &odd));
    OK(MPI_Type_commit(&odd));
    memset(base, 0, (size_t)EACH * t_size);
    OK(MPI_Win_fence(0, win));
    int numbers[100], found[200], to = (t_rank + 1) % t_size;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++)
            numbers[i] = t_rank * 1000 + i + round;
        OK(MPI_Put(numbers, 100, MPI_INT, to, at[to] + 4, 1, odd, win));
        OK(MPI_Win_fence(0, win));
        int from = (t_rank + t_size - 1) % t_size;
        for (int i = 0; i < 100; i++) {
            CHECK_AT(i, ((int *)base)[2 * i + 1], from * 1000 + i + round);
            CHECK_AT(i, ((int *)base)[2 * i], 0);
        }
        memset(found, 0, sizeof found);
        OK(MPI_Get(found, 1, odd, to, at[to] + 4, 1, odd, win));
        OK(MPI_Win_fence(0, win));
        for (int i = 0; i < 100; i++)
            CHECK_AT(i, found[2 * i], numbers[i]);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Type_free(&odd));
    if (strcmp(kind, "dynamic") == 0)
        OK(MPI_Win_detach(win, base));
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    return t_end();
}
