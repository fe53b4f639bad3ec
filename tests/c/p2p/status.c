/* Status functions: get and set of fields, counts, elements, cancelled. */
#include "tern_test.h"

/* A count beyond int. */
static void beyond_int(void) {
    int value = -1;
    MPI_Status status;
    memset(&status, 0, sizeof status);
    MPI_Count large = (MPI_Count)3000000000, got = 0;
    OK(MPI_Status_set_elements_c(&status, MPI_BYTE, large));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &got));
    CHECK_EQ(got, large);
    OK(MPI_Get_elements_c(&status, MPI_BYTE, &got));
    CHECK_EQ(got, large);
    OK(MPI_Get_count(&status, MPI_BYTE, &value));
    CHECK_EQ(value, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, MPI_BYTE, &value));
    CHECK_EQ(value, MPI_UNDEFINED);

    OK(MPI_Status_set_elements_x(&status, MPI_INT, large));
    OK(MPI_Get_elements_x(&status, MPI_INT, &got));
    CHECK_EQ(got, large);
    OK(MPI_Get_elements_c(&status, MPI_SHORT, &got));
    CHECK_EQ(got, 2 * large);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Status status;
    memset(&status, 0, sizeof status);
    int value = -1;
    OK(MPI_Status_set_source(&status, 5));
    OK(MPI_Status_get_source(&status, &value));
    CHECK_EQ(value, 5);
    CHECK_EQ(status.MPI_SOURCE, 5);
    OK(MPI_Status_set_tag(&status, 6));
    OK(MPI_Status_get_tag(&status, &value));
    CHECK_EQ(value, 6);
    CHECK_EQ(status.MPI_TAG, 6);
    OK(MPI_Status_set_error(&status, MPI_ERR_TRUNCATE));
    OK(MPI_Status_get_error(&status, &value));
    CHECK_EQ(value, MPI_ERR_TRUNCATE);
    CHECK_EQ(status.MPI_ERROR, MPI_ERR_TRUNCATE);
    for (int flag = 0; flag < 2; flag++) {
        OK(MPI_Status_set_cancelled(&status, flag));
        OK(MPI_Test_cancelled(&status, &value));
        CHECK_EQ(!!value, flag);
    }
    OK(MPI_Status_set_cancelled(&status, 0));

    OK(MPI_Status_set_elements(&status, MPI_INT, 10));
    OK(MPI_Get_count(&status, MPI_INT, &value));
    CHECK_EQ(value, 10);
    OK(MPI_Get_elements(&status, MPI_INT, &value));
    CHECK_EQ(value, 10);
    OK(MPI_Get_count(&status, MPI_BYTE, &value));
    CHECK_EQ(value, 40);
    OK(MPI_Get_count(&status, MPI_DOUBLE, &value));
    CHECK_EQ(value, 5);

    /* 10 ints are 3 1/3 triples: no whole count, but 10 elements. */
    MPI_Datatype triple;
    OK(MPI_Type_contiguous(3, MPI_INT, &triple));
    OK(MPI_Type_commit(&triple));
    OK(MPI_Get_count(&status, triple, &value));
    CHECK_EQ(value, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, triple, &value));
    CHECK_EQ(value, 10);
    OK(MPI_Type_free(&triple));

    beyond_int();

    /* Receives with a multi-element datatype. */
    int out[7] = {1, 2, 3, 4, 5, 6, 7}, in[9];
    OK(MPI_Sendrecv(out, 7, MPI_INT, t_rank, 0, in, 9, MPI_INT, t_rank, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &value));
    CHECK_EQ(value, 7);
    OK(MPI_Get_count(&status, MPI_SHORT, &value));
    CHECK_EQ(value, 14);
    OK(MPI_Get_count(&status, MPI_DOUBLE, &value));
    CHECK_EQ(value, MPI_UNDEFINED);
    OK(MPI_Test_cancelled(&status, &value));
    CHECK(!value);
    return t_end();
}
