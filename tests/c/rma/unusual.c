/* What is legal and rare: types that go backwards, more types than a target keeps, absolute addresses on either side, counts of zero and
 * MPI_PROC_NULL, every end of a request, elements on no boundary, windows of nothing and of one rank; and what is refused. */
// args: create
// args: allocate
// args: shared
// args: dynamic
// args: create rc
// args: create rd
#include "tern_test.h"

#include <complex.h>

enum { BYTES = 1 << 20, MANY = 80, REQUESTS = 8 };

static char *base;
static MPI_Win win;
static MPI_Aint at; /* where the window of the next rank begins */
static MPI_Aint first; /* and that of rank 0 */
static int next, last, is_dynamic;
static int out[200], in[200];

static int *cells(void) {
    return (int *)base;
}

static int of_last(int i) {
    return last * 1000 + i;
}

static void clear(void) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memset(base, 0, BYTES);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Whether all ranks share memory, without which there is no window of that kind. */
static int all_share(void) {
    MPI_Comm host;
    int here;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_size(host, &here));
    OK(MPI_Comm_free(&host));
    return here == t_size;
}

static void make(const char *kind) {
    MPI_Aint own = 0, *all = t_alloc(t_size * sizeof own);
    if (strcmp(kind, "allocate") == 0) {
        OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    } else if (strcmp(kind, "shared") == 0) {
        OK(MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    } else {
        base = t_alloc(BYTES);
        if (strcmp(kind, "create") == 0) {
            OK(MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        } else {
            is_dynamic = 1;
            OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            OK(MPI_Win_attach(win, base + BYTES / 2, BYTES / 2));
            OK(MPI_Win_attach(win, base, 202)); /* what touches is one */
            OK(MPI_Win_attach(win, base + 202, BYTES / 2 - 202));
            OK(MPI_Get_address(base, &own));
        }
    }
    OK(MPI_Allgather(&own, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD));
    at = all[next], first = all[0];
    free(all);
    clear();
}

/* Element 0 of these types is their last in memory. */
static void backwards(void) {
    MPI_Datatype every_second, shifted;
    int fetched[20];
    OK(MPI_Type_vector(10, 1, -2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(out + 100, 1, every_second, next, at + 400, 1, every_second, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 19; i++)
        CHECK_AT(i, cells()[100 - i], i % 2 ? 0 : of_last(100 - i));
    OK(MPI_Get(in + 50, 1, every_second, next, at + 400, 1, every_second, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int i = 0; i < 10; i++)
        CHECK_AT(i, in[50 - 2 * i], t_rank * 1000 + 100 - 2 * i);

    /* The second one lies in the gaps of the first, an element before it. */
    OK(MPI_Type_create_resized(every_second, 0, -(MPI_Aint)sizeof(int), &shifted));
    OK(MPI_Type_commit(&shifted));
    clear();
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(out + 100, 2, shifted, next, at + 400, 2, shifted, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 20; i++)
        CHECK_AT(i, cells()[100 - i], of_last(100 - i));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(out + 100, 2, shifted, fetched, 20, MPI_INT, next, at + 400, 2, shifted, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int i = 0; i < 20; i++) {
        CHECK_AT(i, fetched[i], t_rank * 1000 + (i < 10 ? 100 - 2 * i : 99 - 2 * (i - 10)));
        CHECK_AT(i, cells()[100 - i], 2 * of_last(100 - i));
    }
    OK(MPI_Type_free(&every_second));
    OK(MPI_Type_free(&shifted));
}

/* Each is new to the target, which keeps 64, and has more runs than an adapter is given. */
static void many_types(void) {
    clear();
    for (int number = 1; number <= MANY; number++) {
        MPI_Datatype type;
        int count = 20 + number % 3;
        OK(MPI_Type_vector(count, 1, number + 1, MPI_INT, &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(out, count, MPI_INT, next, at, 1, type, win));
        OK(MPI_Type_free(&type));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        for (int i = 0; i < count; i++)
            CHECK_AT(i, cells()[i * (number + 1)], of_last(i));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void absolute(void) {
    MPI_Datatype here;
    MPI_Aint places[2];
    int lengths[2] = {3, 2};
    OK(MPI_Get_address(out + 5, &places[0]));
    OK(MPI_Get_address(out + 50, &places[1]));
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &here));
    OK(MPI_Type_commit(&here));
    clear();
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    OK(MPI_Put(MPI_BOTTOM, 1, here, next, at, 5, MPI_INT, win));
    OK(MPI_Win_flush_local(next, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 5; i++)
        CHECK_AT(i, cells()[i], of_last(i < 3 ? 5 + i : 50 + i - 3));
    OK(MPI_Type_free(&here));
    if (!is_dynamic)
        return;
    MPI_Datatype there;
    MPI_Aint addresses[2] = {at + 64, at + 256};
    OK(MPI_Type_create_hindexed(2, lengths, addresses, MPI_INT, &there));
    OK(MPI_Type_commit(&there));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    OK(MPI_Put(out, 5, MPI_INT, next, (MPI_Aint)MPI_BOTTOM, 1, there, win));
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(cells()[16], of_last(0));
    CHECK_EQ(cells()[65], of_last(4));
    OK(MPI_Type_free(&there));
}

static void nothing(void) {
    int x = 3, y = 4, z = 5;
    MPI_Request request;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    OK(MPI_Put(NULL, 0, MPI_INT, next, at + 5, 0, MPI_INT, win));
    OK(MPI_Get(NULL, 0, MPI_INT, next, at + BYTES, 0, MPI_INT, win));
    OK(MPI_Accumulate(NULL, 0, MPI_INT, next, at, 0, MPI_INT, MPI_SUM, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_INT, NULL, 0, MPI_INT, next, at, 0, MPI_INT, MPI_SUM, win));
    OK(MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    OK(MPI_Get(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    OK(MPI_Accumulate(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&x, &y, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win));
    OK(MPI_Compare_and_swap(&x, &y, &z, MPI_INT, MPI_PROC_NULL, 0, win));
    OK(MPI_Get_accumulate(&x, 1, MPI_INT, &y, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_NO_OP, win));
    OK(MPI_Win_flush(MPI_PROC_NULL, win));
    OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
    OK(MPI_Rget(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock(next, win));
    CHECK_EQ(x, 3);
    CHECK_EQ(y, 4);
    CHECK_EQ(z, 5);
}

/* Tested, waited for, cancelled in vain (MPI 5.0 section 12.3.5) and given up. */
static void requests(void) {
    MPI_Request request[REQUESTS];
    int are_done = 0;
    clear();
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < REQUESTS; i++)
        OK(MPI_Rput(out + i, 1, MPI_INT, next, at + 4 * i, 1, MPI_INT, win, &request[i]));
    while (!are_done)
        OK(MPI_Testall(REQUESTS, request, &are_done, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Rget(in, REQUESTS, MPI_INT, next, at, REQUESTS, MPI_INT, win, request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    for (int i = 0; i < REQUESTS; i++)
        CHECK_AT(i, in[i], out[i]);
    OK(MPI_Rput(out + 11, 1, MPI_INT, next, at + 44, 1, MPI_INT, win, request));
    OK(MPI_Request_free(request));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(cells()[11], of_last(11));
}

static void no_boundary(void) {
    double half = 1.5, sum;
    long double two = 2, before = -1;
    double _Complex factor = 1;
    clear();
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 10; i++)
        OK(MPI_Accumulate(&half, 1, MPI_DOUBLE, 0, first + 3, 1, MPI_DOUBLE, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&two, &before, MPI_LONG_DOUBLE, next, at + 64, MPI_SUM, win));
    OK(MPI_Accumulate(&factor, 1, MPI_C_DOUBLE_COMPLEX, 0, first + 129, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(before == 0 && *(long double *)(base + 64) == 2);
    if (t_rank == 0) {
        memcpy(&sum, base + 3, sizeof sum);
        CHECK(sum == t_size * 15.0);
        memcpy(&factor, base + 129, sizeof factor);
        CHECK(creal(factor) == t_size && cimag(factor) == 0);
    }
}

/* Memory that is attached in pieces is written by one operation, also around what is not. */
static void apart(void) {
    clear();
    OK(MPI_Win_detach(win, base + 202));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Datatype around;
    OK(MPI_Type_create_hindexed(2, (int[]){50, 1}, (MPI_Aint[]){0, BYTES / 2}, MPI_INT, &around));
    OK(MPI_Type_commit(&around));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(out, 51, MPI_INT, next, at, 1, around, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Put(out, 51, MPI_INT, next, at, 51, MPI_INT, win));
    FAILS(MPI_Win_flush(next, win), MPI_ERR_RMA_RANGE);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < 50; i++)
        CHECK_AT(i, cells()[i], of_last(i));
    CHECK_EQ(cells()[BYTES / 2 / sizeof(int)], of_last(50));
    OK(MPI_Type_free(&around));
    OK(MPI_Win_detach(win, base));
    OK(MPI_Win_detach(win, base + BYTES / 2));
}

static void of_nothing(void) {
    MPI_Win other;
    char *memory;
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other));
    OK(MPI_Win_fence(0, other));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, other));
    OK(MPI_Win_free(&other));
    OK(MPI_Win_allocate(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &other));
    OK(MPI_Win_fence(0, other));
    OK(MPI_Win_free(&other));
    OK(MPI_Win_allocate(t_rank ? 0 : 64, 8, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &other));
    OK(MPI_Win_free(&other));
    FAILS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &other), MPI_ERR_COMM);
    if (t_size < 2)
        return;
    MPI_Comm half, between;
    OK(MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, t_rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - t_rank % 2, 3, &between));
    OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    FAILS(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, between, &other), MPI_ERR_COMM);
    FAILS(MPI_Win_allocate(8, 1, MPI_INFO_NULL, between, &memory, &other), MPI_ERR_COMM);
    FAILS(MPI_Win_create_dynamic(MPI_INFO_NULL, between, &other), MPI_ERR_COMM);
    FAILS(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, between, &memory, &other), MPI_ERR_COMM);
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "create";
    if (argc > 2) {
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
    }
    t_begin(&argc, &argv);
    next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    for (int i = 0; i < 200; i++)
        out[i] = t_rank * 1000 + i;
    if (strcmp(kind, "shared") == 0 && !all_share())
        kind = "allocate";
    make(kind);
    backwards();
    many_types();
    absolute();
    nothing();
    requests();
    no_boundary();
    if (is_dynamic)
        apart();
    OK(MPI_Win_free(&win));
    of_nothing();
    if (strcmp(kind, "create") == 0 || is_dynamic)
        free(base);
    return t_end();
}
