/* Nobody leaves a barrier before everybody has entered it: counted in memory that the
 * ranks share by a mapped file. Also on sub-communicators, in three forms. */
#include "coll_forms.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_int *counters;

static void map(void) {
    char path[] = "/tmp/barrier-test-XXXXXX";
    size_t bytes = sizeof(atomic_int) * 64;
    int file = -1;
    if (t_rank == 0) {
        file = mkstemp(path);
        CHECK(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
    }
    OK(MPI_Bcast(path, (int)sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (t_rank)
        file = open(path, O_RDWR);
    CHECK(file >= 0);
    counters = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(counters != MAP_FAILED);
    close(file);
    int seen = 1, all = 0;
    OK(MPI_Allreduce(&seen, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (t_rank == 0)
        unlink(path);
}

int main(int argc, char **argv) {
    enum { ROUNDS = 100 };
    t_begin(&argc, &argv);
    map();
    place places[COMMS];
    coll_places(places);
    for (int p = 0; p < COMMS; p++) {
        atomic_int *counter = &counters[16 * p + (p == 2 ? t_rank % 2 : 0)];
        for (int f = 0; f < FORMS; f++)
            for (int round = 1; round <= ROUNDS; round++) {
                if (round % places[p].size == places[p].rank && round % 10 == 0)
                    usleep(1000);
                atomic_fetch_add(counter, 1);
                COLL(f, Barrier, barrier, places[p].comm);
                int entered = atomic_load(counter);
                CHECK(entered >= (f * ROUNDS + round) * places[p].size);
                CHECK(entered <= (f * ROUNDS + round + 1) * places[p].size);
            }
    }
    coll_free(places);
    return t_end();
}
