/* Attributes, names, groups, hints, error handlers and shared memory of windows. */
#include "tern_test.h"

static int deleted, called;

static int forget(MPI_Win win, int key, void *value, void *extra) {
    (void)win, (void)key, (void)extra;
    CHECK_EQ((intptr_t)value, 77);
    deleted++;
    return MPI_SUCCESS;
}

static void handler(MPI_Win *win, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    CHECK_EQ(class, MPI_ERR_RMA_SYNC);
    CHECK(*win != MPI_WIN_NULL);
    called++;
}

static int *base, flag, key, length, unit;
static MPI_Win win;

static void attributes(void) {
    OK(MPI_Win_allocate(400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    void *found;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &found, &flag));
    CHECK(flag && found == base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &found, &flag));
    CHECK(flag && *(MPI_Aint *)found == 400);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &found, &flag));
    CHECK(flag && *(int *)found == 4);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &found, &flag));
    CHECK(flag && *(int *)found == MPI_WIN_FLAVOR_ALLOCATE);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &found, &flag));
    CHECK(flag && *(int *)found == MPI_WIN_UNIFIED);
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget, &key, NULL));
    OK(MPI_Win_get_attr(win, key, &found, &flag));
    CHECK(!flag);
    OK(MPI_Win_set_attr(win, key, (void *)77));
    OK(MPI_Win_get_attr(win, key, &found, &flag));
    CHECK(flag && found == (void *)77);
    OK(MPI_Win_delete_attr(win, key));
    CHECK_EQ(deleted, 1);
    OK(MPI_Win_set_attr(win, key, (void *)77));
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Win_set_name(win, "cells"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK_STR(name, "cells");
    CHECK_EQ(length, 5);
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK_STR(name, "MPI_WIN_NULL");
    MPI_Group group, world;
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &flag));
    CHECK_EQ(flag, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    MPI_Info info;
    OK(MPI_Win_get_info(win, &info));
    char text[64];
    length = sizeof text;
    OK(MPI_Info_get_string(info, "no_locks", &length, text, &flag));
    CHECK(flag);
    CHECK_STR(text, "false");
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
}

static void handlers(void) {
    MPI_Errhandler own, got;
    OK(MPI_Win_get_errhandler(win, &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_create_errhandler(handler, &own));
    OK(MPI_Win_set_errhandler(win, own));
    OK(MPI_Win_get_errhandler(win, &got));
    CHECK(got == own);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&own));
    MPI_Win_unlock(0, win); /* without a lock */
    CHECK_EQ(called, 1);
    OK(MPI_Win_call_errhandler(win, MPI_ERR_RMA_SYNC));
    CHECK_EQ(called, 2);
    OK(MPI_Win_free(&win));
    CHECK_EQ(deleted, 2);
    OK(MPI_Win_free_keyval(&key));
}

static void shared(void) {
    /* Shared memory: the neighbour's part by its address; lengths differ. */
    MPI_Comm host;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    int rank, size;
    OK(MPI_Comm_rank(host, &rank));
    OK(MPI_Comm_size(host, &size));
    int code = MPI_Win_allocate_shared((MPI_Aint)sizeof(int) * (rank % 3 ? rank : 0), sizeof(int), MPI_INFO_NULL, host,
                                       &base, &win);
    if (code != MPI_SUCCESS) { /* nobody shares memory here */
        FAILS(code, MPI_ERR_RMA_SHARED);
        return;
    }
    MPI_Aint bytes;
    int *theirs, *before = NULL;
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < (rank % 3 ? rank : 0); i++)
        base[i] = 100 * rank + i;
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(host));
    OK(MPI_Win_sync(win));
    for (int other = 0; other < size; other++) {
        OK(MPI_Win_shared_query(win, other, &bytes, &unit, &theirs));
        CHECK_AT(other, bytes, (other % 3 ? other : 0) * (int)sizeof(int));
        CHECK_AT(other, unit, sizeof(int));
        for (int i = 0; i < bytes / 4; i++)
            CHECK_AT(i, theirs[i], 100 * other + i);
        if (bytes) { /* one after the other */
            CHECK(before == NULL || before == theirs);
            before = theirs + bytes / 4;
        }
    }
    OK(MPI_Win_unlock_all(win));
    if (size > 1) {
        OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs));
        CHECK_EQ(bytes, sizeof(int));
    }
    OK(MPI_Barrier(host));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&host));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    attributes();
    names();
    handlers();
    shared();
    return t_end();
}
