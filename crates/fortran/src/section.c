/* Sections of arrays: described by datatypes, so that nothing is copied, or copied where a datatype will not do. */
#include "runtime.h"

#include <string.h>

enum { MAX_RANK = 15 };

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

void tern_section_of(struct section *made, const struct descriptor *array, MPI_Count count, MPI_Datatype type, int whole)
{
    struct shape shape = shape_of(array);
    MPI_Count lb, extent, elem_len = (MPI_Count) array->elem_len, elements = 1;
    MPI_Datatype element = type, described = MPI_DATATYPE_NULL;
    int code;
    if (whole && count == 0) return;
    made->refused = 1;
    if (shape.rank > MAX_RANK || PMPI_Type_get_extent_c(type, &lb, &extent) != MPI_SUCCESS) return;
    for (int i = 0; i < shape.rank; i++) elements *= shape.extent[i];
    /* Each element of the array must be a whole number of the datatype. */
    if (lb != 0 || extent <= 0 || elem_len % extent != 0) return;
    MPI_Count each = elem_len / extent;
    int is_even = shape.rank == 1 && shape.stride[0] > 0;
    if ((!whole && (each != 1 || !is_even)) || count % each != 0 || (whole && count / each > elements)) return;
    if (each > 1 && PMPI_Type_contiguous_c(each, type, &element) != MPI_SUCCESS) return;
    if (is_even) {
        code = PMPI_Type_create_resized_c(element, 0, shape.stride[0], &described);
        if (whole) made->count = count / each;
    } else {
        code = first_elements(&shape, count / each, element, &described);
        made->count = 1;
    }
    if (each > 1) PMPI_Type_free(&element);
    if (code != MPI_SUCCESS || PMPI_Type_commit(&described) != MPI_SUCCESS) return;
    made->type = described;
    made->made = 1;
    made->refused = 0;
}

/* What is under way keeps the datatype (MPI 5.0 section 5.1.9). */
void tern_section_done(struct section *made)
{
    if (made->made) PMPI_Type_free(&made->type);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Copies all elements of a section to or from contiguous memory. */
static void transfer(const struct descriptor *array, char *packed, int is_out)
{
    ptrdiff_t index[MAX_RANK] = { 0 };
    char *at = array->base;
    for (;;) {
        memcpy(is_out ? at : packed, is_out ? packed : at, array->elem_len);
        packed += array->elem_len;
        int i = 0;
        for (; i < array->rank; i++) {
            at += array->dim[i].stride;
            if (++index[i] < array->dim[i].extent) break;
            at -= array->dim[i].stride * array->dim[i].extent;
            index[i] = 0;
        }
        if (i == array->rank) return;
    }
}

void tern_copy_in(struct copy *copy, const struct descriptor *array)
{
    void *base = tern_choice(array->base);
    *copy = (struct copy) { .base = base };
    if (tern_is_contiguous(array, base)) return;
    long long bytes = (long long) array->elem_len;
    for (int i = 0; i < array->rank; i++) bytes *= array->dim[i].extent;
    copy->base = tern_room(bytes);
    copy->is_copy = 1;
    transfer(array, copy->base, 0);
}

void tern_copy_out(struct copy *copy, const struct descriptor *array, int is_written)
{
    if (!copy->is_copy) return;
    if (is_written) transfer(array, copy->base, 1);
    free(copy->base);
}
