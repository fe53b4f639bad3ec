/* Every predefined operation on every predefined type, by MPI_Get_accumulate, MPI_Accumulate and MPI_Fetch_and_op: what MPI_Reduce_local makes
 * of the same values, and refused where that refuses. */
// np: 2
// args: create
// args: allocate
// args: create rc
#include "tern_test.h"

enum { COUNT = 7, PART = 512, BYTES = 3 * PART };

typedef struct {
    const char *name;
    MPI_Datatype type;
} Type;

#define T(type) {#type, type}
static const MPI_Op OPS[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC,
                             MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
static MPI_Win win;
static char *base, own[BYTES];
static int next;

/* Of `a` and `b` each element is 0 or the value whose lowest byte is 1: no type has a value there that is none. Bytes between elements
 * and in them that mean nothing stay as they are or not. */
static void fill(char *bytes, MPI_Aint extent, int from) {
    memset(bytes, 0, PART);
    for (int i = 0; i < COUNT; i++)
        bytes[i * extent] = (i + from) & 1;
}

static int differ(const char *got, const char *want, const Type *of, MPI_Aint extent, int count) {
    int size, means = sizeof(long double) > 10 ? 10 : sizeof(long double);
    OK(MPI_Type_size(of->type, &size));
    int has_gaps = strstr(of->name, "LONG_DOUBLE") != NULL || size != extent;
    for (int i = 0; i < count * extent; i++)
        if (got[i] != want[i] && !(has_gaps && i % (extent % 16 ? extent : 16) >= means))
            return 1;
    return 0;
}

static void try(const Type *of, MPI_Op op) {
    char mine[PART], theirs[PART], want[PART], old[PART] = {0}, one[PART] = {0}, got[BYTES];
    MPI_Aint lower, extent;
    OK(MPI_Type_get_extent(of->type, &lower, &extent));
    fill(mine, extent, t_rank);
    fill(theirs, extent, next + 1);
    for (int part = 0; part < 3; part++)
        fill(base + part * PART, extent, t_rank + 1);
    memcpy(want, theirs, PART);
    int is_plain = op == MPI_REPLACE || op == MPI_NO_OP;
    int refused = !is_plain && MPI_Reduce_local(mine, want, COUNT, of->type, op) != MPI_SUCCESS;
    if (op == MPI_REPLACE)
        memcpy(want, mine, PART);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    int codes[3] = {
        MPI_Get_accumulate(mine, COUNT, of->type, old, COUNT, of->type, next, 0, COUNT, of->type, op, win),
        op == MPI_NO_OP ? MPI_SUCCESS : MPI_Accumulate(mine, COUNT, of->type, next, PART, COUNT, of->type, op, win),
        MPI_Fetch_and_op(mine, one, of->type, next, 2 * PART, op, win),
    };
    OK(MPI_Win_unlock(next, win));
    for (int i = 0; i < 3; i++)
        if ((codes[i] != MPI_SUCCESS) != refused)
            t_fail(__FILE__, __LINE__, "%s, operation %d, call %d: %s", of->name, (int)(intptr_t)op, i, t_error(codes[i]));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    OK(MPI_Get(got, BYTES, MPI_BYTE, next, 0, BYTES, MPI_BYTE, win));
    OK(MPI_Win_unlock(next, win));
    if (!refused) {
        int is_wrong = differ(old, theirs, of, extent, COUNT) << 0 | differ(one, theirs, of, extent, 1) << 1;
        is_wrong |= differ(got, want, of, extent, COUNT) << 2 | differ(got + 2 * PART, want, of, extent, 1) << 3;
        is_wrong |= (op != MPI_NO_OP && differ(got + PART, want, of, extent, COUNT)) << 4;
        if (is_wrong)
            t_fail(__FILE__, __LINE__, "%s, operation %d: wrong in places %#x", of->name, (int)(intptr_t)op, is_wrong);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    if (argc > 2) {
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[2], 1);
    }
    t_begin(&argc, &argv);
    const Type types[] = {
        T(MPI_CHAR), T(MPI_SIGNED_CHAR), T(MPI_UNSIGNED_CHAR), T(MPI_SHORT), T(MPI_UNSIGNED_SHORT), T(MPI_INT), T(MPI_UNSIGNED), T(MPI_LONG),
        T(MPI_UNSIGNED_LONG), T(MPI_LONG_LONG), T(MPI_UNSIGNED_LONG_LONG), T(MPI_FLOAT), T(MPI_DOUBLE), T(MPI_LONG_DOUBLE), T(MPI_WCHAR),
        T(MPI_C_BOOL), T(MPI_INT8_T), T(MPI_INT16_T), T(MPI_INT32_T), T(MPI_INT64_T), T(MPI_UINT8_T), T(MPI_UINT16_T), T(MPI_UINT32_T),
        T(MPI_UINT64_T), T(MPI_AINT), T(MPI_COUNT), T(MPI_OFFSET), T(MPI_C_COMPLEX), T(MPI_C_DOUBLE_COMPLEX), T(MPI_C_LONG_DOUBLE_COMPLEX),
        T(MPI_BYTE), T(MPI_FLOAT_INT), T(MPI_DOUBLE_INT), T(MPI_LONG_INT), T(MPI_2INT), T(MPI_SHORT_INT), T(MPI_LONG_DOUBLE_INT),
        T(MPI_CXX_BOOL), T(MPI_CXX_FLOAT_COMPLEX), T(MPI_CXX_DOUBLE_COMPLEX), T(MPI_CXX_LONG_DOUBLE_COMPLEX), T(MPI_CHARACTER), T(MPI_LOGICAL),
        T(MPI_INTEGER), T(MPI_REAL), T(MPI_DOUBLE_PRECISION), T(MPI_COMPLEX), T(MPI_DOUBLE_COMPLEX), T(MPI_2REAL), T(MPI_2DOUBLE_PRECISION),
        T(MPI_2INTEGER), T(MPI_INTEGER1), T(MPI_INTEGER2), T(MPI_INTEGER4), T(MPI_INTEGER8), T(MPI_REAL4), T(MPI_REAL8), T(MPI_PACKED),
    };
    next = (t_rank + 1) % t_size;
    base = own;
    if (argc > 1 && strcmp(argv[1], "allocate") == 0)
        OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    else
        OK(MPI_Win_create(own, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        int size = 0;
        if (types[i].type == MPI_DATATYPE_NULL || MPI_Type_size(types[i].type, &size) != MPI_SUCCESS || size <= 0)
            continue;
        for (size_t j = 0; j < sizeof OPS / sizeof *OPS; j++)
            try(&types[i], OPS[j]);
    }
    OK(MPI_Win_free(&win));
    return t_end();
}
