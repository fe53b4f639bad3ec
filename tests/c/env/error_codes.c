/* Error classes, codes and strings: predefined ones, user-defined ones, their removal. */
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    char text[MPI_MAX_ERROR_STRING], first[MPI_MAX_ERROR_STRING];
    int length, class, code, code_too, back, *last = NULL, flag = 0;
    const int classes[] = {MPI_SUCCESS,    MPI_ERR_BUFFER,  MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TAG,   MPI_ERR_COMM,
                           MPI_ERR_RANK,   MPI_ERR_REQUEST, MPI_ERR_ROOT,  MPI_ERR_GROUP, MPI_ERR_OP,   MPI_ERR_ARG,
                           MPI_ERR_OTHER,  MPI_ERR_INTERN,  MPI_ERR_INFO,  MPI_ERR_KEYVAL, MPI_ERR_WIN, MPI_ERR_FILE,
                           MPI_ERR_SESSION, MPI_ERR_UNSUPPORTED_OPERATION};
    const int count = (int)(sizeof classes / sizeof *classes);
    for (int i = 0; i < count; i++) {
        OK(MPI_Error_class(classes[i], &back));
        CHECK_AT(i, back, classes[i]);
        OK(MPI_Error_string(classes[i], text, &length));
        CHECK(length > 0 && (size_t)length == strlen(text));
        for (int k = 0; k < i; k++) {
            OK(MPI_Error_string(classes[k], first, &length));
            CHECK(strcmp(first, text) != 0);
        }
    }
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
    CHECK(flag && *last >= MPI_ERR_LASTCODE);
    OK(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE);
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_code(class, &code_too));
    CHECK(code != code_too && code != class);
    OK(MPI_Error_class(code, &back));
    CHECK_EQ(back, class);
    OK(MPI_Error_class(class, &back));
    CHECK_EQ(back, class);
    OK(MPI_Error_string(code, text, &length));
    OK(MPI_Add_error_string(code, "the code"));
    OK(MPI_Add_error_string(class, "the class"));
    OK(MPI_Error_string(code, text, &length));
    CHECK_STR(text, "the code");
    CHECK_EQ(length, 8);
    OK(MPI_Error_string(class, text, &length));
    CHECK_STR(text, "the class");
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
    CHECK(flag && *last >= code_too);
    FAILS(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_SUCCESS), MPI_SUCCESS);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_string(class));
    OK(MPI_Remove_error_code(code_too));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
    return t_end();
}
