/* One buffer for sending and receiving, or two that overlap: refused alike by every collective and in
 * every form, on the rank that gives them, before anything is sent. */
// np: 1,2,3
// not-on: mpich (finds some of them)
// not-on: ompi (finds some of them)
#include "tern_test.h"

enum { ROOM = 256 };

static int data[ROOM], counts[8], displs[8], bytes[8];
static MPI_Datatype types[8];

/* The call is refused with MPI_ERR_BUFFER, as is its non-blocking and its persistent form. */
#define REFUSED(name, ...)                                                     \
    do {                                                                       \
        MPI_Request request;                                                   \
        FAILS(MPI_##name(__VA_ARGS__), MPI_ERR_BUFFER);                        \
        FAILS(MPI_I_##name(__VA_ARGS__, &request), MPI_ERR_BUFFER);            \
        FAILS(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request), MPI_ERR_BUFFER); \
    } while (0)

#define MPI_I_Gather MPI_Igather
#define MPI_I_Gatherv MPI_Igatherv
#define MPI_I_Scatter MPI_Iscatter
#define MPI_I_Scatterv MPI_Iscatterv
#define MPI_I_Allgather MPI_Iallgather
#define MPI_I_Allgatherv MPI_Iallgatherv
#define MPI_I_Alltoall MPI_Ialltoall
#define MPI_I_Alltoallv MPI_Ialltoallv
#define MPI_I_Alltoallw MPI_Ialltoallw
#define MPI_I_Reduce MPI_Ireduce
#define MPI_I_Allreduce MPI_Iallreduce
#define MPI_I_Reduce_scatter MPI_Ireduce_scatter
#define MPI_I_Reduce_scatter_block MPI_Ireduce_scatter_block
#define MPI_I_Scan MPI_Iscan
#define MPI_I_Exscan MPI_Iexscan

static void refused(MPI_Comm comm, int size, int *send, int *recv) {
    MPI_Datatype type = MPI_INT;
    REFUSED(Allgather, send, 2, type, recv, 2, type, comm);
    REFUSED(Allgatherv, send, 2, type, recv, counts, displs, type, comm);
    REFUSED(Alltoall, send, 2, type, recv, 2, type, comm);
    REFUSED(Alltoallv, send, counts, displs, type, recv, counts, displs, type, comm);
    REFUSED(Alltoallw, send, counts, bytes, types, recv, counts, bytes, types, comm);
    REFUSED(Allreduce, send, recv, 2, type, MPI_SUM, comm);
    REFUSED(Reduce_scatter, send, recv, counts, type, MPI_SUM, comm);
    REFUSED(Reduce_scatter_block, send, recv, 2, type, MPI_SUM, comm);
    REFUSED(Scan, send, recv, 2, type, MPI_SUM, comm);
    REFUSED(Exscan, send, recv, 2, type, MPI_SUM, comm);
    if (size == 1) { /* elsewhere only the root has both buffers, and it would be alone with its error */
        REFUSED(Gather, send, 2, type, recv, 2, type, 0, comm);
        REFUSED(Gatherv, send, 2, type, recv, counts, displs, type, 0, comm);
        REFUSED(Scatter, send, 2, type, recv, 2, type, 0, comm);
        REFUSED(Scatterv, send, counts, displs, type, recv, 2, type, 0, comm);
        REFUSED(Reduce, send, recv, 2, type, MPI_SUM, 0, comm);
    }
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    for (int i = 0; i < 8; i++) {
        counts[i] = 2;
        displs[i] = 2 * i;
        bytes[i] = displs[i] * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    refused(MPI_COMM_WORLD, t_size, data, data);
    refused(MPI_COMM_WORLD, t_size, data, data + 1);
    refused(MPI_COMM_WORLD, t_size, data + 1, data);
    refused(MPI_COMM_SELF, 1, data, data);
    refused(MPI_COMM_SELF, 1, data, data + 1);
    /* Buffers side by side are fine, and overlapping ones are refused after that, too. */
    for (int round = 0; round < 3; round++) {
        OK(MPI_Allreduce(data, data + 2, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        FAILS(MPI_Allreduce(data, data + 1, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
        OK(MPI_Allreduce(data + 2, data, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    }
    /* Parts of one array taken in turn. */
    int even[8], odd[8];
    for (int i = 0; i < 8; i++) {
        even[i] = 4 * i;
        odd[i] = 4 * i + 2;
    }
    OK(MPI_Alltoallv(data, counts, even, MPI_INT, data, counts, odd, MPI_INT, MPI_COMM_WORLD));
    /* Nothing overlaps nothing. */
    OK(MPI_Allgather(data, 0, MPI_INT, data, 0, MPI_INT, MPI_COMM_WORLD));
    return t_end();
}
