/* What Tern's variables say: they count what happens, per session; settings show what is in force. */
// np: 2+
// env: TERN_UNEXPECTED=32M
// env: TERN_COLL_SCATTER=linear
// env: TERN_SHM_DIR=/dev/shm
// not-on: mpich (other variables)
// not-on: ompi (other variables)
#include "tern_test.h"

#include <unistd.h>

#define IS(call, want) CHECK_EQ(call, want)

static MPI_T_pvar_session session;

static MPI_T_pvar_handle watch(MPI_T_pvar_session in, const char *name, int class) {
    int index, count;
    MPI_T_pvar_handle handle;
    IS(MPI_T_pvar_get_index(name, class, &index), MPI_SUCCESS);
    IS(MPI_T_pvar_handle_alloc(in, index, NULL, &handle, &count), MPI_SUCCESS);
    CHECK_EQ(count, 1);
    return handle;
}

static uint64_t value(MPI_T_pvar_session in, MPI_T_pvar_handle handle) {
    uint64_t got = 77;
    IS(MPI_T_pvar_read(in, handle, &got), MPI_SUCCESS);
    return got;
}

static void settings(void) {
    int index, count, choice = -1;
    uint64_t bytes = 0;
    char text[64], name[64];
    MPI_T_cvar_handle handle, freed;
    MPI_T_enum enumtype;
    IS(MPI_T_cvar_get_index("TERN_UNEXPECTED", &index), MPI_SUCCESS);
    IS(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), MPI_SUCCESS);
    IS(MPI_T_cvar_read(handle, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, 32 << 20);
    IS(MPI_T_cvar_write(handle, &bytes), MPI_T_ERR_CVAR_SET_NEVER);
    IS(MPI_T_cvar_read(handle, NULL), MPI_T_ERR_INVALID);
    freed = handle;
    IS(MPI_T_cvar_handle_free(&handle), MPI_SUCCESS);
    IS(MPI_T_cvar_read(freed, &bytes), MPI_T_ERR_INVALID_HANDLE);
    IS(MPI_T_cvar_write(freed, &bytes), MPI_T_ERR_INVALID_HANDLE);
    IS(MPI_T_cvar_handle_free(&freed), MPI_T_ERR_INVALID_HANDLE);
    IS(MPI_T_cvar_get_index("TERN_COLL_SCATTER", &index), MPI_SUCCESS);
    IS(MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, &enumtype, NULL, NULL, NULL, NULL), MPI_SUCCESS);
    IS(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), MPI_SUCCESS);
    IS(MPI_T_cvar_read(handle, &choice), MPI_SUCCESS);
    IS(MPI_T_enum_get_item(enumtype, choice, &choice, name, &(int){sizeof name}), MPI_SUCCESS);
    CHECK_STR(name, "linear");
    IS(MPI_T_enum_get_item(enumtype, -1, &choice, name, &(int){sizeof name}), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_enum_get_info((MPI_T_enum)12345, &count, name, &(int){sizeof name}), MPI_T_ERR_INVALID_HANDLE);
    IS(MPI_T_cvar_get_index("TERN_SHM_DIR", &index), MPI_SUCCESS);
    IS(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), MPI_SUCCESS);
    CHECK_EQ(count, strlen("/dev/shm") + 1);
    IS(MPI_T_cvar_read(handle, text), MPI_SUCCESS);
    CHECK_STR(text, "/dev/shm");
}

static void levels(void) {
    MPI_T_pvar_handle bytes = watch(session, "tern_unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL);
    MPI_T_pvar_handle most = watch(session, "tern_unexpected_bytes_most", MPI_T_PVAR_CLASS_HIGHWATERMARK);
    uint64_t got;
    char data[1000] = {0};
    if (t_rank == 0)
        OK(MPI_Send(data, sizeof data, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
    /* Nobody sends rank 1 anything else before it is through. */
    if (t_rank != 1)
        OK(MPI_Recv(data, 1, MPI_BYTE, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (t_rank == 1) {
        OK(MPI_Probe(0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value(session, bytes) >= sizeof data);
        OK(MPI_Recv(data, sizeof data, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(value(session, bytes), 0);
        CHECK(value(session, most) >= sizeof data);
        for (int to = 0; to < t_size; to++)
            if (to != 1)
                OK(MPI_Send(data, 1, MPI_BYTE, to, 8, MPI_COMM_WORLD));
    }
    IS(MPI_T_pvar_reset(session, most), MPI_T_ERR_PVAR_NO_WRITE);
    IS(MPI_T_pvar_readreset(session, most, &got), MPI_T_ERR_PVAR_NO_ATOMIC);
    IS(MPI_T_pvar_start(session, most), MPI_T_ERR_PVAR_NO_STARTSTOP);
}

/* `times` short messages from rank 0 to rank 1. */
static void send(int times) {
    int number = 0;
    for (int i = 0; i < times; i++) {
        if (t_rank == 0)
            OK(MPI_Send(&number, 1, MPI_INT, 1, 6, MPI_COMM_WORLD));
        if (t_rank == 1)
            OK(MPI_Recv(&number, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

static void counters(void) {
    MPI_T_pvar_session second;
    IS(MPI_T_pvar_session_create(&second), MPI_SUCCESS);
    MPI_T_pvar_handle mine = watch(session, "tern_eager", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle other = watch(second, "tern_eager", MPI_T_PVAR_CLASS_COUNTER);
    int num;
    IS(MPI_T_pvar_get_num(&num), MPI_SUCCESS);
    for (int index = -1; index <= num; index += num + 1)
        IS(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
           MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_event_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    MPI_T_pvar_handle none = MPI_T_PVAR_HANDLE_NULL;
    IS(MPI_T_pvar_handle_alloc(session, num, NULL, &none, &num), MPI_T_ERR_INVALID_INDEX);
    CHECK(none == MPI_T_PVAR_HANDLE_NULL);
    send(3);
    CHECK_EQ(value(session, mine), 0);
    IS(MPI_T_pvar_start(session, mine), MPI_SUCCESS);
    send(5);
    uint64_t sent = t_rank == 0 ? 1 : 0, got = 0, ten = 10;
    CHECK_EQ(value(session, mine), 5 * sent);
    IS(MPI_T_pvar_stop(session, mine), MPI_SUCCESS);
    IS(MPI_T_pvar_start(second, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    send(2);
    CHECK_EQ(value(session, mine), 5 * sent);
    CHECK_EQ(value(second, other), 2 * sent);
    IS(MPI_T_pvar_write(second, other, &ten), MPI_SUCCESS);
    send(1);
    IS(MPI_T_pvar_readreset(second, other, &got), MPI_SUCCESS);
    CHECK_EQ(got, 10 + sent);
    send(4);
    CHECK_EQ(value(second, other), 4 * sent);
    IS(MPI_T_pvar_session_free(&second), MPI_SUCCESS);
    IS(MPI_T_pvar_reset(session, mine), MPI_SUCCESS);
    CHECK_EQ(value(session, mine), 0);
}

/* A long message: whoever copied it, the bytes add up, unless it came in frames or an adapter moved it. */
static void amounts(void) {
    enum { LEN = 1 << 20 };
    MPI_T_pvar_handle pulled = watch(session, "tern_pulled_bytes", MPI_T_PVAR_CLASS_AGGREGATE);
    MPI_T_pvar_handle pushed = watch(session, "tern_pushed_bytes", MPI_T_PVAR_CLASS_AGGREGATE);
    MPI_T_pvar_handle frames = watch(session, "tern_frame_sent", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle registered = watch(session, "tern_cache_miss", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle waited = watch(session, "tern_waited_ns", MPI_T_PVAR_CLASS_TIMER);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    IS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    char *data = t_alloc(LEN);
    t_fill(data, LEN, 3);
    unsigned long long counts[4], sums[4];
    if (t_rank == 0)
        OK(MPI_Send(data, LEN, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
    if (t_rank == 1)
        OK(MPI_Recv(data, LEN, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    counts[0] = value(session, pulled);
    counts[1] = value(session, pushed);
    counts[2] = value(session, frames);
    counts[3] = value(session, registered);
    OK(MPI_Allreduce(counts, sums, 4, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sums[0] + sums[1] == LEN || sums[2] + sums[3] > 0);
    CHECK(t_rank <= 1 || counts[0] + counts[1] == 0);
    /* A sender that comes late shows as time waited at its receiver. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    uint64_t before = value(session, waited);
    if (t_rank == 0) {
        usleep(300000);
        OK(MPI_Send(data, 1, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
    }
    if (t_rank == 1) {
        OK(MPI_Recv(data, 1, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value(session, waited) > before);
    }
    free(data);
}

int main(int argc, char **argv) {
    int provided;
    IS(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    IS(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    MPI_T_pvar_handle early = watch(session, "tern_eager", MPI_T_PVAR_CLASS_COUNTER);
    IS(MPI_T_pvar_start(session, early), MPI_SUCCESS);
    CHECK_EQ(value(session, early), 0);
    /* What was promised to the tool is no matter of MPI's. */
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
    CHECK_EQ(provided, MPI_THREAD_SINGLE);
    t_started();
    CHECK_EQ(value(session, early), 0);
    settings();
    levels();
    counters();
    amounts();
    uint64_t at_end;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    at_end = value(session, early);
    CHECK(t_rank != 0 || at_end >= 15);
    OK(MPI_Finalize());
    CHECK(value(session, early) >= at_end);
    MPI_T_pvar_handle freed = early;
    IS(MPI_T_pvar_handle_free(session, &early), MPI_SUCCESS);
    IS(MPI_T_pvar_read(session, freed, &at_end), MPI_T_ERR_INVALID_HANDLE);
    /* With the last user go its sessions and handles. */
    early = watch(session, "tern_eager", MPI_T_PVAR_CLASS_COUNTER);
    IS(MPI_T_finalize(), MPI_SUCCESS);
    IS(MPI_T_pvar_read(session, early, &at_end), MPI_T_ERR_NOT_INITIALIZED);
    IS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    IS(MPI_T_pvar_read(session, early, &at_end), MPI_T_ERR_INVALID_SESSION);
    IS(MPI_T_finalize(), MPI_SUCCESS);
    IS(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
