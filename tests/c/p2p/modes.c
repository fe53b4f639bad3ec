/* Every send mode, blocking, non-blocking and persistent, around a ring, for sizes on
 * both sides of every protocol switch. Ready sends happen after a token that the
 * receiver sends once its receive is posted. */
#include "tern_test.h"

static const size_t sizes[] = {0,    1,    7,     8,     47,    48,    49,     63,     64,      65,     255,
                               1000, 4096, 8192, 16383, 16384, 16385, 65536, 100000, 262144, 1048577, 4194304};

enum mode { STANDARD, BUFFERED, SYNCHRONOUS, READY };
enum form { BLOCKING, NONBLOCKING, PERSISTENT };

static void send(enum mode mode, enum form form, const void *buffer, int bytes, int to, int tag) {
    typedef int blocking(const void *, int, MPI_Datatype, int, int, MPI_Comm);
    typedef int starting(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    static blocking *const plain[] = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
    static starting *const immediate[] = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
    static starting *const prepared[] = {MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init};
    MPI_Request request;
    switch (form) {
    case BLOCKING:
        OK(plain[mode](buffer, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD));
        return;
    case NONBLOCKING:
        OK(immediate[mode](buffer, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(request == MPI_REQUEST_NULL);
        return;
    case PERSISTENT:
        OK(prepared[mode](buffer, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(request != MPI_REQUEST_NULL);
        OK(MPI_Request_free(&request));
        CHECK(request == MPI_REQUEST_NULL);
    }
}

static void exchange(enum mode mode, enum form form, size_t bytes, int tag) {
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    unsigned char *out = t_alloc(bytes + 16), *in = t_alloc(bytes + 16);
    t_fill(out, bytes, (uint64_t)t_rank * 1000 + (uint64_t)tag);
    memset(in, 0xAA, bytes + 16);
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(in, (int)bytes + 16, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &request));
    if (mode == READY)
        OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, previous, 9999, NULL, 0, MPI_BYTE, next, 9999, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
    if (mode == BUFFERED)
        OK(MPI_Buffer_flush()); /* earlier messages may still take up the room */
    send(mode, form, out, (int)bytes, next, tag);
    OK(MPI_Wait(&request, &status));
    CHECK_STATUS(status, previous, tag, (int)bytes);
    CHECK_FILL(in, bytes, (uint64_t)previous * 1000 + (uint64_t)tag);
    CHECK_UNTOUCHED(in + bytes, 16, 0xAA);
    CHECK_FILL(out, bytes, (uint64_t)t_rank * 1000 + (uint64_t)tag);
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    size_t room = 2 * ((size_t)4194304 + MPI_BSEND_OVERHEAD) + 4096;
    void *buffer = t_alloc(room);
    OK(MPI_Buffer_attach(buffer, (int)room));
    int tag = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int mode = STANDARD; mode <= READY; mode++)
            for (int form = BLOCKING; form <= PERSISTENT; form++)
                exchange((enum mode)mode, (enum form)form, sizes[s], tag++);
    void *back;
    int size;
    OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == buffer);
    CHECK_EQ(size, (int)room);
    free(buffer);
    return t_end();
}
