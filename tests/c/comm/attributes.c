/* Attributes of communicators and datatypes: copy and delete callbacks, their arguments,
 * their errors; names and info hints of communicators. */
#include "tern_test.h"

static int copies, deletes, veto;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)keyval;
    CHECK(comm != MPI_COMM_NULL && extra == &copies);
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int keyval, void *value, void *extra) {
    (void)keyval, (void)value;
    CHECK(comm != MPI_COMM_NULL && extra == &copies);
    deletes++;
    return veto ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void expect(MPI_Comm comm, int keyval, intptr_t want) {
    void *value = NULL;
    int flag = -1;
    OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
    CHECK_EQ(!!flag, want >= 0);
    if (flag)
        CHECK_EQ((intptr_t)value, want);
}

static void of_communicators(void) {
    int keyval, dup_key, null_key;
    MPI_Comm a, b;
    OK(MPI_Comm_create_keyval(copy, drop, &keyval, &copies));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_key, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &null_key, NULL));
    CHECK(keyval != MPI_KEYVAL_INVALID && keyval != dup_key && dup_key != null_key);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    OK(MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN));
    expect(a, keyval, -1);
    OK(MPI_Comm_set_attr(a, keyval, (void *)100));
    OK(MPI_Comm_set_attr(a, dup_key, (void *)200));
    OK(MPI_Comm_set_attr(a, null_key, (void *)300));
    expect(a, keyval, 100);
    /* Setting again deletes the old value. */
    OK(MPI_Comm_set_attr(a, keyval, (void *)110));
    CHECK_EQ(deletes, 1);
    expect(a, keyval, 110);
    OK(MPI_Comm_dup(a, &b));
    CHECK_EQ(copies, 1);
    expect(b, keyval, 111);
    expect(b, dup_key, 200);
    expect(b, null_key, -1);
    /* Split copies none. */
    MPI_Comm c;
    OK(MPI_Comm_split(a, 0, 0, &c));
    expect(c, keyval, -1);
    OK(MPI_Comm_free(&c));
    CHECK_EQ(copies, 1);
    OK(MPI_Comm_delete_attr(b, keyval));
    CHECK_EQ(deletes, 2);
    expect(b, keyval, -1);
    OK(MPI_Comm_free(&b));
    CHECK_EQ(deletes, 2);
    /* A delete function that refuses keeps the attribute, and the object. */
    veto = 1;
    FAILS(MPI_Comm_delete_attr(a, keyval), MPI_ERR_OTHER);
    CHECK_EQ(deletes, 3);
    expect(a, keyval, 110);
    veto = 0;
    /* A freed key lives on while an attribute uses it; until then a copy of it may be freed, too. */
    int again = keyval;
    OK(MPI_Comm_free_keyval(&keyval));
    CHECK_EQ(keyval, MPI_KEYVAL_INVALID);
    OK(MPI_Comm_free_keyval(&again));
    CHECK_EQ(again, MPI_KEYVAL_INVALID);
    OK(MPI_Comm_free(&a));
    CHECK_EQ(deletes, 4);
    OK(MPI_Comm_free_keyval(&dup_key));
    OK(MPI_Comm_free_keyval(&null_key));
}

static int type_copies, type_deletes;

static int copy_type(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)type, (void)keyval, (void)extra;
    type_copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop_type(MPI_Datatype type, int keyval, void *value, void *extra) {
    (void)type, (void)keyval, (void)value, (void)extra;
    type_deletes++;
    return MPI_SUCCESS;
}

static void of_types(void) {
    int keyval, flag = 0;
    void *value = NULL;
    MPI_Datatype a, b;
    OK(MPI_Type_create_keyval(copy_type, drop_type, &keyval, NULL));
    OK(MPI_Type_contiguous(2, MPI_INT, &a));
    OK(MPI_Type_set_attr(a, keyval, (void *)5));
    OK(MPI_Type_dup(a, &b));
    OK(MPI_Type_get_attr(b, keyval, &value, &flag));
    CHECK(flag && value == (void *)5);
    OK(MPI_Type_delete_attr(b, keyval));
    OK(MPI_Type_get_attr(b, keyval, &value, &flag));
    CHECK(!flag);
    OK(MPI_Type_free(&b));
    OK(MPI_Type_free(&a));
    CHECK(type_copies == 1 && type_deletes == 2);
    OK(MPI_Type_free_keyval(&keyval));
}

/* The functions of MPI-1: other names for those of communicators. */
static void of_mpi_1(void) {
    int keyval, kept, lost, flag = 0;
    void *value = NULL;
    MPI_Comm a;
    copies = deletes = 0;
    OK(MPI_Keyval_create(copy, drop, &keyval, &copies));
    OK(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &kept, NULL));
    OK(MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &lost, NULL));
    OK(MPI_Attr_put(MPI_COMM_SELF, keyval, (void *)100));
    OK(MPI_Attr_put(MPI_COMM_SELF, kept, (void *)200));
    OK(MPI_Attr_put(MPI_COMM_SELF, lost, (void *)300));
    OK(MPI_Attr_get(MPI_COMM_SELF, keyval, &value, &flag));
    CHECK(flag && value == (void *)100);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &a));
    expect(a, keyval, 101);
    expect(a, kept, 200);
    OK(MPI_Attr_get(a, lost, &value, &flag));
    CHECK(!flag && copies == 1);
    OK(MPI_Comm_free(&a));
    CHECK_EQ(deletes, 1);
    OK(MPI_Attr_delete(MPI_COMM_SELF, keyval));
    CHECK_EQ(deletes, 2);
    expect(MPI_COMM_SELF, keyval, -1);
    OK(MPI_Attr_delete(MPI_COMM_SELF, kept));
    OK(MPI_Attr_delete(MPI_COMM_SELF, lost));
    OK(MPI_Keyval_free(&keyval));
    CHECK_EQ(keyval, MPI_KEYVAL_INVALID);
    OK(MPI_Keyval_free(&kept));
    OK(MPI_Keyval_free(&lost));
    FAILS(MPI_Attr_put(MPI_COMM_SELF, MPI_KEYVAL_INVALID, NULL), MPI_ERR_KEYVAL);
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME];
    int length = -1;
    MPI_Comm comm, copied;
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK_STR(name, "MPI_COMM_WORLD");
    CHECK_EQ(length, 14);
    OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
    CHECK_STR(name, "MPI_COMM_SELF");
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK_STR(name, "");
    CHECK_EQ(length, 0);
    OK(MPI_Comm_set_name(comm, "a name with blanks"));
    OK(MPI_Comm_dup(comm, &copied));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK_STR(name, "a name with blanks");
    OK(MPI_Comm_get_name(copied, name, &length));
    CHECK_STR(name, "");
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&copied));
}

static void hints(void) {
    MPI_Info info, got;
    MPI_Comm comm;
    int n = -1;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    OK(MPI_Comm_get_info(comm, &got));
    OK(MPI_Info_get_nkeys(got, &n));
    CHECK(n >= 0);
    OK(MPI_Info_free(&got));
    OK(MPI_Comm_set_info(comm, info));
    OK(MPI_Comm_get_info(comm, &got));
    OK(MPI_Info_free(&got));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    of_communicators();
    of_types();
    of_mpi_1();
    names();
    hints();
    return t_end();
}
