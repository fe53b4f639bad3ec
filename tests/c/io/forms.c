/* Every access in its other forms: non-blocking, split, with large counts; hints are reported. */
#include "file_test.h"

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "cb_nodes", "1"));
    OK(MPI_Info_set(info, "access_style", "write_once,random"));
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, f_name, F_NEW, info, &file));
    OK(MPI_Info_free(&info));
    OK(MPI_File_get_info(file, &info));
    char value[MPI_MAX_INFO_VAL + 1];
    int length = sizeof value, flag = 0;
    OK(MPI_Info_get_string(info, "cb_nodes", &length, value, &flag));
    CHECK(flag);
    CHECK_STR(value, "1");
    length = sizeof value;
    OK(MPI_Info_get_string(info, "cb_buffer_size", &length, value, &flag));
    CHECK(flag && atol(value) > 0);
    OK(MPI_Info_free(&info));

    enum { N = 50 };
    int out[N], in[N];
    MPI_Request request[3];
    MPI_Status status;
    MPI_Offset base = (MPI_Offset)t_rank * N, at = -1;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < N; i++)
        out[i] = 1000 * t_rank + i;
#define AGAIN()                                                                \
    do {                                                                       \
        for (int i_ = 0; i_ < N; i_++) {                                       \
            CHECK_AT(i_, in[i_], out[i_]);                                     \
            in[i_] = -1;                                                       \
            out[i_] += 7;                                                      \
        }                                                                      \
    } while (0)
    OK(MPI_File_seek(file, base, MPI_SEEK_SET));
    OK(MPI_File_iwrite(file, out, 10, MPI_INT, &request[0]));
    OK(MPI_File_iwrite(file, out + 10, 20, MPI_INT, &request[1]));
    OK(MPI_File_iwrite_at(file, base + 30, out + 30, N - 30, MPI_INT, &request[2]));
    OK(MPI_Waitall(3, request, MPI_STATUSES_IGNORE));
    OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, base + 30);
    OK(MPI_File_iread_at(file, base, in, N, MPI_INT, &request[0]));
    OK(MPI_Wait(&request[0], &status));
    CHECK_COUNT(status, MPI_INT, N);
    AGAIN();
    OK(MPI_File_write_at_all_begin(file, base, out, N, MPI_INT));
    OK(MPI_File_write_at_all_end(file, out, &status));
    CHECK_COUNT(status, MPI_INT, N);
    OK(MPI_File_read_at_all_begin(file, base, in, N, MPI_INT));
    OK(MPI_File_read_at_all_end(file, in, &status));
    CHECK_COUNT(status, MPI_INT, N);
    AGAIN();
    OK(MPI_File_seek(file, base, MPI_SEEK_SET));
    OK(MPI_File_write_all_begin(file, out, N, MPI_INT));
    OK(MPI_File_write_all_end(file, out, &status));
    OK(MPI_File_seek(file, base, MPI_SEEK_SET));
    OK(MPI_File_read_all_begin(file, in, N, MPI_INT));
    OK(MPI_File_read_all_end(file, in, &status));
    CHECK_COUNT(status, MPI_INT, N);
    AGAIN();
    OK(MPI_File_seek(file, base, MPI_SEEK_SET));
    OK(MPI_File_iwrite_all(file, out, N, MPI_INT, &request[0]));
    OK(MPI_Wait(&request[0], &status));
    CHECK_COUNT(status, MPI_INT, N);
    OK(MPI_File_seek(file, base, MPI_SEEK_SET));
    OK(MPI_File_iread_all(file, in, N, MPI_INT, &request[0]));
    OK(MPI_Wait(&request[0], &status));
    AGAIN();
    OK(MPI_File_iwrite_at_all(file, base, out, N, MPI_INT, &request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    OK(MPI_File_iread_at_all(file, base, in, N, MPI_INT, &request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    AGAIN();
    MPI_Count large = N;
    OK(MPI_File_write_at_c(file, base, out, large, MPI_INT, &status));
    OK(MPI_File_read_at_all_c(file, base, in, large, MPI_INT, &status));
    AGAIN();
    OK(MPI_File_seek(file, base, MPI_SEEK_SET));
    OK(MPI_File_write_c(file, out, large, MPI_INT, &status));
    OK(MPI_File_seek(file, base, MPI_SEEK_SET));
    OK(MPI_File_iread_c(file, in, large, MPI_INT, &request[0]));
    OK(MPI_Wait(&request[0], &status));
    AGAIN();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_write_ordered_begin(file, out, N, MPI_INT));
    OK(MPI_File_write_ordered_end(file, out, &status));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_read_at(file, base, in, N, MPI_INT, &status));
    AGAIN();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    long sum = 0, all = 0;
    OK(MPI_File_iread_shared(file, in, N, MPI_INT, &request[0]));
    OK(MPI_Wait(&request[0], &status));
    CHECK_COUNT(status, MPI_INT, N);
    sum = in[0];
    OK(MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(all, 1000L * t_size * (t_size - 1) / 2 + t_size * (out[0] - 7 - 1000L * t_rank));
    OK(MPI_File_close(&file));
    return f_end();
}
