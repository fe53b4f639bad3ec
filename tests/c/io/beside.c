/* Non-blocking and split accesses that take long enough to be done beside the application: many at once, in order, into
 * memory with gaps, in other representations; failures are told when they are waited for. */
// np: 1,2,3
// not-on: mpich (5.0.2 ends with an error inside ADIOI_Calc_aggregator)
#include "file_test.h"

#include <sys/resource.h>
#include <signal.h>

enum { MANY = 20, LONG = 1 << 20 };

static int *numbers(int seed, int count) {
    int *made = malloc(count * sizeof *made);
    for (int i = 0; i < count; i++)
        made[i] = seed * 1000003 + i;
    return made;
}

/* More accesses than the library takes at once; each rank has its part of the file. */
static void many(void) {
    enum { COUNT = 700000 };
    MPI_File file = f_open(F_NEW);
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    int *out[MANY], *in[MANY];
    MPI_Offset begin = (MPI_Offset)t_rank * MANY * COUNT * sizeof(int);
    for (int i = 0; i < MANY; i++) {
        out[i] = numbers(t_rank * MANY + i, COUNT);
        OK(MPI_File_iwrite_at(file, begin + (MPI_Offset)i * COUNT * sizeof(int), out[i], COUNT, MPI_INT, &requests[i]));
    }
    OK(MPI_Waitall(MANY, requests, statuses));
    for (int i = 0; i < MANY; i++) {
        CHECK_COUNT(statuses[i], MPI_INT, COUNT);
        in[i] = calloc(COUNT, sizeof(int));
        OK(MPI_File_iread_at(file, begin + (MPI_Offset)i * COUNT * sizeof(int), in[i], COUNT, MPI_INT, &requests[i]));
    }
    for (int left = MANY; left > 0; left--) {
        int index, flag = 0;
        if (left % 2 == 0) {
            OK(MPI_Waitany(MANY, requests, &index, MPI_STATUS_IGNORE));
        } else {
            while (!flag)
                OK(MPI_Testany(MANY, requests, &index, &flag, MPI_STATUS_IGNORE));
        }
        CHECK_AT(index, memcmp(in[index], out[index], COUNT * sizeof(int)), 0);
    }
    for (int i = 0; i < MANY; i++) {
        free(out[i]);
        free(in[i]);
    }
    OK(MPI_File_close(&file));
}

/* Memory with gaps, and a view with gaps; external32 as well; the individual pointer moves when the access begins. */
static void gaps(const char *representation, int atomic) {
    enum { COUNT = 200000 };
    MPI_Datatype spaced, part;
    MPI_File file = f_open(F_NEW);
    OK(MPI_File_set_size(file, 0));
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced));
    OK(MPI_Type_commit(&spaced));
    OK(MPI_Type_create_resized(MPI_INT, 0, t_size * sizeof(int), &part));
    OK(MPI_Type_commit(&part));
    OK(MPI_File_set_view(file, t_rank * sizeof(int), MPI_INT, part, representation, MPI_INFO_NULL));
    OK(MPI_File_set_atomicity(file, atomic));
    int *out = numbers(t_rank, 4 * COUNT), *in = calloc(4 * COUNT, sizeof(int));
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Offset at;
    OK(MPI_File_iwrite(file, out, COUNT, spaced, &requests[0]));
    OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, COUNT);
    OK(MPI_File_iwrite_all(file, out + 2 * COUNT, COUNT, spaced, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    CHECK_COUNT(statuses[1], MPI_INT, COUNT);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_iread_all(file, in, COUNT, spaced, &requests[0]));
    OK(MPI_File_iread(file, in + 2 * COUNT, 2 * COUNT, spaced, &requests[1])); /* the file ends in the middle */
    OK(MPI_Waitall(2, requests, statuses));
    CHECK_COUNT(statuses[0], spaced, COUNT);
    CHECK_COUNT(statuses[1], spaced, COUNT);
    for (int i = 0; i < 4 * COUNT; i++)
        if (in[i] != (i % 2 == 0 ? out[i] : 0)) {
            CHECK_AT(i, in[i], i % 2 == 0 ? out[i] : 0);
            break;
        }
    free(out);
    free(in);
    OK(MPI_Type_free(&part));
    OK(MPI_Type_free(&spaced));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        unlink(f_name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void splits(void) {
    MPI_File file = f_open(F_NEW);
    MPI_Status status;
    int *out = numbers(7 + t_rank, LONG), *in = calloc(LONG, sizeof(int));
    MPI_Offset at = (MPI_Offset)t_rank * LONG * sizeof(int);
    OK(MPI_File_write_at_all_begin(file, at, out, LONG, MPI_INT));
    OK(MPI_File_write_at_all_end(file, out, &status));
    CHECK_COUNT(status, MPI_INT, LONG);
    OK(MPI_File_read_at_all_begin(file, at, in, LONG, MPI_INT));
    OK(MPI_File_read_at_all_end(file, in, &status));
    CHECK_COUNT(status, MPI_INT, LONG);
    CHECK_EQ(memcmp(in, out, LONG * sizeof(int)), 0);
    OK(MPI_File_write_ordered_begin(file, out, LONG, MPI_INT));
    OK(MPI_File_write_ordered_end(file, out, &status));
    CHECK_COUNT(status, MPI_INT, LONG);
    free(out);
    free(in);
    OK(MPI_File_close(&file));
}

/* The system refuses to let the file grow: the access says so when it is waited for, or when it begins; by the error handler of the file. */
static void refused(void) {
    MPI_File file = f_open(F_NEW);
    MPI_Request request = MPI_REQUEST_NULL;
    int class = MPI_SUCCESS, *out = numbers(3, LONG);
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100000;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    int result = MPI_File_iwrite_at(file, 200000, out, LONG, MPI_INT, &request);
    if (result == MPI_SUCCESS)
        result = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    OK(MPI_Error_class(result, &class));
    CHECK(class == MPI_ERR_IO || class == MPI_ERR_NO_SPACE || class == MPI_ERR_QUOTA);
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(out);
    OK(MPI_File_close(&file));
}

/* A request that nobody waits for. */
static void freed(void) {
    MPI_File file = f_open(F_NEW);
    MPI_Request request;
    static int out[LONG];
    OK(MPI_File_iwrite_at(file, (MPI_Offset)t_rank * sizeof out, out, LONG, MPI_INT, &request));
    int flag = 0;
    MPI_Status status;
    while (!flag)
        OK(MPI_Request_get_status(request, &flag, &status));
    CHECK_COUNT(status, MPI_INT, LONG);
    OK(MPI_Request_free(&request));
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    many();
    gaps("native", 0);
    gaps("native", 1);
    gaps("external32", 0);
    splits();
    refused();
    freed();
    return f_end();
}
