/* Collective accesses with every way of moving the bytes: predicted, two phases forced with few and many owners and
 * with a small buffer, forbidden, atomic. Random pieces against a map of the file's bytes. */
#include "file_test.h"

enum { ROUNDS = 6, BLOCKS = 40, SIZE = 1 << 17 };

static int zeros = 0;

static MPI_Info hints(const char *buffering, const char *nodes, const char *bytes) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    if (buffering)
        OK(MPI_Info_set(info, "collective_buffering", buffering));
    if (nodes)
        OK(MPI_Info_set(info, "cb_nodes", nodes));
    if (bytes)
        OK(MPI_Info_set(info, "cb_buffer_size", bytes));
    return info;
}

/* Blocks dealt to ranks at random: the same on every rank. */
static void deal(t_rng *rng, int *owner, int *len) {
    for (int i = 0; i < BLOCKS * t_size; i++) {
        owner[i] = (int)t_below(rng, t_size + 1); /* t_size: a hole */
        len[i] = 1 + (int)t_below(rng, i % 5 ? 60 : 600);
    }
}

static void write_as(MPI_File file, uint64_t way, const unsigned char *mine, const unsigned char *spread, int bytes,
                     MPI_Datatype memory) {
    MPI_Status status;
    int half = bytes / 2;
    switch (way) {
    case 0:
        OK(MPI_File_write_all(file, spread, bytes ? 1 : 0, memory, &status));
        CHECK_COUNT(status, MPI_BYTE, bytes);
        break;
    case 1:
        OK(MPI_File_write_at_all(file, 0, mine, half, MPI_BYTE, &status));
        CHECK_COUNT(status, MPI_BYTE, half);
        OK(MPI_File_write_at_all(file, half, mine + half, bytes - half, MPI_BYTE, &status));
        break;
    case 2:
        OK(MPI_File_write_all_begin(file, spread, bytes ? 1 : 0, memory));
        OK(MPI_File_write_all_end(file, spread, &status));
        CHECK_COUNT(status, MPI_BYTE, bytes);
        break;
    default: {
        MPI_Request request;
        OK(MPI_File_iwrite_at_all(file, 0, mine, bytes, MPI_BYTE, &request));
        OK(MPI_Wait(&request, &status));
        CHECK_COUNT(status, MPI_BYTE, bytes);
    }
    }
}

/* The whole, holes as zeros, with more asked for than there is. `map` has `end` bytes, in room for `at`. */
static void read_whole(MPI_File file, const unsigned char *map, int at, int end) {
    MPI_Status status;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    unsigned char *whole = t_alloc(at + 100);
    OK(MPI_File_read_at_all(file, t_rank, whole, at + 50, MPI_BYTE, &status));
    if (end > 0)
        CHECK_COUNT(status, MPI_BYTE, end + 3 - t_rank > 0 ? end + 3 - t_rank : 0);
    /* MPI leaves open what is where nobody wrote; zeros, where no write touches what nobody asked for. */
    for (int i = t_rank; i < end + 3; i++)
        if (zeros || (i >= 3 && map[i - 3]))
            CHECK_AT(i, whole[i - t_rank], i < 3 ? 0 : map[i - 3]);
    free(whole);
}

static void round_of(MPI_Info info, int atomic, uint64_t seed) {
    t_rng rng = t_seed(seed);
    int blocks = BLOCKS * t_size;
    int *owner = t_alloc(sizeof(int) * blocks), *len = t_alloc(sizeof(int) * blocks);
    int *lens = t_alloc(sizeof(int) * blocks), *displs = t_alloc(sizeof(int) * blocks);
    unsigned char *map = t_alloc((size_t)blocks * 700), *mine = t_alloc((size_t)blocks * 700);
    deal(&rng, owner, len);
    int at = 0, count = 0, bytes = 0;
    memset(map, 0, (size_t)blocks * 700);
    for (int i = 0; i < blocks; i++) {
        if (owner[i] < t_size)
            for (int k = 0; k < len[i]; k++)
                map[at + k] = t_byte(seed * 1000 + owner[i], at + k) | 1;
        if (owner[i] == t_rank) {
            lens[count] = len[i];
            displs[count++] = at;
            memcpy(mine + bytes, map + at, len[i]);
            bytes += len[i];
        }
        at += len[i];
    }
    int end = 0;
    for (int i = 0; i < at; i++)
        if (map[i])
            end = i + 1;
    MPI_Datatype type, memory;
    OK(MPI_Type_indexed(count, lens, displs, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    /* From memory with gaps on odd ranks. */
    OK(MPI_Type_vector(bytes, 1, t_rank % 2 ? 3 : 1, MPI_BYTE, &memory));
    OK(MPI_Type_commit(&memory));
    int step = t_rank % 2 ? 3 : 1;
    unsigned char *spread = t_alloc((size_t)bytes * 3 + 1), *back = t_alloc((size_t)bytes * 3 + 1);
    memset(spread, 0xcc, (size_t)bytes * 3 + 1);
    for (int i = 0; i < bytes; i++)
        spread[(size_t)i * step] = mine[i];

    if (t_rank == 0)
        unlink(f_name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, f_name, F_NEW, info, &file));
    OK(MPI_File_set_atomicity(file, atomic));
    if (count > 0)
        OK(MPI_File_set_view(file, 3, MPI_BYTE, type, "native", MPI_INFO_NULL));
    else
        OK(MPI_File_set_view(file, 3, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI_Status status;
    write_as(file, seed % 4, mine, spread, bytes, memory);
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(file));
    memset(back, 0xee, (size_t)bytes * 3 + 1);
    OK(MPI_File_read_at_all(file, 0, back, bytes ? 1 : 0, memory, &status));
    CHECK_COUNT(status, MPI_BYTE, bytes);
    for (int i = 0; i < bytes * step; i++)
        CHECK_AT(i, back[i], i % step || i / step >= bytes ? 0xee : mine[i / step]);
    read_whole(file, map, at, end);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&memory));
    free(owner), free(len), free(lens), free(displs), free(map), free(mine), free(spread), free(back);
}

int main(int argc, char **argv) {
    f_begin(&argc, &argv);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    OK(MPI_Get_library_version(version, &length));
    zeros = strstr(version, "Tern") != NULL;
    MPI_Info ways[] = {MPI_INFO_NULL,
                       hints("true", "1", NULL),
                       hints("true", NULL, "4096"),
                       hints("true", "2", "5000"),
                       hints("false", NULL, NULL)};
    for (int way = 0; way < 5; way++)
        for (int i = 0; i < ROUNDS; i++)
            round_of(ways[way], way == 4 && i % 2, 100 * way + i);
    for (int way = 1; way < 5; way++)
        OK(MPI_Info_free(&ways[way]));
    return f_end();
}
