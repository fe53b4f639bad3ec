/* What MPI allows at any time is safe for threads at every level (MPI 5.0 sections 11.4.1, 11.6):
 * below MPI_THREAD_MULTIPLE other threads than the one that communicates may use info objects,
 * error classes and codes, error handlers without an object, and the tools interface. Here two do
 * so while the main thread exchanges messages and does the same.
 * args: 0
 * args: 1
 * args: 2
 * timeout: 120
 * not-on: mpich (its tables of info objects and error codes are not safe below MPI_THREAD_MULTIPLE)
 */
#include "../tern_test.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LONG = 200000 };

static _Atomic int over;

static void never(MPI_Session *session, int *code, ...) {
    (void)session, (void)code;
    abort();
}

/* Errors go to MPI_COMM_WORLD's or MPI_COMM_SELF's handler, which return by then. */
static void everything(int me, int round) {
    MPI_Info info, copy;
    char key[32], value[64], text[MPI_MAX_ERROR_STRING];
    int flag, length = sizeof value, class, code, answer, major, minor;
    snprintf(key, sizeof key, "key-%d", me);
    snprintf(value, sizeof value, "value-%d", round);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_get_string(copy, key, &length, text, &flag));
    CHECK(flag);
    CHECK_STR(text, value);
    FAILS(MPI_Info_delete(info, "nothing of the kind"), MPI_ERR_INFO_NOKEY);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&copy));
    if (round % 10 == 0) {
        OK(MPI_Add_error_class(&class));
        OK(MPI_Add_error_code(class, &code));
        OK(MPI_Add_error_string(code, key));
        OK(MPI_Error_class(code, &answer));
        CHECK_EQ(answer, class);
        OK(MPI_Error_string(code, text, &length));
        CHECK_STR(text, key);
    }
    MPI_Errhandler handler;
    OK(MPI_Session_create_errhandler(never, &handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Get_version(&major, &minor));
    OK(MPI_Initialized(&flag));
    CHECK(flag);
}

/* A session of its own with a few performance variables, and the control variables. */
static void tools(int count) {
    MPI_T_pvar_session session;
    CHECK_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    for (int i = 0; i < count; i++) {
        MPI_T_pvar_handle handle;
        int elements;
        unsigned long long value = 0;
        if (MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &elements) != MPI_SUCCESS || elements != 1)
            continue;
        MPI_T_pvar_start(session, handle);
        MPI_T_pvar_read(session, handle, &value);
        CHECK_EQ(MPI_T_pvar_handle_free(session, &handle), MPI_SUCCESS);
    }
    CHECK_EQ(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
}

static void *other(void *argument) {
    int me = (int)(intptr_t)argument, provided, count;
    CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_get_num(&count), MPI_SUCCESS);
    for (int round = 0; !over; round++) {
        everything(me, round);
        if (provided == MPI_THREAD_MULTIPLE && round % 4 == 0)
            tools(count < 40 ? count : 40);
    }
    CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
    return NULL;
}

int main(int argc, char **argv) {
    int provided = -1, levels[3] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED};
    int level = levels[argc > 1 ? atoi(argv[1]) : 0];
    OK(MPI_Init_thread(&argc, &argv, level, &provided));
    t_started();
    CHECK_EQ(provided, level);
    pthread_t threads[2];
    for (intptr_t t = 0; t < 2; t++)
        CHECK(pthread_create(&threads[t], NULL, other, (void *)(t + 1)) == 0);
    unsigned char *out = t_alloc(LONG), *in = t_alloc(LONG);
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    /* Ranks that share cores wait for the threads of all others. */
    int rounds = 400 / t_size;
    for (int round = 0; round < rounds; round++) {
        int bytes = round % 8 ? round : LONG, sum = 0;
        t_fill(out, (size_t)bytes, (uint64_t)(round + t_rank));
        OK(MPI_Sendrecv(out, bytes, MPI_BYTE, next, 0, in, bytes, MPI_BYTE, previous, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        CHECK_FILL(in, bytes, (uint64_t)(round + previous));
        OK(MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK_EQ(sum, round * t_size);
        everything(0, round);
    }
    over = 1;
    for (int t = 0; t < 2; t++)
        CHECK(pthread_join(threads[t], NULL) == 0);
    return t_end();
}
