/* Sections of arrays: described by datatypes, so that nothing is copied, or copied where a datatype will not do. */
#include "runtime.h"

#include <string.h>

enum { MAX_RANK = 15 };

#define HAS_LESS STRIDES ": it has less than the count and the datatype say"

int tern_is_contiguous(const struct descriptor *array, const void *base)
{
    if (base != array->base) return 1; /* stands for something else */
    ptrdiff_t step = (ptrdiff_t) array->elem_len;
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent == 0) return 1;
        if (array->dim[i].extent != 1 && array->dim[i].stride != step) return 0;
        step *= array->dim[i].extent;
    }
    return 1;
}

/* The shape of a section without dimensions of one element; neighbouring ones that are one run are one. */
struct shape {
    int rank;
    MPI_Count extent[MAX_RANK], stride[MAX_RANK];
};

static struct shape shape_of(const struct descriptor *array)
{
    struct shape shape = { 0 };
    for (int i = 0; i < array->rank; i++) {
        MPI_Count extent = array->dim[i].extent, stride = array->dim[i].stride;
        int last = shape.rank - 1;
        if (extent == 1) continue;
        if (last >= 0 && stride == shape.stride[last] * shape.extent[last]) {
            shape.extent[last] *= extent;
        } else {
            shape.extent[shape.rank] = extent;
            shape.stride[shape.rank++] = stride;
        }
    }
    return shape;
}

/* The first `n` elements of a shape: whole slices of the last dimension, then of the one before it, and so on. */
static int first_elements(const struct shape *shape, MPI_Count n, MPI_Datatype element, MPI_Datatype *made)
{
    MPI_Datatype slices[MAX_RANK + 1], blocks[MAX_RANK];
    MPI_Count sizes[MAX_RANK + 1] = { 1 }, lengths[MAX_RANK], places[MAX_RANK], place = 0;
    int used = 0, slices_made = 0, code = MPI_SUCCESS;
    slices[0] = element;
    for (int i = 0; i < shape->rank && code == MPI_SUCCESS; i++) {
        sizes[i + 1] = sizes[i] * shape->extent[i];
        code = PMPI_Type_create_hvector_c(shape->extent[i], 1, shape->stride[i], slices[i], &slices[i + 1]);
        if (code == MPI_SUCCESS) slices_made++;
    }
    for (int i = shape->rank - 1; i >= 0 && code == MPI_SUCCESS; i--) {
        MPI_Count many = n / sizes[i];
        n -= many * sizes[i];
        if (many == 0) continue;
        code = PMPI_Type_create_hvector_c(many, 1, shape->stride[i], slices[i], &blocks[used]);
        lengths[used] = 1;
        places[used++] = place;
        place += many * shape->stride[i];
    }
    if (code == MPI_SUCCESS) code = PMPI_Type_create_struct_c(used, lengths, places, blocks, made);
    for (int i = 0; i < used; i++) PMPI_Type_free(&blocks[i]);
    for (int i = 1; i <= slices_made; i++) PMPI_Type_free(&slices[i]);
    return code;
}

/* Whether a section consists of the datatype that is passed, and so may be described: how many of it are one element, and all. What
 * is no datatype is the operation's to say, or it is of no account there. */
static int consists(struct section *made, const struct descriptor *array, MPI_Count *each, MPI_Count *all)
{
    MPI_Count lb, extent, elem_len = (MPI_Count) array->elem_len;
    if (made->type == MPI_DATATYPE_NULL || PMPI_Type_get_extent_c(made->type, &lb, &extent) != MPI_SUCCESS) return 0;
    made->refused = STRIDES ": its elements are not a whole number of the datatype each";
    if (array->rank > MAX_RANK || lb != 0 || extent <= 0 || elem_len % extent != 0) return 0;
    *each = *all = elem_len / extent;
    for (int i = 0; i < array->rank; i++) *all *= array->dim[i].extent;
    return 1;
}

static void describe(struct section *made, int code, MPI_Datatype described, MPI_Count count)
{
    made->refused = STRIDES ": no datatype can be made of it";
    if (code != MPI_SUCCESS || PMPI_Type_commit(&described) != MPI_SUCCESS) return;
    made->type = described;
    made->count = count;
    made->made = 1;
    made->refused = NULL;
}

void tern_section_of(struct section *made, const struct descriptor *array, int whole)
{
    MPI_Count each, all, count = made->count;
    MPI_Datatype element = made->type, described = MPI_DATATYPE_NULL;
    int code;
    if ((whole && count <= 0) || !consists(made, array, &each, &all)) return;
    struct shape shape = shape_of(array);
    int is_even = shape.rank == 1 && shape.stride[0] > 0;
    made->refused = HAS_LESS;
    if (whole && count > all) return;
    made->refused = STRIDES ": the count ends within one of its elements";
    if (count % each != 0) return;
    made->refused = STRIDES ": what goes to each rank is not described by one datatype";
    if (!whole && (each != 1 || !is_even)) return;
    if (each > 1 && PMPI_Type_contiguous_c(each, made->type, &element) != MPI_SUCCESS) return;
    if (is_even) {
        code = PMPI_Type_create_resized_c(element, 0, shape.stride[0], &described);
        count = whole ? count / each : count;
    } else {
        code = first_elements(&shape, count / each, element, &described);
        count = 1;
    }
    if (each > 1) PMPI_Type_free(&element);
    describe(made, code, described, count);
}

/* Partitions lie one behind the other by the extent of a datatype: that of a slice of the last dimension, which is as long as
 * the stride there, be it negative. */
void tern_partitions_of(struct section *made, const struct descriptor *array, MPI_Count partitions)
{
    MPI_Count each, all, slice, count = made->count;
    MPI_Datatype inner, outer;
    if (partitions == 1) tern_section_of(made, array, 1);
    if (partitions <= 1 || count <= 0 || !consists(made, array, &each, &all)) return;
    struct shape shape = shape_of(array);
    int last = shape.rank - 1;
    slice = all / shape.extent[last];
    made->refused = HAS_LESS;
    if (count > all / partitions) return;
    made->refused = STRIDES ": its partitions do not lie at equal distances";
    if (count % slice != 0) return;
    int code = PMPI_Type_contiguous_c(each, made->type, &inner);
    for (int i = 0; i <= last && code == MPI_SUCCESS; i++) {
        code = i == last ? PMPI_Type_create_resized_c(inner, 0, shape.stride[i], &outer)
                         : PMPI_Type_create_hvector_c(shape.extent[i], 1, shape.stride[i], inner, &outer);
        PMPI_Type_free(&inner);
        inner = outer;
    }
    describe(made, code, inner, count / slice);
}

/* What is under way keeps the datatype (MPI 5.0 section 5.1.9). */
void tern_section_done(struct section *made)
{
    if (made->made) PMPI_Type_free(&made->type);
}

/* One element of a section after the other, the first dimension first. */
struct place {
    char *at;
    ptrdiff_t index[MAX_RANK];
};

static struct place first_place(const struct descriptor *array)
{
    return (struct place) { .at = array->base };
}

static void next_place(const struct descriptor *array, struct place *place)
{
    for (int i = 0; i < array->rank; i++) {
        place->at += array->dim[i].stride;
        if (++place->index[i] < array->dim[i].extent) return;
        place->at -= array->dim[i].stride * array->dim[i].extent;
        place->index[i] = 0;
    }
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* A copy of a section. What was in it stays beside it, so that only what has come goes back: other elements of the section
 * may belong to the application meanwhile. */
struct part {
    struct part *next;
    char *packed, *before;
    long long elements;
    int is_written;
    struct descriptor array;
    /* Its dimensions lie behind it. */
};

struct shadow {
    struct part *parts;
};

/* In libmpi_abi.so.1, and no part of MPI. */
enum { BEGIN = 0, END = 1, FREE = 2 };
extern void tern_copies(MPI_Request request, void *state, void (*call)(void *state, int what));

static long long elements_of(const struct descriptor *array)
{
    long long elements = 1;
    for (int i = 0; i < array->rank; i++) elements *= array->dim[i].extent;
    return elements;
}

static void copy_in(struct part *part)
{
    const struct descriptor *array = &part->array;
    struct place place = first_place(array);
    for (long long i = 0; i < part->elements; i++, next_place(array, &place))
        memcpy(part->packed + i * (long long) array->elem_len, place.at, array->elem_len);
    if (part->before) memcpy(part->before, part->packed, part->elements * array->elem_len);
}

static void copy_out(struct part *part)
{
    const struct descriptor *array = &part->array;
    struct place place = first_place(array);
    if (!part->is_written) return;
    for (long long i = 0; i < part->elements; i++, next_place(array, &place)) {
        long long from = i * (long long) array->elem_len;
        if (memcmp(part->packed + from, part->before + from, array->elem_len))
            memcpy(place.at, part->packed + from, array->elem_len);
    }
}

static void call_shadow(void *state, int what)
{
    struct shadow *shadow = state;
    for (struct part *part = shadow->parts, *next; part; part = next) {
        next = part->next;
        if (what == BEGIN) copy_in(part);
        if (what == END) copy_out(part);
        if (what != FREE) continue;
        free(part->packed);
        free(part->before);
        free(part);
    }
    if (what == FREE) free(shadow);
}

void *tern_shadow(struct shadow **shadow, const struct descriptor *array, void *base, int is_written)
{
    if (tern_is_contiguous(array, base)) return base;
    size_t size = sizeof(struct descriptor) + array->rank * sizeof array->dim[0];
    struct part *part = (struct part *) tern_room((long long) (offsetof(struct part, array) + size));
    if (!*shadow) {
        *shadow = (struct shadow *) tern_room(sizeof **shadow);
        (*shadow)->parts = NULL;
    }
    memcpy(&part->array, array, size);
    part->elements = elements_of(array);
    part->is_written = is_written;
    part->packed = tern_room(part->elements * (long long) array->elem_len);
    part->before = is_written ? tern_room(part->elements * (long long) array->elem_len) : NULL;
    part->next = (*shadow)->parts;
    (*shadow)->parts = part;
    copy_in(part);
    return part->packed;
}

void tern_section_copy(struct section *made, const struct descriptor *array, int whole, int is_written,
                       struct shadow **shadow)
{
    MPI_Count lb, extent, true_lb, true_extent, there = elements_of(array) * (MPI_Count) array->elem_len;
    if (PMPI_Type_get_extent_c(made->type, &lb, &extent) != MPI_SUCCESS) return;
    if (PMPI_Type_get_true_extent_c(made->type, &true_lb, &true_extent) != MPI_SUCCESS) return;
    if (true_lb < 0 || extent < 0 || (whole && (made->count - 1) * extent + true_lb + true_extent > there)) return;
    made->base = tern_shadow(shadow, array, made->base, is_written);
    made->refused = NULL;
}

void tern_shadow_done(struct shadow *shadow, int code, const MPI_Request *request)
{
    if (!shadow) return;
    if (code == MPI_SUCCESS && request) {
        tern_copies(*request, shadow, call_shadow);
        return;
    }
    if (code == MPI_SUCCESS) call_shadow(shadow, END);
    call_shadow(shadow, FREE);
}
