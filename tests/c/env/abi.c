/* MPI_Abi_*: what the library says of its ABI, and what Fortran has told it. The programs of tests/c run on both ABIs. */
#include "../tern_test.h"

#ifdef MPI_ABI_VERSION
enum { MAJOR = MPI_ABI_VERSION, MINOR = MPI_ABI_SUBVERSION };
#else /* another ABI than the standard one */
enum { MAJOR = -1, MINOR = -1 };
#endif

/* Nobody has said anything of Fortran yet: what is said first holds. */
static void told(void) {
    MPI_Info info, known;
    char value[8];
    int yes = -1, no = 0, got_yes = 7, got_no = 7, is_set = 0, flag, room = sizeof value;
    OK(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no));
    OK(MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &is_set));
    CHECK(is_set == 1 && got_yes == yes && got_no == no);
    FAILS(MPI_Abi_set_fortran_booleans(sizeof yes, &no, &yes), MPI_ERR_ABI);
    OK(MPI_Abi_get_fortran_info(&known));
    CHECK(known == MPI_INFO_NULL);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_integer_size", "4"));
    OK(MPI_Abi_set_fortran_info(info));
    FAILS(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
    OK(MPI_Info_free(&info));
    OK(MPI_Abi_get_fortran_info(&known));
    CHECK(known != MPI_INFO_NULL);
    OK(MPI_Info_get_string(known, "mpi_integer_size", &room, value, &flag));
    CHECK(flag);
    CHECK_STR(value, "4");
    OK(MPI_Info_free(&known));
}

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
    int yes = 0, no = 1, is_set = -1;
    OK(MPI_Abi_get_fortran_booleans(sizeof yes, &yes, &no, &is_set));
    CHECK(is_set == 0 || (is_set == 1 && yes != no));
    if (!is_set)
        told();
    return t_end();
}
