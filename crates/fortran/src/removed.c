/* What MPI-3 removed and programs built for MPICH may call still (`libmpifort.so.12`): addresses and extents in INTEGER.
 * One that does not fit is cut, so that distances are right, and said so by the code. */
#include "runtime.h"

static void put(int *to, MPI_Aint value, int code, int *ierror)
{
    if (code == MPI_SUCCESS) {
        *to = (int) value;
        if (*to != value) code = MPI_ERR_ARG;
    }
    *ierror = code;
}

void ENTRY(address)(void *location, int *address, int *ierror)
{
    MPI_Aint found = 0;
    int code = CALL(Get_address)(tern_choice(location), &found);
    put(address, found, code, ierror);
}

void ENTRY(type_extent)(int *type, int *extent, int *ierror)
{
    MPI_Aint lb = 0, found = 0;
    int code = CALL(Type_get_extent)(*type, &lb, &found);
    put(extent, found, code, ierror);
}

void ENTRY(type_lb)(int *type, int *place, int *ierror)
{
    MPI_Aint lb = 0, extent = 0;
    int code = CALL(Type_get_extent)(*type, &lb, &extent);
    put(place, lb, code, ierror);
}

void ENTRY(type_ub)(int *type, int *place, int *ierror)
{
    MPI_Aint lb = 0, extent = 0;
    int code = CALL(Type_get_extent)(*type, &lb, &extent);
    put(place, lb + extent, code, ierror);
}

void ENTRY(type_hvector)(int *count, int *length, int *stride, int *type, int *made, int *ierror)
{
    *ierror = CALL(Type_create_hvector)(*count, *length, *stride, *type, made);
}

/* Displacements as C has them; NULL without memory. */
static MPI_Aint *widened(int count, const int *narrow)
{
    MPI_Aint *wide = malloc((count > 0 ? (size_t) count : 1) * sizeof *wide);
    for (int i = 0; wide && i < count; i++) wide[i] = narrow[i];
    return wide;
}

void ENTRY(type_hindexed)(int *count, int *lengths, int *at, int *type, int *made, int *ierror)
{
    MPI_Aint *wide = widened(*count, at);
    *ierror = wide ? CALL(Type_create_hindexed)(*count, lengths, wide, *type, made) : MPI_ERR_NO_MEM;
    free(wide);
}

void ENTRY(type_struct)(int *count, int *lengths, int *at, int *types, int *made, int *ierror)
{
    MPI_Aint *wide = widened(*count, at);
    *ierror = wide ? CALL(Type_create_struct)(*count, lengths, wide, types, made) : MPI_ERR_NO_MEM;
    free(wide);
}

void ENTRY(errhandler_create)(procedure *function, int *made, int *ierror)
{
    *ierror = CALL(Comm_create_errhandler)((MPI_Comm_errhandler_function *) function, made);
}

void ENTRY(errhandler_get)(int *comm, int *errhandler, int *ierror)
{
    *ierror = CALL(Comm_get_errhandler)(*comm, errhandler);
}

void ENTRY(errhandler_set)(int *comm, int *errhandler, int *ierror)
{
    *ierror = CALL(Comm_set_errhandler)(*comm, *errhandler);
}

/* Has no operation in C. */
void ENTRY(f_sync_reg)(void *buffer)
{
    (void) buffer;
}
