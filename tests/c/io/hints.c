/* The hints that the standard reserves (section 14.2.8): those that mean something here have an effect and are told, the others are
 * neither; and what is written in two phases is the same whatever they say. */
// not-on: mpich (tells striping_unit and other hints that do nothing on such files, and no filename)
// not-on: ompi (tells none of most of them)
#include "file_test.h"

static char value[MPI_MAX_INFO_VAL + 1];

/* What the file says of a hint; NULL if nothing. */
static const char *told(MPI_File file, const char *key) {
    MPI_Info info;
    int length = sizeof value, flag = 0;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    OK(MPI_Info_free(&info));
    return flag ? value : NULL;
}

static MPI_Info infos(int count, const char *pairs[][2]) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (int i = 0; i < count; i++)
        OK(MPI_Info_set(info, pairs[i][0], pairs[i][1]));
    return info;
}

/* Pieces of 3 ints in turn, in blocks of some bytes, by few or many ranks and in rounds: always the same file. */
static void written(MPI_File file, int round) {
    enum { PIECES = 2000 };
    static int out[3 * PIECES], in[3 * PIECES];
    MPI_Datatype pieces;
    MPI_Status status;
    OK(MPI_Type_vector(PIECES, 3, 3 * t_size, MPI_INT, &pieces));
    OK(MPI_Type_commit(&pieces));
    OK(MPI_File_set_view(file, 7 + 12 * t_rank, MPI_INT, pieces, "native", MPI_INFO_NULL));
    for (int i = 0; i < 3 * PIECES; i++)
        out[i] = 1000000 * round + 10000 * t_rank + i;
    OK(MPI_File_write_at_all(file, 0, out, 3 * PIECES, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 3 * PIECES);
    OK(MPI_File_read_at_all(file, 0, in, 3 * PIECES, MPI_INT, &status));
    for (int i = 0; i < 3 * PIECES; i++)
        CHECK_AT(i, in[i], out[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 7, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int piece = t_rank; piece < PIECES * t_size; piece += 97) {
        OK(MPI_File_read_at(file, 3 * piece, in, 3, MPI_INT, &status));
        for (int i = 0; i < 3; i++)
            CHECK_AT(piece, in[i], 1000000 * round + 10000 * (piece % t_size) + piece / t_size * 3 + i);
    }
    OK(MPI_Type_free(&pieces));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    const char *given[][2] = {{"cb_nodes", "100"}, {"cb_buffer_size", "8192"}, {"cb_block_size", "1000"},
                              {"collective_buffering", "true"}, {"access_style", "write_once, random"}, {"file_perm", "640"},
                              {"filename", "another"}};
    const char *idle[][2] = {{"chunked", "10,10"}, {"chunked_item", "8"}, {"chunked_size", "5,5"}, {"io_node_list", "a,b"},
                             {"nb_proc", "4"}, {"num_io_nodes", "2"}, {"striping_factor", "4"}, {"striping_unit", "65536"}};
    MPI_Info info = infos(7, given), nothing = infos(8, idle);
    MPI_File file;
    umask(022);
    OK(MPI_File_open(MPI_COMM_WORLD, f_name, F_NEW, info, &file));
    OK(MPI_Info_free(&info));
    OK(MPI_File_set_info(file, nothing));
    for (int i = 0; i < 8; i++)
        CHECK(told(file, idle[i][0]) == NULL);
    CHECK_EQ(atoi(told(file, "cb_nodes")), t_size);
    CHECK_STR(told(file, "cb_buffer_size"), "8192");
    CHECK_STR(told(file, "cb_block_size"), "1000");
    CHECK_STR(told(file, "collective_buffering"), "true");
    CHECK_STR(told(file, "access_style"), "random");
    CHECK_STR(told(file, "file_perm"), "640");
    CHECK_STR(told(file, "filename"), f_name);
    struct stat about;
    CHECK(stat(f_name, &about) == 0 && (about.st_mode & 0777) == 0640);
    written(file, 1);
    /* By the other call that takes hints. */
    const char *later[][2] = {{"cb_nodes", "2"}, {"cb_block_size", "3"}, {"access_style", "sequential"}, {"cb_buffer_size", "none"}};
    info = infos(4, later);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", info));
    OK(MPI_Info_free(&info));
    CHECK_EQ(atoi(told(file, "cb_nodes")), t_size < 2 ? t_size : 2);
    CHECK_STR(told(file, "access_style"), "sequential");
    CHECK_STR(told(file, "cb_buffer_size"), "8192");
    written(file, 2);
    OK(MPI_Info_free(&nothing));
    OK(MPI_File_close(&file));
    return f_end();
}
