/* Counts of the large forms that are negative or beyond what any memory has are errors that name the count, in every chapter;
 * and so many of a datatype without data are nothing. */
// np: 1,2
// not-on: mpich (looks at few of them)
// not-on: ompi (has no large counts)
#include "tern_test.h"

#include <unistd.h>

enum { ROOM = 8 };
static int a[64], b[64];
static MPI_Count counts[ROOM], ones[ROOM];
static MPI_Aint places[ROOM];
static MPI_Datatype types[ROOM];
static MPI_Request request;
static MPI_Status status;

/* The error of a call with `count`, and of its non-blocking and persistent forms. */
#define EACH(Name, name, ...)                                                                       \
    do {                                                                                            \
        FAILS(MPI_##Name##_c(__VA_ARGS__), MPI_ERR_COUNT);                                          \
        FAILS(MPI_I##name##_c(__VA_ARGS__, &request), MPI_ERR_COUNT);                               \
        FAILS(MPI_##Name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &request), MPI_ERR_COUNT);            \
    } while (0)
/* As above, of sends and receives. */
#define SENDS(Name, name, ...)                                                                      \
    do {                                                                                            \
        FAILS(MPI_##Name##_c(__VA_ARGS__), MPI_ERR_COUNT);                                          \
        FAILS(MPI_I##name##_c(__VA_ARGS__, &request), MPI_ERR_COUNT);                               \
        FAILS(MPI_##Name##_init_c(__VA_ARGS__, &request), MPI_ERR_COUNT);                           \
    } while (0)

static void messages(MPI_Count many) {
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Message message;
    SENDS(Send, send, a, many, MPI_INT, 0, 0, w);
    SENDS(Bsend, bsend, a, many, MPI_INT, 0, 0, w);
    SENDS(Ssend, ssend, a, many, MPI_INT, 0, 0, w);
    SENDS(Rsend, rsend, a, many, MPI_INT, 0, 0, w);
    FAILS(MPI_Recv_c(a, many, MPI_INT, 0, 0, w, &status), MPI_ERR_COUNT);
    FAILS(MPI_Irecv_c(a, many, MPI_INT, 0, 0, w, &request), MPI_ERR_COUNT);
    FAILS(MPI_Recv_init_c(a, many, MPI_INT, 0, 0, w, &request), MPI_ERR_COUNT);
    FAILS(MPI_Sendrecv_c(a, many, MPI_INT, 0, 0, b, 1, MPI_INT, 0, 0, w, &status), MPI_ERR_COUNT);
    FAILS(MPI_Sendrecv_c(a, 1, MPI_INT, 0, 0, b, many, MPI_INT, 0, 0, w, &status), MPI_ERR_COUNT);
    FAILS(MPI_Isendrecv_c(a, many, MPI_INT, 0, 0, b, 1, MPI_INT, 0, 0, w, &request), MPI_ERR_COUNT);
    FAILS(MPI_Isendrecv_c(a, 1, MPI_INT, 0, 0, b, many, MPI_INT, 0, 0, w, &request), MPI_ERR_COUNT);
    FAILS(MPI_Sendrecv_replace_c(a, many, MPI_INT, 0, 0, 0, 0, w, &status), MPI_ERR_COUNT);
    FAILS(MPI_Isendrecv_replace_c(a, many, MPI_INT, 0, 0, 0, 0, w, &request), MPI_ERR_COUNT);
    FAILS(MPI_Psend_init(a, 2, many, MPI_INT, 0, 0, w, MPI_INFO_NULL, &request), MPI_ERR_COUNT);
    FAILS(MPI_Precv_init(a, 2, many, MPI_INT, 0, 0, w, MPI_INFO_NULL, &request), MPI_ERR_COUNT);
    /* What was refused is there still. */
    OK(MPI_Isend(a, 1, MPI_INT, t_rank, 9, w, &request));
    OK(MPI_Mprobe(t_rank, 9, w, &message, &status));
    FAILS(MPI_Mrecv_c(b, many, MPI_INT, &message, &status), MPI_ERR_COUNT);
    MPI_Request other;
    FAILS(MPI_Imrecv_c(b, many, MPI_INT, &message, &other), MPI_ERR_COUNT);
    OK(MPI_Mrecv_c(b, 1, MPI_INT, &message, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void collectives(MPI_Count many) {
    MPI_Comm w = MPI_COMM_WORLD;
    EACH(Bcast, bcast, a, many, MPI_INT, 0, w);
    EACH(Gather, gather, a, many, MPI_INT, b, many, MPI_INT, 0, w);
    EACH(Allgather, allgather, a, many, MPI_INT, b, 1, MPI_INT, w);
    EACH(Allgather, allgather, a, 1, MPI_INT, b, many, MPI_INT, w);
    EACH(Alltoall, alltoall, a, many, MPI_INT, b, many, MPI_INT, w);
    EACH(Allgatherv, allgatherv, a, 1, MPI_INT, b, counts, places, MPI_INT, w);
    EACH(Alltoallv, alltoallv, a, counts, places, MPI_INT, b, ones, places, MPI_INT, w);
    EACH(Alltoallv, alltoallv, a, ones, places, MPI_INT, b, counts, places, MPI_INT, w);
    EACH(Alltoallw, alltoallw, a, counts, places, types, b, ones, places, types, w);
    EACH(Reduce, reduce, a, b, many, MPI_INT, MPI_SUM, 0, w);
    EACH(Allreduce, allreduce, a, b, many, MPI_INT, MPI_SUM, w);
    EACH(Reduce_scatter, reduce_scatter, a, b, counts, MPI_INT, MPI_SUM, w);
    EACH(Reduce_scatter_block, reduce_scatter_block, a, b, many, MPI_INT, MPI_SUM, w);
    EACH(Scan, scan, a, b, many, MPI_INT, MPI_SUM, w);
    EACH(Exscan, exscan, a, b, many, MPI_INT, MPI_SUM, w);
    FAILS(MPI_Reduce_local_c(a, b, many, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
    if (t_size > 1)
        return; /* of these only some ranks have an error */
    EACH(Gatherv, gatherv, a, 1, MPI_INT, b, counts, places, MPI_INT, 0, w);
    EACH(Scatter, scatter, a, many, MPI_INT, b, 1, MPI_INT, 0, w);
    EACH(Scatterv, scatterv, a, counts, places, MPI_INT, b, 1, MPI_INT, 0, w);
}

/* What a constructor says of counts that are negative, and of such that no size holds. */
static void datatypes(MPI_Count many) {
    const int want = many < 0 ? MPI_ERR_COUNT : MPI_ERR_VALUE_TOO_LARGE;
    MPI_Count at[2] = {0, 9}, lengths[2] = {1, many}, position = 0, size;
    MPI_Datatype type;
    FAILS(MPI_Type_contiguous_c(many, MPI_INT, &type), want);
    FAILS(MPI_Type_vector_c(many, 1, 1, MPI_INT, &type), want);
    FAILS(MPI_Type_vector_c(2, many, 1, MPI_INT, &type), want);
    FAILS(MPI_Type_create_hvector_c(many, 1, 4, MPI_INT, &type), want);
    FAILS(MPI_Type_create_hvector_c(2, many, 4, MPI_INT, &type), want);
    FAILS_EITHER(MPI_Type_indexed_c(2, lengths, at, MPI_INT, &type), want, many < 0 ? MPI_ERR_ARG : want);
    FAILS_EITHER(MPI_Type_create_hindexed_c(2, lengths, at, MPI_INT, &type), want, many < 0 ? MPI_ERR_ARG : want);
    FAILS_EITHER(MPI_Type_create_indexed_block_c(2, many, at, MPI_INT, &type), want, many < 0 ? MPI_ERR_ARG : want);
    FAILS_EITHER(MPI_Type_create_hindexed_block_c(2, many, at, MPI_INT, &type), want, many < 0 ? MPI_ERR_ARG : want);
    FAILS_EITHER(MPI_Type_create_struct_c(2, lengths, at, types, &type), want, many < 0 ? MPI_ERR_ARG : want);
    FAILS(MPI_Pack_c(a, many, MPI_INT, b, sizeof b, &position, MPI_COMM_SELF), MPI_ERR_COUNT);
    FAILS(MPI_Unpack_c(a, sizeof a, &position, b, many, MPI_INT, MPI_COMM_SELF), MPI_ERR_COUNT);
    FAILS(MPI_Pack_size_c(many, MPI_INT, MPI_COMM_SELF, &size), MPI_ERR_COUNT);
    FAILS(MPI_Pack_external_c("external32", a, many, MPI_INT, b, sizeof b, &position), MPI_ERR_COUNT);
    FAILS(MPI_Unpack_external_c("external32", a, sizeof a, &position, b, many, MPI_INT), MPI_ERR_COUNT);
    FAILS(MPI_Pack_external_size_c("external32", many, MPI_INT, &size), MPI_ERR_COUNT);
    CHECK_EQ(position, 0);
    FAILS(MPI_Status_set_elements_c(&status, MPI_INT, many), MPI_ERR_COUNT);
    FAILS(MPI_Status_set_elements_x(&status, MPI_INT, many), MPI_ERR_COUNT);
}

static void windows(MPI_Count many) {
    MPI_Win win;
    OK(MPI_Win_create_c(a, sizeof a, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, win));
    FAILS(MPI_Put_c(b, many, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    FAILS(MPI_Put_c(b, 1, MPI_INT, 0, 0, many, MPI_INT, win), MPI_ERR_COUNT);
    FAILS(MPI_Get_c(b, many, MPI_INT, 0, 0, many, MPI_INT, win), MPI_ERR_COUNT);
    FAILS(MPI_Accumulate_c(b, many, MPI_INT, 0, 0, many, MPI_INT, MPI_SUM, win), MPI_ERR_COUNT);
    FAILS(MPI_Get_accumulate_c(a, 1, MPI_INT, b, many, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win), MPI_ERR_COUNT);
    FAILS(MPI_Rput_c(b, many, MPI_INT, 0, 0, many, MPI_INT, win, &request), MPI_ERR_COUNT);
    FAILS(MPI_Rget_c(b, many, MPI_INT, 0, 0, many, MPI_INT, win, &request), MPI_ERR_COUNT);
    FAILS(MPI_Raccumulate_c(b, many, MPI_INT, 0, 0, many, MPI_INT, MPI_SUM, win, &request), MPI_ERR_COUNT);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

static void files(MPI_Count many) {
    char name[100];
    MPI_File file;
    snprintf(name, sizeof name, "/tmp/tern-large-counts-%d-%d", (int)getpid(), t_size);
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    FAILS(MPI_File_write_c(file, a, many, MPI_INT, &status), MPI_ERR_COUNT);
    FAILS(MPI_File_read_at_c(file, 0, a, many, MPI_INT, &status), MPI_ERR_COUNT);
    FAILS(MPI_File_write_shared_c(file, a, many, MPI_INT, &status), MPI_ERR_COUNT);
    FAILS(MPI_File_iwrite_at_c(file, 0, a, many, MPI_INT, &request), MPI_ERR_COUNT);
    FAILS(MPI_File_iread_shared_c(file, a, many, MPI_INT, &request), MPI_ERR_COUNT);
    if (t_size == 1) { /* of these all ranks are part */
        FAILS(MPI_File_write_all_c(file, a, many, MPI_INT, &status), MPI_ERR_COUNT);
        FAILS(MPI_File_iread_at_all_c(file, 0, a, many, MPI_INT, &request), MPI_ERR_COUNT);
        FAILS(MPI_File_read_ordered_c(file, a, many, MPI_INT, &status), MPI_ERR_COUNT);
        FAILS(MPI_File_write_all_begin_c(file, a, many, MPI_INT), MPI_ERR_COUNT);
    }
    /* Nothing has moved. */
    MPI_Offset place = -1, largest = INT64_MAX;
    OK(MPI_File_get_position(file, &place));
    CHECK_EQ(place, 0);
    OK(MPI_File_get_position_shared(file, &place));
    CHECK_EQ(place, 0);
    OK(MPI_File_seek(file, largest, MPI_SEEK_SET));
    SAYS(MPI_File_seek(file, 1, MPI_SEEK_CUR), MPI_ERR_ARG, "`offset` is 1", "beyond");
    FAILS(MPI_File_write_c(file, a, 1, MPI_INT, &status), MPI_ERR_ARG);
    OK(MPI_File_close(&file));
}

/* 2^40 of a datatype without data are no bytes, and no time. */
static void nothing(void) {
    const MPI_Count many = (MPI_Count)1 << 40;
    const int other = t_size - 1 - t_rank;
    MPI_Count count = -1, position = 0;
    MPI_Datatype empty, type;
    MPI_Comm w = MPI_COMM_WORLD;
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    OK(MPI_Type_commit(&empty));
    for (int i = 0; i < ROOM; i++)
        counts[i] = many, types[i] = empty;
    memset(b, 7, sizeof b);
    OK(MPI_Sendrecv_c(a, many, empty, other, 0, b, many, empty, other, 0, w, &status));
    OK(MPI_Get_count_c(&status, empty, &count));
    CHECK_EQ(count, 0);
    OK(MPI_Bcast_c(b, many, empty, 0, w));
    OK(MPI_Allgather_c(a, many, empty, b, many, empty, w));
    OK(MPI_Alltoallv_c(a, counts, places, empty, b, counts, places, empty, w));
    OK(MPI_Alltoallw_c(a, counts, places, types, b, counts, places, types, w));
    OK(MPI_Pack_c(a, many, empty, b, sizeof b, &position, w));
    CHECK_EQ(position, 0);
    OK(MPI_Type_vector_c(many, many, many, empty, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_size_c(type, &count));
    CHECK_EQ(count, 0);
    OK(MPI_Sendrecv_c(a, many, type, other, 0, b, 1, type, other, 0, w, &status));
    OK(MPI_Type_free(&type));
    /* as many with data, of which none is sent */
    OK(MPI_Type_vector_c(many, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_size_c(type, &count));
    CHECK_EQ(count, 4 * many);
    OK(MPI_Send_c(a, 1, type, MPI_PROC_NULL, 0, w));
    OK(MPI_Bcast_c(b, 0, type, 0, w));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&empty));
    CHECK_UNTOUCHED(b, sizeof b, 7);
}

int main(int argc, char **argv) {
    const MPI_Count wrong[3] = {-1, INT64_MAX, (MPI_Count)1 << 62};
    t_begin(&argc, &argv);
    for (int w = 0; w < 3; w++) {
        for (int i = 0; i < ROOM; i++)
            counts[i] = wrong[w], ones[i] = 1, types[i] = MPI_INT;
        messages(wrong[w]);
        collectives(wrong[w]);
        datatypes(wrong[w]);
        windows(wrong[w]);
        files(wrong[w]);
    }
    SAYS(MPI_Send_c(a, -5, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "`count` is -5");
    SAYS(MPI_Sendrecv_c(a, 1, MPI_INT, 0, 0, b, INT64_MAX, MPI_INT, 0, 0, MPI_COMM_WORLD, &status), MPI_ERR_COUNT, "`recvbuf`",
         "9223372036854775807 elements");
    SAYS(MPI_Allgather_c(a, 1, MPI_INT, b, -5, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT, "`recvcount` is -5");
    SAYS(MPI_Alltoallv_c(a, ones, places, MPI_INT, b, (MPI_Count[ROOM]){-5, -5}, places, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT,
         "`recvcounts", "-5");
    nothing();
    return t_end();
}
