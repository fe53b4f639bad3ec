/* Persistent collectives started many times with new data, several at once by Startall,
 * in an order of completion of each rank's own. */
#include "coll_forms.h"

enum { ROUNDS = 20, COUNT = 500 };

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Request requests[4];
    int *sum_out = ints(COUNT), *sum_in = ints(COUNT), *cast = ints(COUNT);
    int *all_out = ints((long long)COUNT * t_size), *all_in = ints((long long)COUNT * t_size);
    int root = t_size - 1;
    OK(MPI_Allreduce_init(sum_out, sum_in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Bcast_init(cast, COUNT, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Alltoall_init(all_out, COUNT, MPI_INT, all_in, COUNT, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]));
    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            sum_out[i] = t_rank + round * i;
            cast[i] = t_rank == root ? round * 31 + i : -1;
        }
        for (int i = 0; i < COUNT * t_size; i++)
            all_out[i] = t_rank * 1000000 + round * 5000 + i;
        if (round % 2)
            OK(MPI_Startall(4, requests));
        else
            for (int k = 0; k < 4; k++)
                OK(MPI_Start(&requests[k]));
        if (round % 3)
            OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        else
            for (int k = 0; k < 4; k++)
                OK(MPI_Wait(&requests[(k + t_rank) % 4], MPI_STATUS_IGNORE));
        for (int i = 0; i < COUNT; i++) {
            CHECK_AT(i, sum_in[i], t_size * (t_size - 1) / 2 + t_size * round * i);
            CHECK_AT(i, cast[i], round * 31 + i);
            for (int r = 0; r < t_size; r++)
                CHECK_AT(i, all_in[r * COUNT + i], r * 1000000 + round * 5000 + t_rank * COUNT + i);
        }
    }
    for (int k = 0; k < 4; k++) {
        CHECK(requests[k] != MPI_REQUEST_NULL);
        OK(MPI_Request_free(&requests[k]));
    }
    free(sum_out);
    free(sum_in);
    free(cast);
    free(all_out);
    free(all_in);
    return t_end();
}
