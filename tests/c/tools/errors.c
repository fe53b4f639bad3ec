/* Wrong arguments of the tools interface: errors come back, whatever the error handler. */
#include "tern_test.h"

#define IS(call, want) CHECK_EQ(call, want)

/* Indices are named by more than their error: text and class are there, too. */
static void indices(void) {
    int num = 0, count, list[1];
    char text[MPI_MAX_ERROR_STRING];
    MPI_T_cvar_handle cvar;
    IS(MPI_T_cvar_get_num(&num), MPI_SUCCESS);
    IS(MPI_T_cvar_get_info(num, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_cvar_handle_alloc(num, NULL, &cvar, &count), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_category_get_num(&num), MPI_SUCCESS);
    IS(MPI_T_category_get_info(num, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_category_get_cvars(-1, 1, list), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_category_get_pvars(num, 1, list), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_category_get_categories(num, 1, list), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_Error_string(MPI_T_ERR_INVALID_INDEX, text, &count), MPI_SUCCESS);
    CHECK(count > 0);
}

static void pointers(void) {
    IS(MPI_T_cvar_get_num(NULL), MPI_T_ERR_INVALID);
    IS(MPI_T_pvar_get_num(NULL), MPI_T_ERR_INVALID);
    IS(MPI_T_category_get_num(NULL), MPI_T_ERR_INVALID);
    IS(MPI_T_category_changed(NULL), MPI_T_ERR_INVALID);
    IS(MPI_T_cvar_get_index(NULL, &(int){0}), MPI_T_ERR_INVALID);
    IS(MPI_T_cvar_get_index("x", NULL), MPI_T_ERR_INVALID);
    IS(MPI_T_pvar_session_create(NULL), MPI_T_ERR_INVALID);
    IS(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL), MPI_T_ERR_INVALID);
}

static void handles(void) {
    int num = 0, count, class, code;
    uint64_t value[64];
    MPI_T_cvar_handle cvar = MPI_T_CVAR_HANDLE_NULL;
    IS(MPI_T_cvar_read(cvar, value), MPI_T_ERR_INVALID_HANDLE);
    IS(MPI_T_cvar_handle_free(&cvar), MPI_T_ERR_INVALID_HANDLE);
    IS(MPI_T_pvar_get_num(&num), MPI_SUCCESS);
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL, other;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    IS(MPI_T_pvar_session_free(&session), MPI_T_ERR_INVALID_SESSION);
    IS(MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, &count), MPI_T_ERR_INVALID_SESSION);
    IS(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    IS(MPI_T_pvar_session_create(&other), MPI_SUCCESS);
    IS(MPI_T_pvar_read(session, MPI_T_PVAR_HANDLE_NULL, value), MPI_T_ERR_INVALID_HANDLE);
    IS(MPI_T_pvar_handle_free(session, &handle), MPI_T_ERR_INVALID_HANDLE);
    code = MPI_T_ERR_INVALID_INDEX;
    for (int i = 0, bind = 0; i < num && code != MPI_SUCCESS; i++) {
        MPI_Datatype type;
        IS(MPI_T_pvar_get_info(i, NULL, NULL, NULL, &class, &type, NULL, NULL, NULL, &bind, NULL, NULL, NULL), MPI_SUCCESS);
        if (bind == MPI_T_BIND_NO_OBJECT)
            code = MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count);
    }
    if (code == MPI_SUCCESS) {
        IS(MPI_T_pvar_read(other, handle, value), MPI_T_ERR_INVALID_HANDLE);
        IS(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, handle, value), MPI_T_ERR_INVALID_SESSION);
        IS(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, value), MPI_T_ERR_INVALID_HANDLE);
        IS(MPI_T_pvar_handle_free(session, &handle), MPI_SUCCESS);
    }
    IS(MPI_T_pvar_session_free(&other), MPI_SUCCESS);
    IS(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
}

static void enumerations(void) {
    int num;
    IS(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &num, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    IS(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &num, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
}

static void events(void) {
    int num = -1, index = -1;
    MPI_Count ticks;
    IS(MPI_T_event_get_num(&num), MPI_SUCCESS);
    CHECK(num >= 0);
    IS(MPI_T_event_get_index("no type of events has this name", &index), MPI_T_ERR_INVALID_NAME);
    MPI_T_event_registration registration;
    IS(MPI_T_event_handle_alloc(num, NULL, MPI_INFO_NULL, &registration), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_source_get_num(&num), MPI_SUCCESS);
    CHECK(num >= 0);
    IS(MPI_T_source_get_timestamp(num, &ticks), MPI_T_ERR_INVALID_INDEX);
    IS(MPI_T_category_get_num(&num), MPI_SUCCESS);
    if (num > 0)
        IS(MPI_T_category_get_num_events(0, &index), MPI_SUCCESS);
    IS(MPI_T_category_get_num_events(num, &index), MPI_T_ERR_INVALID_INDEX);
}

int main(int argc, char **argv) {
    int provided;
    IS(MPI_T_pvar_get_num(NULL), MPI_T_ERR_NOT_INITIALIZED);
    IS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &t_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &t_size));
    /* MPI_ERRORS_ARE_FATAL is still in force. */
    indices();
    pointers();
    handles();
    enumerations();
    events();
    IS(MPI_T_finalize(), MPI_SUCCESS);
    return t_end();
}
