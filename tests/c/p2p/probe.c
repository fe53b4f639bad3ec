/* MPI_Probe and MPI_Iprobe: what they say is what the next receive gets, for known and
 * wildcard source and tag; a probe does not consume; an absent message is not seen. */
#include "tern_test.h"

static void absent(void) {
    int flag = 1;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    MPI_Status status;
    OK(MPI_Probe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    flag = 0;
    OK(MPI_Iprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &flag, &status));
    CHECK(flag);
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

static void take(int source, int tag, int bytes, int by_iprobe, int wild) {
    MPI_Status seen, again, got;
    int from = wild & 1 ? MPI_ANY_SOURCE : source, with = wild & 2 ? MPI_ANY_TAG : tag;
    if (by_iprobe) {
        int flag = 0;
        while (!flag)
            OK(MPI_Iprobe(from, with, MPI_COMM_WORLD, &flag, &seen));
    } else {
        OK(MPI_Probe(from, with, MPI_COMM_WORLD, &seen));
    }
    OK(MPI_Probe(seen.MPI_SOURCE, seen.MPI_TAG, MPI_COMM_WORLD, &again));
    CHECK_EQ(again.MPI_SOURCE, seen.MPI_SOURCE);
    CHECK_EQ(again.MPI_TAG, seen.MPI_TAG);
    if (!(wild & 1))
        CHECK_EQ(seen.MPI_SOURCE, source);
    int length = -1;
    OK(MPI_Get_count(&seen, MPI_BYTE, &length));
    CHECK_EQ(length, bytes);
    unsigned char *buffer = t_alloc((size_t)length);
    OK(MPI_Recv(buffer, length, MPI_BYTE, seen.MPI_SOURCE, seen.MPI_TAG, MPI_COMM_WORLD, &got));
    CHECK_STATUS(got, seen.MPI_SOURCE, seen.MPI_TAG, length);
    CHECK_FILL(buffer, length, (uint64_t)(got.MPI_SOURCE * 100 + got.MPI_TAG));
    free(buffer);
}

static void all_to_root(int bytes, int wild) {
    unsigned char *buffer = t_alloc((size_t)bytes);
    if (t_rank) {
        for (int tag = 0; tag < 4; tag++) {
            t_fill(buffer, (size_t)bytes, (uint64_t)(t_rank * 100 + tag));
            OK(MPI_Send(buffer, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD));
        }
    } else {
        for (int tag = 0; tag < 4; tag++)
            for (int source = 1; source < t_size; source++)
                take(source, tag, bytes, tag & 1, wild);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(buffer);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    absent();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int sizes[] = {0, 1, 60, 5000, 100000, 1500000};
    /* With a known source and any tag the order of tags is that of the sends, and with
     * neither known every message is taken exactly once: the counts come out even. */
    for (int s = 0; s < 6; s++)
        for (int wild = 0; wild < 4; wild++)
            all_to_root(sizes[s], wild);
    absent();
    return t_end();
}
