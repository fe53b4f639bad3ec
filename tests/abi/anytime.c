/* Operations that need no MPI_Init; also compiled as C++. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "failed: %s\n", what);
        failures++;
    }
}

static void versions(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int i, major = 0, minor = 0, length = 0, flag = 1;
    for (i = 0; i < 3; i++)
        expect(MPI_Get_version(&major, &minor) == MPI_SUCCESS, "MPI_Get_version");
    expect(major == MPI_VERSION && minor == MPI_SUBVERSION, "version of the standard");
    MPI_Abi_get_version(&major, &minor);
    expect(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION, "version of the ABI");
    MPI_Get_library_version(text, &length);
    expect((size_t) length == strlen(text) && length > 0, "MPI_Get_library_version");
    MPI_Initialized(&flag);
    expect(!flag, "MPI_Initialized");
    MPI_Finalized(&flag);
    expect(!flag, "MPI_Finalized");
}

static void addresses_and_handles(void)
{
    int array[4];
    double before = MPI_Wtime();
    MPI_Aint first = 0, last = 0;
    MPI_Get_address(&array[0], &first);
    MPI_Get_address(&array[3], &last);
    expect(MPI_Aint_diff(last, first) == (MPI_Aint) (3 * sizeof(int)), "MPI_Aint_diff");
    expect(MPI_Aint_add(first, 3 * sizeof(int)) == last, "MPI_Aint_add");
    expect(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD, "a communicator through int");
    expect(MPI_Type_toint(MPI_INT) == 0x209, "MPI_Type_toint");
    expect(MPI_Pcontrol(1, "with", "further", 3) == MPI_SUCCESS, "MPI_Pcontrol");
    expect(MPI_Wtime() >= before && MPI_Wtick() > 0, "MPI_Wtime");
}

static void status_fields(void)
{
    MPI_Status status;
    int value = 0;
    memset(&status, 0, sizeof status);
    MPI_Status_set_source(&status, 3);
    MPI_Status_set_tag(&status, 5);
    MPI_Status_set_error(&status, MPI_ERR_TRUNCATE);
    expect(status.MPI_SOURCE == 3 && status.MPI_TAG == 5 && status.MPI_ERROR == MPI_ERR_TRUNCATE, "set");
    MPI_Status_get_source(&status, &value);
    expect(value == 3, "MPI_Status_get_source");
    MPI_Status_get_tag(&status, &value);
    expect(value == 5, "MPI_Status_get_tag");
    MPI_Status_get_error(&status, &value);
    expect(value == MPI_ERR_TRUNCATE, "MPI_Status_get_error");
    MPI_Status_set_cancelled(&status, 1);
    MPI_Test_cancelled(&status, &value);
    expect(value && status.MPI_TAG == 5, "MPI_Status_set_cancelled");
    MPI_Status_set_cancelled(&status, 0);
    MPI_Test_cancelled(&status, &value);
    expect(!value, "MPI_Test_cancelled");
}

static void fortran_properties(void)
{
    int yes = 1, no = 0, got_yes = 7, got_no = 7, is_set = 1;
    MPI_Info info = MPI_INFO_ENV;
    MPI_Abi_get_fortran_booleans((int) sizeof(int), &got_yes, &got_no, &is_set);
    expect(!is_set && got_yes == 7, "booleans before they are set");
    MPI_Abi_set_fortran_booleans((int) sizeof(int), &yes, &no);
    MPI_Abi_get_fortran_booleans((int) sizeof(int), &got_yes, &got_no, &is_set);
    expect(is_set && got_yes == 1 && got_no == 0, "booleans after they are set");
    MPI_Abi_get_fortran_info(&info);
    expect(info == MPI_INFO_NULL, "Fortran info before it is set");
    MPI_Abi_get_info(&info);
    expect(info != MPI_INFO_NULL, "MPI_Abi_get_info");
    MPI_Abi_set_fortran_info(info);
    MPI_Abi_get_fortran_info(&info);
    expect(info != MPI_INFO_NULL, "Fortran info after it is set");
}

int main(void)
{
    versions();
    addresses_and_handles();
    status_fields();
    fortran_properties();
    printf("%d failures\n", failures);
    return failures != 0;
}
