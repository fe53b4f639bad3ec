/* Version, library version, processor name, clock, memory, predefined attributes. */
#include "tern_test.h"

static void attribute(int keyval, int least) {
    int *value = NULL, flag = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag));
    CHECK(flag);
    CHECK(*value >= least);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int version = 0, subversion = -1, length = -1, flag = 0, *value;
    char text[MPI_MAX_LIBRARY_VERSION_STRING], name[MPI_MAX_PROCESSOR_NAME];
    OK(MPI_Get_version(&version, &subversion));
    // A program may have been compiled with the older header of another library.
    CHECK(version == 5 && (MPI_VERSION < 5 || (version == MPI_VERSION && subversion == MPI_SUBVERSION)));
    OK(MPI_Get_library_version(text, &length));
    CHECK_EQ(strlen(text), length);
    CHECK(length > 0);
    OK(MPI_Get_processor_name(name, &length));
    CHECK_EQ(strlen(name), length);
    CHECK(length > 0);
    double first = MPI_Wtime(), tick = MPI_Wtick(), then = first;
    CHECK(tick > 0 && tick < 1);
    for (int i = 0; i < 1000; i++) {
        double now = MPI_Wtime();
        CHECK(now >= then);
        then = now;
    }
    attribute(MPI_TAG_UB, 32767);
    attribute(MPI_WTIME_IS_GLOBAL, 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    int upper = *value, got = -1;
    MPI_Status status;
    OK(MPI_Sendrecv(&t_rank, 1, MPI_INT, t_rank, upper, &got, 1, MPI_INT, t_rank, upper, MPI_COMM_WORLD, &status));
    CHECK_EQ(status.MPI_TAG, upper);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(!flag || *value == 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(!flag || *value >= 1);
    FAILS_EITHER(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper), MPI_ERR_KEYVAL, MPI_ERR_ARG);
    char *memory = NULL;
    OK(MPI_Alloc_mem(100000, MPI_INFO_NULL, &memory));
    CHECK(memory != NULL && ((uintptr_t)memory & 15) == 0);
    memset(memory, 1, 100000);
    OK(MPI_Free_mem(memory));
    OK(MPI_Pcontrol(1));
    return t_end();
}
