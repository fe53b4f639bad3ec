/* Attributes across languages (MPI 5.0 section 19.3.7). One that Fortran has set is an integer of the kind MPI_ADDRESS_KIND, and C gets
 * its address; one that C has set is a pointer, and Fortran gets that as an integer. So what Fortran sets is kept in a box, whose address
 * the library gets for the attribute. A copy function of C may hand an address on to another attribute, so nobody knows when
 * a box is needed no more: there is one for each value, for ever. */
#include "runtime.h"

#include <pthread.h>
#include <stdio.h>

enum { FIRST = 64, CHUNKS = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Aint *chunks[CHUNKS]; /* of FIRST boxes, twice as many, and so on: boxes stay where they are */
static size_t boxes;
static MPI_Aint **places; /* by value, half of them free at least; as many as `places_mask` says */
static size_t places_mask;

static size_t size_of(int chunk)
{
    return (size_t) FIRST << chunk;
}

static void *zeros(size_t count, size_t bytes)
{
    void *made = calloc(count, bytes);
    if (!made) {
        fprintf(stderr, "tern: no memory for %zu attributes of Fortran\n", count);
        PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
        abort();
    }
    return made;
}

/* The place of this value, or the free one where it belongs. */
static MPI_Aint **place_of(MPI_Aint value)
{
    size_t at = (uint64_t) value * 0x9e3779b97f4a7c15u >> 20;
    while (places[at & places_mask] && *places[at & places_mask] != value) at++;
    return &places[at & places_mask];
}

/* Where the box of this number is. */
static MPI_Aint *box(size_t number)
{
    int chunk = 0;
    while (number >= size_of(chunk)) number -= size_of(chunk++);
    if (!chunks[chunk]) chunks[chunk] = zeros(size_of(chunk), sizeof(MPI_Aint));
    return chunks[chunk] + number;
}

/* Room for one more. */
static void grow(void)
{
    if (places && 2 * (boxes + 1) <= places_mask) return;
    free(places);
    places_mask = places ? 2 * places_mask + 1 : 4 * FIRST - 1;
    places = zeros(places_mask + 1, sizeof *places);
    for (size_t number = 0; number < boxes; number++) *place_of(*box(number)) = box(number);
}

void *tern_boxed(MPI_Aint value)
{
    pthread_mutex_lock(&lock);
    grow();
    MPI_Aint **place = place_of(value);
    if (!*place) {
        MPI_Aint *made = box(boxes++);
        *made = value;
        *place = made;
    }
    void *found = *place;
    pthread_mutex_unlock(&lock);
    return found;
}

MPI_Aint tern_unboxed(void *attribute)
{
    MPI_Aint value = (MPI_Aint) attribute;
    pthread_mutex_lock(&lock);
    for (int chunk = 0; chunk < CHUNKS && chunks[chunk]; chunk++) {
        if (attribute >= (void *) chunks[chunk] && attribute < (void *) (chunks[chunk] + size_of(chunk)))
            value = *(MPI_Aint *) attribute;
    }
    pthread_mutex_unlock(&lock);
    return value;
}
