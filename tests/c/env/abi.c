/* MPI_Abi_*: what the library says of its ABI, and what Fortran has told it. The programs of tests/c run on both ABIs. */
#include "../tern_test.h"

#ifdef MPI_ABI_VERSION
enum { MAJOR = MPI_ABI_VERSION, MINOR = MPI_ABI_SUBVERSION };
#else /* another ABI than the standard one */
enum { MAJOR = -1, MINOR = -1 };
#endif

int main(int argc, char **argv) {
    int major = 7, minor = 7, flag;
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK_EQ(major, MAJOR);
    CHECK_EQ(minor, MINOR);
    MPI_Info info;
    OK(MPI_Abi_get_info(&info));
    const struct { const char *key; size_t size; } sizes[] = {
        {"mpi_aint_size", sizeof(MPI_Aint)}, {"mpi_count_size", sizeof(MPI_Count)}, {"mpi_offset_size", sizeof(MPI_Offset)}};
    for (int i = 0; i < 3; i++) {
        char value[16];
        int room = sizeof value;
        OK(MPI_Info_get_string(info, sizes[i].key, &room, value, &flag));
        CHECK(flag);
        CHECK_AT(i, atoi(value), sizes[i].size);
    }
    OK(MPI_Info_free(&info));
    t_begin(&argc, &argv);
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK_EQ(major, MAJOR);
    CHECK_EQ(minor, MINOR);
    OK(MPI_Abi_get_fortran_info(&info));
    if (info != MPI_INFO_NULL)
        OK(MPI_Info_free(&info));
    int yes = 0, no = 1, is_set = -1;
    OK(MPI_Abi_get_fortran_booleans(sizeof yes, &yes, &no, &is_set));
    CHECK(is_set == 0 || (is_set == 1 && yes != no));
    return t_end();
}
