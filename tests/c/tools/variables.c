/* The tools interface as any library has it: before, during and after MPI; lists, strings, sessions. */
#include "tern_test.h"

/* The class of an error before MPI_Init: what MPI_T functions return is a class. */
#define IS(call, want) CHECK_EQ(call, want)

static char name[256], desc[4096];

/* Strings are cut to the room there is, and the room they need is told. */
static void strings(void) {
    int name_len = 0, desc_len = 0, whole;
    IS(MPI_T_cvar_get_info(0, NULL, &name_len, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_SUCCESS);
    CHECK(name_len > 3);
    whole = name_len;
    name_len = sizeof name;
    desc_len = sizeof desc;
    IS(MPI_T_cvar_get_info(0, name, &name_len, NULL, NULL, NULL, desc, &desc_len, NULL, NULL), MPI_SUCCESS);
    CHECK_EQ(name_len, whole);
    CHECK_EQ(strlen(name), whole - 1);
    CHECK_EQ(strlen(desc), desc_len - 1);
    char cut[8];
    memset(cut, '#', sizeof cut);
    name_len = 3;
    IS(MPI_T_cvar_get_info(0, cut, &name_len, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_SUCCESS);
    CHECK(memcmp(cut, name, 2) == 0 && cut[2] == 0 && cut[3] == '#');
    name_len = 0;
    IS(MPI_T_cvar_get_info(0, cut, &name_len, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_SUCCESS);
    CHECK_EQ(name_len, whole);
    IS(MPI_T_cvar_get_info(0, cut, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_SUCCESS);
    CHECK(cut[0] == name[0] && cut[3] == '#');
}

static void items(MPI_T_enum enumtype, int value) {
    int num = 0, known = 0;
    IS(MPI_T_enum_get_info(enumtype, &num, name, &(int){sizeof name}), MPI_SUCCESS);
    CHECK(num > 0 && name[0] != 0);
    for (int i = 0; i < num; i++) {
        int item = -1;
        IS(MPI_T_enum_get_item(enumtype, i, &item, name, &(int){sizeof name}), MPI_SUCCESS);
        CHECK(name[0] != 0);
        known |= item == value;
    }
    CHECK(known);
    int code = MPI_T_enum_get_item(enumtype, num, &num, name, &(int){sizeof name});
    CHECK(code == MPI_T_ERR_INVALID_INDEX || code == MPI_T_ERR_INVALID_ITEM);
}

/* Every control variable is found by its name and can be read. */
static void controls(void) {
    int num = 0;
    IS(MPI_T_cvar_get_num(&num), MPI_SUCCESS);
    CHECK(num > 0);
    for (int i = 0; i < num; i++) {
        int verbosity = -1, bind = -1, scope = -1, found = -1, count = -1;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_T_enum enumtype = MPI_T_ENUM_NULL;
        IS(MPI_T_cvar_get_info(i, name, &(int){sizeof name}, &verbosity, &type, &enumtype, desc,
                               &(int){sizeof desc}, &bind, &scope), MPI_SUCCESS);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        CHECK(scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ);
        IS(MPI_T_cvar_get_index(name, &found), MPI_SUCCESS);
        CHECK_EQ(found, i);
        if (bind != MPI_T_BIND_NO_OBJECT)
            continue;
        MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
        IS(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count), MPI_SUCCESS);
        CHECK(handle != MPI_T_CVAR_HANDLE_NULL && count > 0);
        char *value = t_alloc((size_t)count * 8 + 1);
        memset(value, '#', (size_t)count * 8 + 1);
        IS(MPI_T_cvar_read(handle, value), MPI_SUCCESS);
        if (type == MPI_CHAR)
            CHECK(memchr(value, 0, (size_t)count) != NULL);
        CHECK_EQ(value[(size_t)count * 8], '#');
        if (enumtype != MPI_T_ENUM_NULL)
            items(enumtype, *(int *)value);
        free(value);
        IS(MPI_T_cvar_handle_free(&handle), MPI_SUCCESS);
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    }
    IS(MPI_T_cvar_get_index("no variable has this name", &num), MPI_T_ERR_INVALID_NAME);
}

/* Every performance variable is found by name and class, and behaves as its flags say. */
static void performance(void) {
    int num = 0, last = -1;
    IS(MPI_T_pvar_get_num(&num), MPI_SUCCESS);
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    IS(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    CHECK(session != MPI_T_PVAR_SESSION_NULL);
    for (int i = 0; i < num; i++) {
        int class = -1, bind = -1, readonly = -1, continuous = -1, atomic = -1, found = -1, count = -1;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        IS(MPI_T_pvar_get_info(i, name, &(int){sizeof name}, NULL, &class, &type, NULL, desc,
                               &(int){sizeof desc}, &bind, &readonly, &continuous, &atomic), MPI_SUCCESS);
        CHECK(class >= MPI_T_PVAR_CLASS_STATE && class <= MPI_T_PVAR_CLASS_GENERIC);
        IS(MPI_T_pvar_get_index(name, class, &found), MPI_SUCCESS);
        CHECK_EQ(found, i);
        IS(MPI_T_pvar_get_index(name, class % 10 + 1, &found), MPI_T_ERR_INVALID_NAME);
        if (bind != MPI_T_BIND_NO_OBJECT)
            continue;
        last = i;
        MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
        IS(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count), MPI_SUCCESS);
        CHECK(handle != MPI_T_PVAR_HANDLE_NULL && count > 0);
        uint64_t *value = t_alloc((size_t)count * 8);
        IS(MPI_T_pvar_read(session, handle, value), MPI_SUCCESS);
        IS(MPI_T_pvar_start(session, handle), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        IS(MPI_T_pvar_stop(session, handle), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        IS(MPI_T_pvar_reset(session, handle), readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS);
        if (!atomic)
            CHECK(MPI_T_pvar_readreset(session, handle, value) != MPI_SUCCESS);
        free(value);
        IS(MPI_T_pvar_handle_free(session, &handle), MPI_SUCCESS);
        CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
    }
    IS(MPI_T_pvar_get_index("no variable has this name", MPI_T_PVAR_CLASS_COUNTER, &num), MPI_T_ERR_INVALID_NAME);
    if (last >= 0) {
        MPI_T_pvar_handle handle;
        int count;
        IS(MPI_T_pvar_handle_alloc(session, last, NULL, &handle, &count), MPI_SUCCESS);
        IS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
        IS(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
        IS(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    }
    IS(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
    CHECK(session == MPI_T_PVAR_SESSION_NULL);
}

/* Categories hold variables that there are. */
static void categories(void) {
    int num = 0, stamp = -1, again = -2, cvars, pvars, parts;
    IS(MPI_T_category_changed(&stamp), MPI_SUCCESS);
    IS(MPI_T_category_get_num(&num), MPI_SUCCESS);
    for (int i = 0; i < num; i++) {
        int found = -1, num_cvar, num_pvar;
        IS(MPI_T_category_get_info(i, name, &(int){sizeof name}, desc, &(int){sizeof desc}, &cvars, &pvars,
                                   &parts), MPI_SUCCESS);
        IS(MPI_T_category_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_SUCCESS);
        IS(MPI_T_category_get_index(name, &found), MPI_SUCCESS);
        CHECK_EQ(found, i);
        IS(MPI_T_cvar_get_num(&num_cvar), MPI_SUCCESS);
        IS(MPI_T_pvar_get_num(&num_pvar), MPI_SUCCESS);
        int *indices = t_alloc(sizeof(int) * (size_t)(cvars + pvars + parts + 1));
        indices[cvars] = -7;
        IS(MPI_T_category_get_cvars(i, cvars, indices), MPI_SUCCESS);
        for (int k = 0; k < cvars; k++)
            CHECK(indices[k] >= 0 && indices[k] < num_cvar);
        CHECK_EQ(indices[cvars], -7);
        IS(MPI_T_category_get_pvars(i, pvars, indices), MPI_SUCCESS);
        for (int k = 0; k < pvars; k++)
            CHECK(indices[k] >= 0 && indices[k] < num_pvar);
        IS(MPI_T_category_get_categories(i, parts, indices), MPI_SUCCESS);
        for (int k = 0; k < parts; k++)
            CHECK(indices[k] >= 0 && indices[k] < num && indices[k] != i);
        indices[0] = indices[1] = -7;
        if (cvars > 1) {
            IS(MPI_T_category_get_cvars(i, 1, indices), MPI_SUCCESS);
            CHECK(indices[0] >= 0 && indices[1] == -7);
        }
        free(indices);
    }
    IS(MPI_T_category_changed(&again), MPI_SUCCESS);
    CHECK_EQ(again, stamp);
    IS(MPI_T_category_get_index("no category has this name", &num), MPI_T_ERR_INVALID_NAME);
}

static void all(void) {
    strings();
    controls();
    performance();
    categories();
}

int main(int argc, char **argv) {
    int num, provided = -1;
    IS(MPI_T_cvar_get_num(&num), MPI_T_ERR_NOT_INITIALIZED);
    IS(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    IS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    CHECK(provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_MULTIPLE);
    all();
    t_begin(&argc, &argv);
    all();
    /* As often finalised as initialised. */
    IS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    IS(MPI_T_finalize(), MPI_SUCCESS);
    all();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    IS(MPI_T_cvar_get_num(&num), MPI_SUCCESS);
    CHECK(num > 0);
    IS(MPI_T_finalize(), MPI_SUCCESS);
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
