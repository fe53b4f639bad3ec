/* What asks about the host or about nothing: split by shared memory, MPI_COMM_NULL, no parent;
   a communicator that is disconnected.
 * one-host: MPI_COMM_TYPE_SHARED is expected to give all ranks
 */
#include "tern_test.h"

static void split(int type, MPI_Info info, int expected) {
    MPI_Comm part = MPI_COMM_WORLD;
    int size = 0;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, t_size - t_rank, info, &part));
    CHECK_EQ(part != MPI_COMM_NULL, expected);
    if (part != MPI_COMM_NULL) {
        int rank = -1;
        OK(MPI_Comm_size(part, &size));
        OK(MPI_Comm_rank(part, &rank));
        CHECK_EQ(size, t_size);
        CHECK_EQ(rank, t_size - 1 - t_rank);
        OK(MPI_Comm_free(&part));
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Info info;
    OK(MPI_Info_create(&info));
    split(MPI_COMM_TYPE_SHARED, MPI_INFO_NULL, 1);
    split(MPI_COMM_TYPE_RESOURCE_GUIDED, info, 0);
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "no such thing"));
    split(MPI_COMM_TYPE_RESOURCE_GUIDED, info, 0);
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
    split(MPI_COMM_TYPE_RESOURCE_GUIDED, info, 1);
    split(MPI_COMM_TYPE_HW_GUIDED, info, 1);
    split(MPI_UNDEFINED, info, 0);
    OK(MPI_Info_free(&info));

    char name[MPI_MAX_OBJECT_NAME];
    int length = 0, inter = 1;
    OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
    CHECK_EQ(strcmp(name, "MPI_COMM_NULL"), 0);
    CHECK_EQ(length, (int)strlen(name));
    MPI_Comm comm = MPI_COMM_WORLD;
    OK(MPI_Comm_get_parent(&comm));
    CHECK(comm == MPI_COMM_NULL);
    FAILS(MPI_Comm_disconnect(&comm), MPI_ERR_COMM);

    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_test_inter(comm, &inter));
    CHECK_EQ(inter, 0);
    OK(MPI_Comm_disconnect(&comm));
    CHECK(comm == MPI_COMM_NULL);
    return t_end();
}
