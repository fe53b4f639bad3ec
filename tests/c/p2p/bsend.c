/* Buffered sends: buffers of the process, of a communicator, automatic ones; attach,
 * detach waits for delivery, flush, exhausted buffers, reuse of freed room. */
#include "tern_test.h"

static int next, previous;

static void fill_and_drain(MPI_Comm comm, int messages, int bytes) {
    unsigned char *data = t_alloc((size_t)bytes);
    for (int i = 0; i < messages; i++) {
        t_fill(data, (size_t)bytes, (uint64_t)(t_rank * 1000 + i));
        OK(MPI_Bsend(data, bytes, MPI_BYTE, next, i, comm));
        memset(data, 0xEE, (size_t)bytes); /* the copy was made */
    }
    for (int i = 0; i < messages; i++) {
        MPI_Status status;
        OK(MPI_Recv(data, bytes, MPI_BYTE, previous, i, comm, &status));
        CHECK_STATUS(status, previous, i, bytes);
        CHECK_FILL(data, bytes, (uint64_t)(previous * 1000 + i));
    }
    free(data);
}

static void of_the_process(void) {
    int room = 10 * (20000 + MPI_BSEND_OVERHEAD), size;
    char *buffer = t_alloc((size_t)room), *back;
    OK(MPI_Buffer_attach(buffer, room));
    for (int round = 0; round < 5; round++) {
        fill_and_drain(MPI_COMM_WORLD, 10, 20000);
        OK(MPI_Buffer_flush());
    }
    MPI_Request request;
    OK(MPI_Buffer_iflush(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == buffer);
    CHECK_EQ(size, room);
    /* None attached: nothing to send from. */
    int value = 1;
    FAILS(MPI_Bsend(&value, 1, MPI_INT, next, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    /* Larger than the buffer. */
    OK(MPI_Buffer_attach(buffer, 1000 + MPI_BSEND_OVERHEAD));
    FAILS(MPI_Bsend(buffer, 5000, MPI_BYTE, next, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Buffer_detach(&back, &size));
    free(buffer);
}

/* Detach returns only when the messages have left: they arrive although the buffer is gone. */
static void detach_delivers(void) {
    enum { BYTES = 300000 };
    int size;
    size_t room = BYTES + MPI_BSEND_OVERHEAD;
    unsigned char *buffer = t_alloc(room), *data = t_alloc(BYTES), *back;
    MPI_Request request;
    OK(MPI_Irecv(data, BYTES, MPI_BYTE, previous, 0, MPI_COMM_WORLD, &request));
    unsigned char *out = t_alloc(BYTES);
    t_fill(out, BYTES, (uint64_t)t_rank);
    OK(MPI_Buffer_attach(buffer, (int)room));
    OK(MPI_Bsend(out, BYTES, MPI_BYTE, next, 0, MPI_COMM_WORLD));
    OK(MPI_Buffer_detach(&back, &size));
    memset(buffer, 0, room);
    free(buffer);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_FILL(data, BYTES, (uint64_t)previous);
    free(out);
    free(data);
}

static void of_a_communicator(void) {
    MPI_Comm comm;
    int room = 4 * (1000 + MPI_BSEND_OVERHEAD), size;
    char *buffer = t_alloc((size_t)room), *back;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_attach_buffer(comm, buffer, room));
    fill_and_drain(comm, 4, 1000);
    OK(MPI_Comm_flush_buffer(comm));
    MPI_Request request;
    OK(MPI_Comm_iflush_buffer(comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* It serves its own communicator only. */
    int value = 1;
    FAILS(MPI_Bsend(&value, 1, MPI_INT, next, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Comm_detach_buffer(comm, &back, &size));
    CHECK(back == buffer);
    CHECK_EQ(size, room);
    free(buffer);
    OK(MPI_Comm_free(&comm));
}

static void automatic(void) {
    void *back;
    int size;
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    fill_and_drain(MPI_COMM_WORLD, 20, 100);
    fill_and_drain(MPI_COMM_WORLD, 5, 1000000);
    OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == MPI_BUFFER_AUTOMATIC);
    CHECK_EQ(size, 0);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    next = (t_rank + 1) % t_size;
    previous = (t_rank + t_size - 1) % t_size;
    of_the_process();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    detach_delivers();
    of_a_communicator();
    automatic();
    return t_end();
}
