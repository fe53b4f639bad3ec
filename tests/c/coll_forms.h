/* One collective call in its three forms, and the communicators and sizes to try it on. */
#ifndef COLL_FORMS_H
#define COLL_FORMS_H

#include "tern_test.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

/* COLL(form, Bcast, bcast, buffer, count, type, root, comm): Bcast, Ibcast or Bcast_init. */
#define COLL(form, Name, name, ...)                                            \
    do {                                                                       \
        MPI_Request request_ = MPI_REQUEST_NULL;                               \
        if ((form) == BLOCKING) {                                              \
            OK(MPI_##Name(__VA_ARGS__));                                       \
        } else if ((form) == NONBLOCKING) {                                    \
            OK(MPI_I##name(__VA_ARGS__, &request_));                           \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                        \
            CHECK(request_ == MPI_REQUEST_NULL);                               \
        } else {                                                               \
            OK(MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_));      \
            OK(MPI_Start(&request_));                                          \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                        \
            CHECK(request_ != MPI_REQUEST_NULL);                               \
            OK(MPI_Request_free(&request_));                                   \
        }                                                                      \
    } while (0)

enum { SIZES = 5, LARGEST = 100000, COMMS = 3 };
static const int coll_sizes[SIZES] = {0, 1, 7, 1000, LARGEST};

/* A communicator to try, and this rank's place in it. */
typedef struct {
    MPI_Comm comm;
    int rank, size;
} place;

/* MPI_COMM_WORLD, the same backwards, and the halves of even and odd ranks. */
static inline void coll_places(place places[COMMS]) {
    places[0].comm = MPI_COMM_WORLD;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -t_rank, &places[1].comm));
    OK(MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, t_rank, &places[2].comm));
    for (int p = 0; p < COMMS; p++) {
        OK(MPI_Comm_rank(places[p].comm, &places[p].rank));
        OK(MPI_Comm_size(places[p].comm, &places[p].size));
    }
}

static inline void coll_free(place places[COMMS]) {
    for (int p = 1; p < COMMS; p++)
        OK(MPI_Comm_free(&places[p].comm));
}

/* Calls `body(place, count, form)` for every communicator, size and form. */
static inline void coll_all(void (*body)(const place *, int, enum form)) {
    place places[COMMS];
    coll_places(places);
    for (int p = 0; p < COMMS; p++)
        for (int s = 0; s < SIZES; s++)
            for (int f = 0; f < FORMS; f++)
                body(&places[p], coll_sizes[s], (enum form)f);
    coll_free(places);
}

static inline int *ints(long long count) {
    return t_alloc(sizeof(int) * (size_t)count);
}

/* What rank `rank` contributes at index `i`. */
static inline int item(int rank, long long i) {
    return (int)((unsigned)(rank + 1) * 1000003u + (unsigned)i * 7u);
}

static inline int *contribution(int rank, long long count) {
    int *data = ints(count);
    for (long long i = 0; i < count; i++)
        data[i] = item(rank, i);
    return data;
}

static inline int *blank(long long count) {
    int *data = ints(count);
    for (long long i = 0; i < count; i++)
        data[i] = -1;
    return data;
}

/* Which roots to try: all for small sizes, first and last for the large ones. */
static inline int root_step(int count, int size) {
    return count > 10000 && size > 2 ? size - 1 : 1;
}

#endif
