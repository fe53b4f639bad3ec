/* Groups: set operations, ranges, translation, comparison, against small oracles. */
#include "tern_test.h"

/* A group of `n` from a virtual list of ranks of the world: inclusion keeps the order. */
static MPI_Group of(MPI_Group world, int n, const int *ranks) {
    MPI_Group group;
    OK(MPI_Group_incl(world, n, ranks, &group));
    return group;
}

static void check(MPI_Group group, MPI_Group world, int n, const int *ranks) {
    int size = -1, rank = -1, own = MPI_UNDEFINED;
    OK(MPI_Group_size(group, &size));
    CHECK_EQ(size, n);
    OK(MPI_Group_rank(group, &rank));
    for (int i = 0; i < n; i++) {
        int back = -2;
        OK(MPI_Group_translate_ranks(group, 1, &i, world, &back));
        CHECK_AT(i, back, ranks[i]);
        own = ranks[i] == t_rank ? i : own;
    }
    CHECK_EQ(rank, own);
}

static void compare(MPI_Group a, MPI_Group b, int want) {
    int result = -1;
    OK(MPI_Group_compare(a, b, &result));
    CHECK_EQ(result, want);
    OK(MPI_Group_compare(b, a, &result));
    CHECK_EQ(result, want);
}

static void sets(MPI_Group world) {
    /* a: even ranks upwards; b: ranks divisible by three downwards. */
    int a[64], b[64], both[64], either[64], only[64], na = 0, nb = 0, nboth = 0, neither = 0, nonly = 0;
    for (int r = 0; r < t_size; r += 2)
        a[na++] = r;
    for (int r = t_size - 1; r >= 0; r--)
        if (r % 3 == 0)
            b[nb++] = r;
    for (int i = 0; i < na; i++) {
        either[neither++] = a[i];
        if (a[i] % 3 == 0)
            both[nboth++] = a[i];
        else
            only[nonly++] = a[i];
    }
    for (int i = 0; i < nb; i++)
        if (b[i] % 2)
            either[neither++] = b[i];
    MPI_Group ga = of(world, na, a), gb = of(world, nb, b), got;
    OK(MPI_Group_union(ga, gb, &got));
    check(got, world, neither, either);
    OK(MPI_Group_free(&got));
    OK(MPI_Group_intersection(ga, gb, &got));
    check(got, world, nboth, both);
    OK(MPI_Group_free(&got));
    OK(MPI_Group_difference(ga, gb, &got));
    check(got, world, nonly, only);
    if (nonly == 0)
        CHECK(got == MPI_GROUP_EMPTY);
    else
        OK(MPI_Group_free(&got));
    OK(MPI_Group_difference(ga, ga, &got));
    compare(got, MPI_GROUP_EMPTY, MPI_IDENT);
    /* Ranks of a in b: undefined where absent. */
    int indices[64], back[64];
    for (int i = 0; i < na; i++)
        indices[i] = i;
    OK(MPI_Group_translate_ranks(ga, na, indices, gb, back));
    for (int i = 0; i < na; i++) {
        int want = MPI_UNDEFINED;
        for (int k = 0; k < nb; k++)
            want = b[k] == a[i] ? k : want;
        CHECK_AT(i, back[i], want);
    }
    int none = MPI_PROC_NULL;
    OK(MPI_Group_translate_ranks(ga, 1, &none, gb, back));
    CHECK_EQ(back[0], MPI_PROC_NULL);
    OK(MPI_Group_free(&ga));
    OK(MPI_Group_free(&gb));
}

static void choices(MPI_Group world) {
    int down[64], rest[64] = {0}, n = 0;
    MPI_Group got, other;
    for (int i = 0; i < t_size; i++)
        down[i] = t_size - 1 - i;
    got = of(world, t_size, down);
    check(got, world, t_size, down);
    compare(got, world, t_size == 1 ? MPI_IDENT : MPI_SIMILAR);
    OK(MPI_Group_free(&got));
    OK(MPI_Group_incl(world, 0, NULL, &got));
    compare(got, MPI_GROUP_EMPTY, MPI_IDENT);
    compare(got, world, MPI_UNEQUAL);
    OK(MPI_Group_excl(world, 1, down, &got));
    for (int i = 0; i + 1 < t_size; i++)
        rest[n++] = i;
    check(got, world, n, rest);
    if (n)
        OK(MPI_Group_free(&got));
    OK(MPI_Group_excl(world, 0, NULL, &got));
    compare(got, world, MPI_IDENT);
    /* Ranges, upwards by two and downwards by three; excluded and included. */
    int up[1][3] = {{0, t_size - 1, 2}}, back[1][3] = {{t_size - 1, 0, -3}};
    n = 0;
    for (int r = t_size - 1; r >= 0; r -= 3)
        rest[n++] = r;
    OK(MPI_Group_range_incl(world, 1, back, &other));
    check(other, world, n, rest);
    OK(MPI_Group_free(&other));
    n = 0;
    for (int r = 1; r < t_size; r += 2)
        rest[n++] = r;
    OK(MPI_Group_range_excl(world, 1, up, &other));
    check(other, world, n, rest);
    if (n)
        OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&got));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Group world, self;
    int size, rank;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_group(MPI_COMM_SELF, &self));
    OK(MPI_Group_size(MPI_GROUP_EMPTY, &size));
    CHECK_EQ(size, 0);
    OK(MPI_Group_rank(MPI_GROUP_EMPTY, &rank));
    CHECK_EQ(rank, MPI_UNDEFINED);
    compare(world, self, t_size == 1 ? MPI_IDENT : MPI_UNEQUAL);
    check(self, world, 1, &t_rank);
    sets(world);
    choices(world);
    OK(MPI_Group_free(&world));
    CHECK(world == MPI_GROUP_NULL);
    OK(MPI_Group_free(&self));
    return t_end();
}
