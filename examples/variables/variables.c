/* Prints at MPI_Finalize, for every rank, what its performance variables say that are not 0: a tool to
 * preload, for any MPI library with the standard ABI.
 *
 *   mpicc -shared -fPIC -o variables.so variables.c
 *   mpiexec -n 4 -env LD_PRELOAD $PWD/variables.so ./program
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_T_pvar_session session;
static MPI_T_pvar_handle *handles;
static int count;

/* Handles count from here on. */
__attribute__((constructor)) static void watch(void) {
    int provided, elements, bind, class;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return;
    MPI_T_pvar_get_num(&count);
    handles = calloc((size_t)count, sizeof *handles);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < count; i++) {
        MPI_T_pvar_get_info(i, NULL, NULL, NULL, &class, &type, NULL, NULL, NULL, &bind, NULL, NULL, NULL);
        if (type == MPI_UNSIGNED_LONG_LONG && bind == MPI_T_BIND_NO_OBJECT)
            MPI_T_pvar_handle_alloc(session, i, NULL, &handles[i], &elements);
    }
    MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES);
}

int MPI_Finalize(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < count; i++) {
        unsigned long long value = 0;
        char name[128], desc[256];
        if (handles[i] == MPI_T_PVAR_HANDLE_NULL || MPI_T_pvar_read(session, handles[i], &value) != MPI_SUCCESS)
            continue;
        MPI_T_pvar_get_info(i, name, &(int){sizeof name}, NULL, NULL, &(MPI_Datatype){MPI_DATATYPE_NULL}, NULL,
                            desc, &(int){sizeof desc}, NULL, NULL, NULL, NULL);
        if (value > 0)
            fprintf(stderr, "rank %d: %-28s %15llu  %s\n", rank, name, value, desc);
    }
    return PMPI_Finalize();
}
