/* MPI_Dims_create: the product is the number of processes, what was given stays, the rest falls; and
 * it is as balanced as can be. */
// np: 1
#include "tern_test.h"

/* The least difference between the largest and the smallest of three factors. */
static int least_spread(int n) {
    int best = n;
    for (int a = 1; a <= n; a++)
        for (int b = 1; n % a == 0 && b <= a; b++) {
            int c = n / a / b;
            if ((n / a) % b == 0 && c <= b && a - c < best)
                best = a - c;
        }
    return best;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    /* Others find good dimensions, but not always the best. */
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OK(MPI_Get_library_version(version, &length));
    int exact = strstr(version, "Tern") != NULL;
    for (int n = 1; n <= 2000; n += 1 + n / 200) {
        int dims[3] = {0, 0, 0};
        OK(MPI_Dims_create(n, 3, dims));
        CHECK_AT(n, dims[0] * dims[1] * dims[2], n);
        CHECK(dims[0] >= dims[1] && dims[1] >= dims[2]);
        if (exact)
            CHECK_AT(n, dims[0] - dims[2], least_spread(n));
    }
    int given[4] = {0, 5, 0, 2};
    OK(MPI_Dims_create(120, 4, given));
    CHECK(given[0] == 4 && given[1] == 5 && given[2] == 3 && given[3] == 2);
    return t_end();
}
