/* Counters of Tern, as its tools interface gives them. */
#include "tern_test.h"

enum { T_COUNTERS = 4 };

/* What has been counted since this counter was asked for first. */
static uint64_t t_counted(const char *name) {
    static MPI_T_pvar_session session;
    static MPI_T_pvar_handle handles[T_COUNTERS];
    static const char *names[T_COUNTERS];
    int at = 0, provided, index, count;
    uint64_t value = 0;
    while (names[at] && strcmp(names[at], name) != 0)
        if (++at == T_COUNTERS)
            t_fail(__FILE__, __LINE__, "more than %d counters", T_COUNTERS);
    if (!names[0]) {
        OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
        OK(MPI_T_pvar_session_create(&session));
    }
    if (!names[at]) {
        OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[at], &count));
        OK(MPI_T_pvar_start(session, handles[at]));
        names[at] = name;
    }
    OK(MPI_T_pvar_read(session, handles[at], &value));
    return value;
}
