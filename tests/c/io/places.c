/* One file that ranks open by names of their own, as hosts with mounts of their own do: TERN_TEST_PLACES, with colons between,
 * in turn. Neighbours' pieces share pages; what each writes stays, and what others have written is seen after MPI_File_sync on both
 * sides (section 14.6.1). All accesses are locked, as they are on NFS. */
// args: pieces
// args: pointer
// args: room
// env: TERN_FILE_LOCKS=always
// not-on: mpich (the setting is Tern's)
// not-on: ompi (the setting is Tern's)
// one-host: the file is one of this host
#include "file_test.h"


enum { PIECE = 100, PIECES = 300, ROUNDS = 12, MOST = 7 };

static char name[600];
static unsigned char mine[PIECE * PIECES], all[MOST * PIECE * PIECES];

/* The name by which this rank knows the file. */
static void find_name(void) {
    const char *places = getenv("TERN_TEST_PLACES"), *plain = getenv("TMPDIR");
    char place[512];
    snprintf(place, sizeof place, "%s", places ? places : plain ? plain : "/tmp");
    int count = 1, number = (int)getpid();
    for (char *at = place; *at; at++)
        count += *at == ':';
    char *part = strtok(place, ":");
    for (int i = t_rank % count; i > 0; i--)
        part = strtok(NULL, ":");
    OK(MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(name, sizeof name, "%s/tern-places-%d", part, number);
}

static void all_see(MPI_File file) {
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(file));
}

static unsigned char byte_of(int rank, int round, int i) {
    return (unsigned char)(1 + rank * 31 + round * 7 + i % 50);
}

/* Everybody has read all that is there, so has its pages, and all write at once. */
static void round_of(MPI_File file, MPI_Datatype pieces, int round, int is_together) {
    MPI_Status status;
    int length = PIECE * PIECES, whole = t_size * length;
    OK(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, all, whole, MPI_CHAR, &status));
    OK(MPI_File_set_view(file, (MPI_Offset)t_rank * PIECE, MPI_CHAR, pieces, "native", MPI_INFO_NULL));
    for (int i = 0; i < length; i++)
        mine[i] = byte_of(t_rank, round, i);
    if (is_together)
        OK(MPI_File_write_at_all(file, 0, mine, length, MPI_CHAR, &status));
    else
        OK(MPI_File_write_at(file, 0, mine, length, MPI_CHAR, &status));
    CHECK_COUNT(status, MPI_CHAR, length);
    all_see(file);
    OK(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, all, whole, MPI_CHAR, &status));
    CHECK_COUNT(status, MPI_CHAR, whole);
    for (int i = 0; i < whole; i++) {
        int piece = i / PIECE, rank = piece % t_size, place = piece / t_size * PIECE + i % PIECE;
        CHECK_AT(i, all[i], byte_of(rank, round, place));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void lengths(MPI_File file) {
    MPI_Offset size = -1;
    for (int round = 0; round < 4; round++) {
        MPI_Offset wanted = (MPI_Offset)(round + 1) * 1000 * (MPI_Offset)sizeof all;
        if (t_rank == round % t_size)
            OK(MPI_File_write_at(file, wanted - 1, mine, 1, MPI_CHAR, MPI_STATUS_IGNORE));
        all_see(file);
        OK(MPI_File_get_size(file, &size));
        CHECK_EQ(size, wanted);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_File_set_size(file, 10));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 10);
}

/* In turn, by the pointer that all share. What rank 0 had to write to make it is older than what the others do first. */
static void pointer(MPI_File file) {
    MPI_Offset at = -1;
    for (int i = 0; i < 20; i++) {
        if (t_rank > 0)
            OK(MPI_File_write_shared(file, &t_rank, 1, MPI_INT, MPI_STATUS_IGNORE));
        if (i == 0)
            OK(MPI_Barrier(MPI_COMM_WORLD));
        if (t_rank == 0)
            OK(MPI_File_write_shared(file, &t_rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, (MPI_Offset)(20 * sizeof(int)) * t_size);
    all_see(file);
    int written[20 * MOST], of_rank[MOST] = {0};
    OK(MPI_File_read_at(file, 0, written, 20 * t_size, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < 20 * t_size; i++)
        if (written[i] >= 0 && written[i] < t_size)
            of_rank[written[i]]++;
    for (int rank = 0; rank < t_size; rank++)
        CHECK_AT(rank, of_rank[rank], 20);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Others write where rank 0 has made room, before it looks at the file again. */
static void room(MPI_File file) {
    enum { ROOM = 100 * PIECE * 10 };
    static char seen[ROOM];
    MPI_Status status;
    OK(MPI_File_preallocate(file, ROOM));
    memset(mine, 'a', PIECE);
    for (int at = t_rank * PIECE; t_rank > 0 && at < ROOM; at += 10 * PIECE)
        OK(MPI_File_write_at(file, at, mine, PIECE, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    all_see(file);
    OK(MPI_File_read_at(file, 0, seen, ROOM, MPI_CHAR, &status));
    CHECK_COUNT(status, MPI_CHAR, ROOM);
    for (int at = 0; at < ROOM; at++) {
        int rank = at / PIECE % 10;
        CHECK_AT(at, seen[at], rank > 0 && rank < t_size ? 'a' : 0);
    }
}

static void in_pieces(MPI_File file) {
    MPI_Datatype pieces;
    OK(MPI_Type_vector(PIECES, PIECE, t_size * PIECE, MPI_CHAR, &pieces));
    OK(MPI_Type_commit(&pieces));
    for (int round = 0; round < ROUNDS; round++)
        round_of(file, pieces, round, round % 3 == 2);
    OK(MPI_Type_free(&pieces));
    lengths(file);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    CHECK(t_size <= MOST && argc == 2);
    find_name();
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    if (strcmp(argv[1], "pointer") == 0)
        pointer(file);
    else if (strcmp(argv[1], "room") == 0)
        room(file);
    else
        in_pieces(file);
    OK(MPI_File_close(&file));
    return t_end();
}
