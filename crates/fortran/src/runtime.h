/* What the functions of the Fortran bindings have in common; see main.rs of crate `fortran`. */
#ifndef TERN_FORTRAN_H
#define TERN_FORTRAN_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* mpi_send_ calls MPI_Send, pmpi_send_ calls PMPI_Send: compiled twice. */
#ifdef TERN_PROFILING
#define ENTRY(name) pmpi_##name##_
#define CALL(name) PMPI_##name
#define NAME_OF(name) "pmpi_" #name "_"
#else
#define ENTRY(name) mpi_##name##_
#define CALL(name) MPI_##name
#define NAME_OF(name) "mpi_" #name "_"
#endif

/* A second name for a function of this file. */
#define SAME(name, of) extern __typeof__(ENTRY(of)) ENTRY(name) __attribute__((alias(NAME_OF(of))));

/* The part of a CFI_cdesc_t (Fortran 2018, 18.5.3) that lies alike with gfortran and flang: between the rank and the
 * dimensions they order what they say of the type differently, which is not needed here. */
struct dimension {
    ptrdiff_t lower_bound, extent, stride; /* stride in bytes */
};
struct descriptor {
    void *base;
    size_t elem_len;
    int version;
    unsigned char rank, other[3];
    struct dimension dim[];
};

/* A procedure of the application, before its type is known. */
typedef void procedure(void);

/* What callbacks are called with in place of their extra state. It lives as long as the process where MPI does
 * not say when the last call was. */
struct callbacks {
    MPI_Aint extra;
    procedure *first, *second, *third;
};
struct callbacks *tern_callbacks(MPI_Aint extra, procedure *first, procedure *second, procedure *third);

#define COPY_FUNCTION(kind, handle)                                                                                    \
    int tern_call_##kind##CopyFn(handle, int keyval, void *extra, void *in, void *out, int *flag)
#define DELETE_FUNCTION(kind, handle) int tern_call_##kind##DeleteFn(handle, int keyval, void *value, void *extra)
COPY_FUNCTION(Comm, MPI_Comm object);
COPY_FUNCTION(Type, MPI_Datatype object);
COPY_FUNCTION(Win, MPI_Win object);
COPY_FUNCTION(, MPI_Comm object);
DELETE_FUNCTION(Comm, MPI_Comm object);
DELETE_FUNCTION(Type, MPI_Datatype object);
DELETE_FUNCTION(Win, MPI_Win object);
DELETE_FUNCTION(, MPI_Comm object);
int tern_call_GrequestQueryFn(void *extra, MPI_Status *status);
int tern_call_GrequestFreeFn(void *extra);
int tern_call_GrequestCancelFn(void *extra, int complete);
int tern_call_DatarepExtentFn(MPI_Datatype datatype, MPI_Aint *extent, void *extra);
MPI_Datarep_conversion_function tern_call_read, tern_call_write;
MPI_Datarep_conversion_function_c tern_call_read_c, tern_call_write_c;
int tern_is_conversion_null(procedure *function);

/* Variables that stand for special addresses, by their own address (MPI 5.0 section 19.1.5). Common blocks of
 * mpif.h and module mpi and variables of module mpi_f08 have these names; the program's are those that count. */
#ifdef TERN_MPICH
extern struct bottom { int bottom, in_place, status_ignore[5]; } mpipriv1_;
extern struct ignored { int statuses[5], errcodes[1]; } mpipriv2_;
extern struct no_arguments { char argvs[1], argv[1]; } mpiprivc_;
extern int mpifcmb5_[1], mpifcmb9_[1], mpifcmba_[1];
#define STANDS_FOR_BOTTOM ((void *) &mpipriv1_.bottom)
#define STANDS_FOR_IN_PLACE ((void *) &mpipriv1_.in_place)
#define STANDS_FOR_BUFFER_AUTOMATIC ((void *) mpifcmba_)
#define STANDS_FOR_STATUS_IGNORE ((void *) mpipriv1_.status_ignore)
#define STANDS_FOR_STATUSES_IGNORE ((void *) mpipriv2_.statuses)
#define STANDS_FOR_UNWEIGHTED mpifcmb5_
#define STANDS_FOR_WEIGHTS_EMPTY mpifcmb9_
#define STANDS_FOR_ERRCODES_IGNORE mpipriv2_.errcodes
#define STANDS_FOR_ARGV_NULL mpiprivc_.argv
#define STANDS_FOR_ARGVS_NULL mpiprivc_.argvs
#else
extern int mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_buffer_automatic_;
extern int mpi_fortran_unweighted_[1], mpi_fortran_weights_empty_[1], mpi_fortran_errcodes_ignore_[1];
extern MPI_Status mpi_fortran_status_ignore_, mpi_fortran_statuses_ignore_;
extern char mpi_fortran_argv_null_[1], mpi_fortran_argvs_null_[1];
#define STANDS_FOR_BOTTOM ((void *) &mpi_fortran_bottom_)
#define STANDS_FOR_IN_PLACE ((void *) &mpi_fortran_in_place_)
#define STANDS_FOR_BUFFER_AUTOMATIC ((void *) &mpi_fortran_buffer_automatic_)
#define STANDS_FOR_STATUS_IGNORE ((void *) &mpi_fortran_status_ignore_)
#define STANDS_FOR_STATUSES_IGNORE ((void *) &mpi_fortran_statuses_ignore_)
#define STANDS_FOR_UNWEIGHTED mpi_fortran_unweighted_
#define STANDS_FOR_WEIGHTS_EMPTY mpi_fortran_weights_empty_
#define STANDS_FOR_ERRCODES_IGNORE mpi_fortran_errcodes_ignore_
#define STANDS_FOR_ARGV_NULL mpi_fortran_argv_null_
#define STANDS_FOR_ARGVS_NULL mpi_fortran_argvs_null_
#endif

static inline void *tern_choice(void *place)
{
    if (place == STANDS_FOR_BOTTOM) return MPI_BOTTOM;
    if (place == STANDS_FOR_IN_PLACE) return MPI_IN_PLACE;
    if (place == STANDS_FOR_BUFFER_AUTOMATIC) return MPI_BUFFER_AUTOMATIC;
    return place;
}
static inline MPI_Status *tern_status(MPI_Status *status)
{
    return status == STANDS_FOR_STATUS_IGNORE ? MPI_STATUS_IGNORE : status;
}
static inline MPI_Status *tern_statuses(MPI_Status *statuses)
{
    return statuses == STANDS_FOR_STATUSES_IGNORE ? MPI_STATUSES_IGNORE : statuses;
}
static inline int *tern_weights(int *weights)
{
    if (weights == STANDS_FOR_UNWEIGHTED) return MPI_UNWEIGHTED;
    return weights == STANDS_FOR_WEIGHTS_EMPTY ? MPI_WEIGHTS_EMPTY : weights;
}
static inline int *tern_errcodes(int *codes)
{
    return codes == STANDS_FOR_ERRCODES_IGNORE ? MPI_ERRCODES_IGNORE : codes;
}
/* MPICH's keys of predefined attributes are even in Fortran and the odd number before in C. */
static inline int tern_keyval(int keyval)
{
#ifdef TERN_MPICH
    if (keyval > 0 && keyval != MPI_KEYVAL_INVALID && keyval % 2 == 0) return keyval - 1;
#endif
    return keyval;
}
static inline int tern_from_1(int index)
{
    return index == MPI_UNDEFINED ? index : index + 1;
}
/* Whether a call about some requests says which have ended: also where one of them has failed. */
static inline int tern_has_ended(int code)
{
    int class = code;
    if (code != MPI_SUCCESS) PMPI_Error_class(code, &class);
    return class == MPI_SUCCESS || class == MPI_ERR_IN_STATUS;
}

/* Arrays of handles; a few need no memory. */
enum { FEW = 32 };
#define HANDLES(c, make, fortran, n) void *few_##c[FEW], *c = make(fortran, n, few_##c)
#define HANDLES_DONE(c) do { if (c != (void *) few_##c) free(c); } while (0)
#define ARRAY_OF(type) \
    void *tern_##type##_array(const int *fortran, MPI_Count n, void **few); \
    void tern_##type##_back(int *fortran, void *c, MPI_Count n);
ARRAY_OF(request)
ARRAY_OF(datatype)
ARRAY_OF(info)

/* How many datatypes an alltoallw takes. */
enum peers { PEERS_ALL, PEERS_OUT, PEERS_IN };
MPI_Count tern_peers(int comm, enum peers which);
/* As above for what it sends: none that mean something with MPI_IN_PLACE. */
MPI_Count tern_senders(void *sendbuf, int comm);

/* Whether this rank is the root, for arguments that mean something there only. */
int tern_is_root(int root, int comm);

/* Strings: trailing blanks go, and leading ones where `leading`; the copy is the caller's. */
char *tern_text(const char *text, size_t len, int leading);
/* Room for a string of the library; a text that stays as it is without success. */
char *tern_room(long long len);
/* The room that C needs for a string of this length. An application may name the greatest number there is. */
static inline int tern_with_zero(int len)
{
    return len < MPI_MAX_LIBRARY_VERSION_STRING ? len + 1 : MPI_MAX_LIBRARY_VERSION_STRING;
}
/* Fills with blanks, or cuts. */
void tern_text_back(char *to, size_t len, const char *from);
/* An array of strings, of `count`, or ended by a blank one if that is negative. One allocation. */
void *tern_texts(const char *texts, size_t len, long long count);
/* `count` arrays of strings; array_of_argv(count, *) of Fortran. */
void *tern_text_lists(const char *texts, size_t len, long long count);

/* The value of an attribute: predefined ones have an address in C. */
MPI_Aint tern_attribute(int keyval, void *value);
/* What the library gets for a value that Fortran sets, and the value of what it has, whoever has set that. */
void *tern_boxed(MPI_Aint value);
MPI_Aint tern_unboxed(void *attribute);

/* Tells the library what LOGICAL and the default kinds are (MPI 5.0 section 20.5). */
void tern_announce(void);

/* Calls that are refused: `operation` fails with an error of class MPI_ERR_BUFFER, through the error handler that its other errors
 * go through. `words` are its arguments as C has them, `text` says why `argument` cannot be passed. In libmpi_abi.so.1, and no
 * part of MPI. */
extern int tern_refuse(const char *operation, const int64_t *words, const char *argument, const char *text);
#define WORD(argument) (int64_t) (intptr_t) (argument)
#define STRIDES "is a section of an array with strides, which cannot be passed here without a copy"

/* A buffer as MPI takes it: of a section that is not contiguous a datatype is made. */
struct section {
    void *base;
    MPI_Count count;
    MPI_Datatype type;
    int made;
    const char *refused; /* why it cannot be passed; NULL of one that can be */
};
int tern_is_contiguous(const struct descriptor *array, const void *base);
/* With `whole`, `count` elements of the datatype; without, any number, by their extent. */
void tern_section_of(struct section *made, const struct descriptor *array, int whole);
/* So many partitions of `count` elements each. */
void tern_partitions_of(struct section *made, const struct descriptor *array, MPI_Count partitions);
void tern_section_done(struct section *made);
static inline void tern_section(struct section *made, const struct descriptor *array, void *base, MPI_Count count,
                                const int *type, int whole)
{
    *made = (struct section) { .base = base, .count = count, .type = PMPI_Type_fromint(*type) };
    if (!tern_is_contiguous(array, base)) tern_section_of(made, array, whole);
}
static inline void tern_partitions(struct section *made, const struct descriptor *array, void *base, MPI_Count count,
                                   const int *type, MPI_Count partitions)
{
    *made = (struct section) { .base = base, .count = count, .type = PMPI_Type_fromint(*type) };
    if (!tern_is_contiguous(array, base)) tern_partitions_of(made, array, partitions);
}

/* Contiguous copies of sections that no datatype describes; NULL as long as there are none. */
struct shadow;
/* The address to pass for a buffer: that of a copy of it, unless it is contiguous. */
void *tern_shadow(struct shadow **shadow, const struct descriptor *array, void *base, int is_written);
/* As `tern_shadow` for a section that was refused, if the count and the datatype, where they say all, are within it. */
void tern_section_copy(struct section *made, const struct descriptor *array, int whole, int is_written,
                       struct shadow **shadow);
/* The operation has returned, or goes on as this request: what has come goes where it belongs when it is complete. */
void tern_shadow_done(struct shadow *shadow, int code, const MPI_Request *request);

#endif
