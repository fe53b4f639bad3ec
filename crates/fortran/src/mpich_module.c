/* What gfortran calls for module `mpi` of MPICH beside the procedures of the standard (`libmpifort.so.12`): each MPI_Sizeof
 * that is behind the generic name, for scalars and arrays, and comparisons of handles that are derived types. The names are
 * those that gfortran makes of the module's. */

#define SIZEOF(kind, bytes) \
    void __mpi_sizeofs_MOD_mpi_sizeof_##kind(const void *x, int *size, int *ierror) \
    { \
        (void) x; \
        *size = bytes; \
        *ierror = 0; \
    }
#define SIZEOF_BOTH(kind, bytes) SIZEOF(kind, bytes) SIZEOF(kind##v, bytes)

SIZEOF_BOTH(ch, 1)
SIZEOF_BOTH(cx, 8)
SIZEOF_BOTH(d, 8)
SIZEOF_BOTH(i, 4)
SIZEOF_BOTH(i1, 1)
SIZEOF_BOTH(i2, 2)
SIZEOF_BOTH(i8, 8)
SIZEOF_BOTH(l, 4)
SIZEOF_BOTH(r, 4)

/* A handle is a derived type with an INTEGER in it. */
#define COMPARISONS(handle) \
    int __mpi_constants_MOD_##handle##eq(const int *a, const int *b) { return *a == *b; } \
    int __mpi_constants_MOD_##handle##neq(const int *a, const int *b) { return *a != *b; }

COMPARISONS(comm)
COMPARISONS(datatype)
COMPARISONS(errhandler)
COMPARISONS(file)
COMPARISONS(group)
COMPARISONS(info)
COMPARISONS(message)
COMPARISONS(op)
COMPARISONS(request)
COMPARISONS(win)
