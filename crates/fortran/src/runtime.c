/* What the functions of the Fortran bindings have in common; see runtime.h. Names with a trailing underscore are called
 * from Fortran. */
#include "runtime.h"

#include <stdio.h>
#include <string.h>

/* A function of the application gets addresses of handles from the library. A handle of Tern is below 2^31, and its
 * integer is the same number: the first four bytes are the integer that Fortran expects. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "addresses of handles cannot be passed on to Fortran on this machine"
#endif

/* Compilers align common blocks as they like, and linkers warn where two definitions differ. */
#define COMMON __attribute__((aligned(32)))
#ifdef TERN_MPICH
COMMON struct bottom mpipriv1_;
COMMON struct ignored mpipriv2_;
COMMON struct no_arguments mpiprivc_ = { " ", " " };
COMMON int mpifcmb5_[1], mpifcmb9_[1], mpifcmba_[1];
#else
COMMON int mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_buffer_automatic_;
COMMON int mpi_fortran_unweighted_[1], mpi_fortran_weights_empty_[1], mpi_fortran_errcodes_ignore_[1];
COMMON MPI_Status mpi_fortran_status_ignore_, mpi_fortran_statuses_ignore_;
COMMON char mpi_fortran_argv_null_[1] = " ", mpi_fortran_argvs_null_[1] = " ";
#endif

#ifdef TERN_OTHER
/* Variables of the library in C, by which C knows what Fortran hands on (MPI 5.0 section 19.3.5). The standard ABI's header has
 * them as addresses. */
#undef MPI_F_STATUS_IGNORE
#undef MPI_F_STATUSES_IGNORE
extern MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
__attribute__((constructor)) static void tell_addresses(void)
{
    MPI_F_STATUS_IGNORE = STANDS_FOR_STATUS_IGNORE;
    MPI_F_STATUSES_IGNORE = STANDS_FOR_STATUSES_IGNORE;
}
#endif

static void *room(size_t bytes)
{
    void *place = malloc(bytes ? bytes : 1);
    if (!place) {
        fprintf(stderr, "tern: no memory for %zu bytes of arguments of Fortran\n", bytes);
        PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
        abort();
    }
    return place;
}

/* ---- Arrays of handles ------------------------------------------------------------------------- */

#define DEFINE_ARRAY_OF(type, c_type, name)                                                                            \
    void *tern_##type##_array(const int *fortran, MPI_Count n, void **few)                                             \
    {                                                                                                                  \
        c_type *made = n > FEW ? room((size_t) n * sizeof *made) : (void *) few;                                       \
        for (MPI_Count i = 0; i < n; i++) made[i] = PMPI_##name##_fromint(fortran[i]);                                 \
        return made;                                                                                                   \
    }                                                                                                                  \
    void tern_##type##_back(int *fortran, void *c, MPI_Count n)                                                        \
    {                                                                                                                  \
        for (MPI_Count i = 0; i < n; i++) fortran[i] = PMPI_##name##_toint(((c_type *) c)[i]);                         \
    }
DEFINE_ARRAY_OF(request, MPI_Request, Request)
DEFINE_ARRAY_OF(datatype, MPI_Datatype, Type)
DEFINE_ARRAY_OF(info, MPI_Info, Info)

MPI_Count tern_peers(int fortran, enum peers which)
{
    MPI_Comm comm = PMPI_Comm_fromint(fortran);
    int n = 0, out = 0, is_inter = 0, topology = MPI_UNDEFINED, rank, weighted;
    if (comm == MPI_COMM_NULL) return 0; /* an error of the operation, not of what is asked here */
    if (which == PEERS_ALL) {
        if (PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return 0;
        int code = is_inter ? PMPI_Comm_remote_size(comm, &n) : PMPI_Comm_size(comm, &n);
        return code == MPI_SUCCESS ? n : 0;
    }
    if (PMPI_Topo_test(comm, &topology) != MPI_SUCCESS) return 0;
    switch (topology) {
    case MPI_CART:
        if (PMPI_Cartdim_get(comm, &n) != MPI_SUCCESS) return 0;
        return 2 * n;
    case MPI_GRAPH:
        PMPI_Comm_rank(comm, &rank);
        if (PMPI_Graph_neighbors_count(comm, rank, &n) != MPI_SUCCESS) return 0;
        return n;
    case MPI_DIST_GRAPH:
        if (PMPI_Dist_graph_neighbors_count(comm, &n, &out, &weighted) != MPI_SUCCESS) return 0;
        return which == PEERS_OUT ? out : n;
    default:
        return 0;
    }
}

MPI_Count tern_senders(void *sendbuf, int comm)
{
    return sendbuf == MPI_IN_PLACE ? 0 : tern_peers(comm, PEERS_ALL);
}

int tern_is_root(int root, int fortran)
{
    MPI_Comm comm = PMPI_Comm_fromint(fortran);
    int rank = MPI_UNDEFINED;
    if (comm != MPI_COMM_NULL) PMPI_Comm_rank(comm, &rank);
    return rank == root;
}

/* ---- Strings ----------------------------------------------------------------------------------- */

static size_t trimmed(const char *text, size_t len)
{
    while (len && text[len - 1] == ' ') len--;
    return len;
}

char *tern_text(const char *text, size_t len, int leading)
{
    len = trimmed(text, len);
    while (leading && len && *text == ' ') text++, len--;
    char *made = room(len + 1);
    memcpy(made, text, len);
    made[len] = 0;
    return made;
}

char *tern_room(long long len)
{
    char *made = room(len > 0 ? (size_t) len : 1);
    *made = 0;
    return made;
}

void tern_text_back(char *to, size_t len, const char *from)
{
    size_t n = strlen(from);
    n = n < len ? n : len;
    memcpy(to, from, n);
    memset(to + n, ' ', len - n);
}

/* Puts strings that lie `step` apart, and NULL, at `pointers`, their bytes at `*bytes`; a blank one ends them unless
 * `count` says how many there are. */
static size_t measure(const char *texts, size_t len, size_t step, long long count, size_t *bytes)
{
    size_t n = 0;
    for (; count < 0 ? trimmed(texts, len) > 0 : n < (size_t) count; n++, texts += step) *bytes += trimmed(texts, len) + 1;
    return n;
}

static char *fill(char **pointers, char *bytes, const char *texts, size_t len, size_t step, size_t n)
{
    for (size_t i = 0; i < n; i++, texts += step) {
        size_t used = trimmed(texts, len);
        pointers[i] = memcpy(bytes, texts, used);
        bytes[used] = 0;
        bytes += used + 1;
    }
    pointers[n] = NULL;
    return bytes;
}

void *tern_texts(const char *texts, size_t len, long long count)
{
    if (texts == STANDS_FOR_ARGV_NULL) return MPI_ARGV_NULL;
    size_t bytes = 0, n = measure(texts, len, len, count, &bytes);
    char **made = room((n + 1) * sizeof *made + bytes);
    fill(made, (char *) (made + n + 1), texts, len, len, n);
    return made;
}

void *tern_text_lists(const char *texts, size_t len, long long count)
{
    if (texts == STANDS_FOR_ARGVS_NULL) return MPI_ARGVS_NULL;
    size_t step = len * (size_t) (count > 0 ? count : 1), all = 0, bytes = 0;
    for (long long i = 0; i < count; i++) all += measure(texts + (size_t) i * len, len, step, -1, &bytes) + 1;
    char ***lists = room((size_t) (count > 0 ? count : 0) * sizeof *lists + all * sizeof(char *) + bytes);
    char **pointers = (char **) (lists + (count > 0 ? count : 0)), *at = (char *) (pointers + all);
    for (long long i = 0; i < count; i++) {
        size_t ignored = 0, n = measure(texts + (size_t) i * len, len, step, -1, &ignored);
        lists[i] = pointers;
        at = fill(pointers, at, texts + (size_t) i * len, len, step, n);
        pointers += n + 1;
    }
    return lists;
}

/* ---- Procedures of the application ------------------------------------------------------------ */

struct callbacks *tern_callbacks(MPI_Aint extra, procedure *first, procedure *second, procedure *third)
{
    struct callbacks *made = room(sizeof *made);
    *made = (struct callbacks) { extra, first, second, third };
    return made;
}

/* `number` is the integer in which Fortran has attributes: INTEGER in those that were deprecated by MPI-2. */
#define DEFINE_ATTRIBUTE_FUNCTIONS(kind, handle, convert, number)                                                      \
    COPY_FUNCTION(kind, handle object)                                                                                 \
    {                                                                                                                  \
        struct callbacks *state = extra;                                                                               \
        int fortran = convert(object), yes = 0, code = MPI_SUCCESS;                                                    \
        number passed = (number) state->extra, from = (number) tern_unboxed(in), to = 0;                               \
        ((void (*)(int *, int *, number *, number *, number *, int *, int *)) state->first)(                           \
            &fortran, &keyval, &passed, &from, &to, &yes, &code);                                                      \
        *(void **) out = tern_boxed(to);                                                                               \
        *flag = yes != 0;                                                                                              \
        return code;                                                                                                   \
    }                                                                                                                  \
    DELETE_FUNCTION(kind, handle object)                                                                               \
    {                                                                                                                  \
        struct callbacks *state = extra;                                                                               \
        int fortran = convert(object), code = MPI_SUCCESS;                                                             \
        number passed = (number) state->extra, from = (number) tern_unboxed(value);                                    \
        ((void (*)(int *, int *, number *, number *, int *)) state->second)(&fortran, &keyval, &from, &passed, &code); \
        return code;                                                                                                   \
    }
DEFINE_ATTRIBUTE_FUNCTIONS(Comm, MPI_Comm, PMPI_Comm_toint, MPI_Aint)
DEFINE_ATTRIBUTE_FUNCTIONS(Type, MPI_Datatype, PMPI_Type_toint, MPI_Aint)
DEFINE_ATTRIBUTE_FUNCTIONS(Win, MPI_Win, PMPI_Win_toint, MPI_Aint)
DEFINE_ATTRIBUTE_FUNCTIONS(, MPI_Comm, PMPI_Comm_toint, int)

/* The predefined ones, which a program passes, or calls itself. */
#define DEFINE_PREDEFINED(name, number)                                                                                \
    void mpi_##name##null_copy_fn_(int *object, int *keyval, number *extra, number *in, number *out, int *flag, int *code) \
    {                                                                                                                  \
        (void) object, (void) keyval, (void) extra, (void) in, (void) out;                                             \
        *flag = 0;                                                                                                     \
        *code = MPI_SUCCESS;                                                                                           \
    }                                                                                                                  \
    void mpi_##name##dup_fn_(int *object, int *keyval, number *extra, number *in, number *out, int *flag, int *code)   \
    {                                                                                                                  \
        (void) object, (void) keyval, (void) extra;                                                                    \
        *out = *in;                                                                                                    \
        *flag = 1;                                                                                                     \
        *code = MPI_SUCCESS;                                                                                           \
    }                                                                                                                  \
    void mpi_##name##null_delete_fn_(int *object, int *keyval, number *value, number *extra, int *code)                \
    {                                                                                                                  \
        (void) object, (void) keyval, (void) value, (void) extra;                                                      \
        *code = MPI_SUCCESS;                                                                                           \
    }
#ifdef TERN_OTHER
/* Other libraries have these under both names. */
#define DEFINE_PROFILING(name)                                                                                         \
    extern __typeof__(mpi_##name##_) pmpi_##name##_ __attribute__((alias("mpi_" #name "_")));
#else
#define DEFINE_PROFILING(name)
#endif
DEFINE_PREDEFINED(comm_, MPI_Aint)
DEFINE_PREDEFINED(type_, MPI_Aint)
DEFINE_PREDEFINED(win_, MPI_Aint)
DEFINE_PREDEFINED(, int)
DEFINE_PROFILING(comm_null_copy_fn)
DEFINE_PROFILING(comm_dup_fn)
DEFINE_PROFILING(comm_null_delete_fn)
DEFINE_PROFILING(type_null_copy_fn)
DEFINE_PROFILING(type_dup_fn)
DEFINE_PROFILING(type_null_delete_fn)
DEFINE_PROFILING(win_null_copy_fn)
DEFINE_PROFILING(win_dup_fn)
DEFINE_PROFILING(win_null_delete_fn)
DEFINE_PROFILING(null_copy_fn)
DEFINE_PROFILING(dup_fn)
DEFINE_PROFILING(null_delete_fn)

int tern_call_GrequestQueryFn(void *extra, MPI_Status *status)
{
    struct callbacks *state = extra;
    int code = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, MPI_Status *, int *)) state->first)(&state->extra, status, &code);
    return code;
}

int tern_call_GrequestFreeFn(void *extra)
{
    struct callbacks *state = extra;
    int code = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, int *)) state->second)(&state->extra, &code);
    free(state); /* the last call (MPI 5.0 section 13.2) */
    return code;
}

int tern_call_GrequestCancelFn(void *extra, int complete)
{
    struct callbacks *state = extra;
    int code = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, int *, int *)) state->third)(&state->extra, &complete, &code);
    return code;
}

int tern_call_DatarepExtentFn(MPI_Datatype datatype, MPI_Aint *extent, void *extra)
{
    struct callbacks *state = extra;
    int fortran = PMPI_Type_toint(datatype), code = MPI_SUCCESS;
    ((void (*)(int *, MPI_Aint *, MPI_Aint *, int *)) state->third)(&fortran, extent, &state->extra, &code);
    return code;
}

#define DEFINE_CONVERSION(name, which, number)                                                                         \
    int tern_call_##name(void *userbuf, MPI_Datatype datatype, number count, void *filebuf, MPI_Offset position,       \
                         void *extra)                                                                                  \
    {                                                                                                                  \
        struct callbacks *state = extra;                                                                               \
        int fortran = PMPI_Type_toint(datatype), code = MPI_SUCCESS;                                                   \
        ((void (*)(void *, int *, number *, void *, MPI_Offset *, MPI_Aint *, int *)) state->which)(                   \
            userbuf, &fortran, &count, filebuf, &position, &state->extra, &code);                                      \
        return code;                                                                                                   \
    }
DEFINE_CONVERSION(read, first, int)
DEFINE_CONVERSION(write, second, int)
DEFINE_CONVERSION(read_c, first, MPI_Count)
DEFINE_CONVERSION(write_c, second, MPI_Count)

void mpi_conversion_fn_null_(void) {}
void mpi_conversion_fn_null_c_(void) {}
DEFINE_PROFILING(conversion_fn_null)

int tern_is_conversion_null(procedure *function)
{
    return function == mpi_conversion_fn_null_ || function == mpi_conversion_fn_null_c_;
}

/* ---- Attributes, errors, what the library is told --------------------------------------------------- */

MPI_Aint tern_attribute(int keyval, void *value)
{
    switch (tern_keyval(keyval)) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
        return *(int *) value;
    case MPI_WIN_SIZE:
        return *(MPI_Aint *) value;
    default:
        return tern_unboxed(value);
    }
}

void tern_announce(void)
{
    int32_t yes = 1, no = 0, known_yes, known_no;
    int is_set = 0;
    MPI_Info info = MPI_INFO_NULL;
    if (PMPI_Abi_get_fortran_booleans(sizeof yes, &known_yes, &known_no, &is_set) == MPI_SUCCESS && !is_set)
        PMPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no);
    if (PMPI_Abi_get_fortran_info(&info) != MPI_SUCCESS) return;
    if (info == MPI_INFO_NULL) {
        PMPI_Info_create(&info);
        PMPI_Info_set(info, "mpi_logical_size", "4");
        PMPI_Info_set(info, "mpi_integer_size", "4");
        PMPI_Info_set(info, "mpi_real_size", "4");
        PMPI_Info_set(info, "mpi_double_precision_size", "8");
        PMPI_Abi_set_fortran_info(info);
    }
    PMPI_Info_free(&info);
}

#ifndef TERN_OTHER
/* ---- What has no operation in C ------------------------------------------------------------------- */

#define DEFINE_COMPARISON(name)                                                                                        \
    int mpi_##name##_eq_(const int *a, const int *b)                                                                   \
    {                                                                                                                  \
        return *a == *b;                                                                                               \
    }                                                                                                                  \
    int mpi_##name##_ne_(const int *a, const int *b)                                                                   \
    {                                                                                                                  \
        return *a != *b;                                                                                               \
    }
DEFINE_COMPARISON(comm)
DEFINE_COMPARISON(group)
DEFINE_COMPARISON(win)
DEFINE_COMPARISON(file)
DEFINE_COMPARISON(session)
DEFINE_COMPARISON(message)
DEFINE_COMPARISON(info)
DEFINE_COMPARISON(errhandler)
DEFINE_COMPARISON(request)
DEFINE_COMPARISON(op)
DEFINE_COMPARISON(datatype)

static void copy_status(const MPI_Status *from, MPI_Status *to, int *ierror)
{
    *to = *from;
    if (ierror) *ierror = MPI_SUCCESS;
}

#define DEFINE_OTHERS(prefix)                                                                                          \
    void prefix##status_f2f08_(const MPI_Status *from, MPI_Status *to, int *ierror)                                    \
    {                                                                                                                  \
        copy_status(from, to, ierror);                                                                                 \
    }                                                                                                                  \
    void prefix##status_f082f_(const MPI_Status *from, MPI_Status *to, int *ierror)                                    \
    {                                                                                                                  \
        copy_status(from, to, ierror);                                                                                 \
    }                                                                                                                  \
    void prefix##f_sync_reg_(void *buffer)                                                                             \
    {                                                                                                                  \
        (void) buffer;                                                                                                 \
    }                                                                                                                  \
    void prefix##f_sync_reg_f08ts_(struct descriptor *buffer)                                                          \
    {                                                                                                                  \
        (void) buffer;                                                                                                 \
    }
DEFINE_OTHERS(mpi_)
DEFINE_OTHERS(pmpi_)

/* MPI_Sizeof, for each type and kind of Fortran by a name of its own. */
#define DEFINE_SIZEOF(name)                                                                                            \
    void mpi_sizeof_##name(const struct descriptor *x, int *size, int *ierror)                                         \
    {                                                                                                                  \
        *size = (int) x->elem_len;                                                                                     \
        if (ierror) *ierror = MPI_SUCCESS;                                                                             \
    }
DEFINE_SIZEOF(integer1)
DEFINE_SIZEOF(integer2)
DEFINE_SIZEOF(integer4)
DEFINE_SIZEOF(integer8)
DEFINE_SIZEOF(real4)
DEFINE_SIZEOF(real8)
DEFINE_SIZEOF(real16)
DEFINE_SIZEOF(complex4)
DEFINE_SIZEOF(complex8)
DEFINE_SIZEOF(complex16)
DEFINE_SIZEOF(logical4)
DEFINE_SIZEOF(character)

/* Not bind(C), so what `x` is described by is the compiler's matter; programs that were built before call the other one. */
void mpi_sizeof_logical4_(const void *x, int *size, int *ierror)
{
    (void) x;
    *size = 4;
    if (ierror) *ierror = MPI_SUCCESS;
}
#endif
