/* What MPI-3 removed and programs built for MPICH or Open MPI may call still (`libmpifort.so.12`, `libmpi_mpifh.so.40`): addresses and extents in INTEGER.
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
    int code = CALL(Type_get_extent)(PMPI_Type_fromint(*type), &lb, &found);
    put(extent, found, code, ierror);
}

void ENTRY(type_lb)(int *type, int *place, int *ierror)
{
    MPI_Aint lb = 0, extent = 0;
    int code = CALL(Type_get_extent)(PMPI_Type_fromint(*type), &lb, &extent);
    put(place, lb, code, ierror);
}

void ENTRY(type_ub)(int *type, int *place, int *ierror)
{
    MPI_Aint lb = 0, extent = 0;
    int code = CALL(Type_get_extent)(PMPI_Type_fromint(*type), &lb, &extent);
    put(place, lb + extent, code, ierror);
}

void ENTRY(type_hvector)(int *count, int *length, int *stride, int *type, int *made, int *ierror)
{
    MPI_Datatype c = MPI_DATATYPE_NULL;
    *ierror = CALL(Type_create_hvector)(*count, *length, *stride, PMPI_Type_fromint(*type), &c);
    *made = PMPI_Type_toint(c);
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
    MPI_Datatype c = MPI_DATATYPE_NULL;
    *ierror = wide ? CALL(Type_create_hindexed)(*count, lengths, wide, PMPI_Type_fromint(*type), &c) : MPI_ERR_NO_MEM;
    *made = PMPI_Type_toint(c);
    free(wide);
}

void ENTRY(type_struct)(int *count, int *lengths, int *at, int *types, int *made, int *ierror)
{
    MPI_Aint *wide = widened(*count, at);
    MPI_Datatype c = MPI_DATATYPE_NULL;
    HANDLES(of, tern_datatype_array, types, *count);
    *ierror = wide ? CALL(Type_create_struct)(*count, lengths, wide, of, &c) : MPI_ERR_NO_MEM;
    *made = PMPI_Type_toint(c);
    HANDLES_DONE(of);
    free(wide);
}

void ENTRY(errhandler_create)(procedure *function, int *made, int *ierror)
{
    MPI_Errhandler c = MPI_ERRHANDLER_NULL;
    *ierror = CALL(Comm_create_errhandler)((MPI_Comm_errhandler_function *) function, &c);
    *made = PMPI_Errhandler_toint(c);
}

void ENTRY(errhandler_get)(int *comm, int *errhandler, int *ierror)
{
    MPI_Errhandler c = MPI_ERRHANDLER_NULL;
    *ierror = CALL(Comm_get_errhandler)(PMPI_Comm_fromint(*comm), &c);
    *errhandler = PMPI_Errhandler_toint(c);
}

void ENTRY(errhandler_set)(int *comm, int *errhandler, int *ierror)
{
    *ierror = CALL(Comm_set_errhandler)(PMPI_Comm_fromint(*comm), PMPI_Errhandler_fromint(*errhandler));
}

/* Has no operation in C. */
void ENTRY(f_sync_reg)(void *buffer)
{
    (void) buffer;
}
