/* Atomic operations of all ranks on the same cells at once: what they fetch and what is left must be the outcome of some order of
 * them, cell by cell, in which those of one origin stand as it called them (MPI 5.0 section 12.7.1). All orders are
 * tried. Cells of a target are changed by one operation in an epoch, beside MPI_NO_OP, as the standard's default wants it, or by
 * MPI_Compare_and_swap. With two more arguments by Tern's adapter, in this manner and with this schedule. */
// np: 2+
// args: 1 allocate
// args: 2 create
// args: 3 dynamic
// args: 4 create rc original
// args: 5 create rc interleaved
// args: 6 create rc aggregate
// args: 7 allocate rc early-hybrid
// args: 8 allocate rc auto
// args: 9 create hybrid auto
// timeout: 240
#include "../window.h"

enum { CELLS = 4, EPOCHS = 60, MOST = 5, RUN = 3, RANKS = 7, STATES = 1 << 16 };
enum { ADD, FETCH, FETCH_ONE, R_ADD, R_FETCH, SWAP, FORMS }; /* calls */
enum { SUM, MAX, BXOR, REPLACE, COMPARE, CHANGES };          /* by what cells change */
enum { FENCE, PSCW, ALL, LOCKS, KINDS };

typedef struct { /* what an origin does to `count` cells of a target */
    int call, target, cell, count, reads_only;
    long value, compare;
} Step;
typedef struct { /* of a rank, in an epoch */
    int count;
    Step steps[MOST];
} Part;
typedef struct { /* what a step does to one cell */
    int changes, reads_only, fetches;
    long value, compare, got;
} Change;
typedef struct { /* where an order stands: as many of each origin, and what the cell holds */
    uint64_t at;
    long value;
    int stamp;
} State;

static MPI_Win win;
static long *base;
static MPI_Aint at[RANKS];
static State *states;
static int stamp;

static long apply(const Change *c, long old) {
    if (c->reads_only)
        return old;
    switch (c->changes) {
    case SUM: return old + c->value;
    case MAX: return old > c->value ? old : c->value;
    case BXOR: return old ^ c->value;
    case REPLACE: return c->value;
    default: return old == c->compare ? c->value : old;
    }
}

/* Whether this is new. */
static int visit(uint64_t where, long value) {
    uint64_t slot = (where * 0x9E3779B97F4A7C15u + (uint64_t)value) * 0xBF58476D1CE4E5B9u >> 48;
    for (int tries = 0; tries < STATES; tries++, slot = (slot + 1) % STATES) {
        State *s = &states[slot];
        if (s->stamp != stamp) {
            *s = (State){where, value, stamp};
            return 1;
        }
        if (s->at == where && s->value == value)
            return 0;
    }
    t_fail(__FILE__, __LINE__, "more than %d states", STATES);
}

/* Whether some order of what is left, `next[origin]` onwards, gives what was fetched and leaves `last`. */
static int is_possible(Change (*all)[MOST], const int *counts, int *next, long value, long last) {
    uint64_t where = 0;
    int is_over = 1;
    for (int origin = 0; origin < t_size; origin++) {
        where = where * (MOST + 1) + (uint64_t)next[origin];
        is_over &= next[origin] == counts[origin];
    }
    if (is_over)
        return value == last;
    if (!visit(where, value))
        return 0;
    for (int origin = 0; origin < t_size; origin++) {
        if (next[origin] == counts[origin])
            continue;
        const Change *c = &all[origin][next[origin]];
        if (c->fetches && c->got != value)
            continue;
        next[origin]++;
        int found = is_possible(all, counts, next, apply(c, value), last);
        next[origin]--;
        if (found)
            return 1;
    }
    return 0;
}

static int has_order(Change (*all)[MOST], const int *counts, long first, long last) {
    int next[RANKS] = {0};
    stamp++;
    return is_possible(all, counts, next, first, last);
}

/* The search finds what is an order, and nothing else. */
static void check_search(void) {
    Change two[RANKS][MOST] = {{{REPLACE, 0, 1, 7, 0, 0}}, {{REPLACE, 0, 1, 8, 0, 7}}};
    int counts[RANKS] = {1, 1};
    CHECK(has_order(two, counts, 0, 8));
    CHECK(!has_order(two, counts, 0, 7));
    two[1][0].got = 0;
    CHECK(!has_order(two, counts, 0, 8));
    /* An origin's own stand as it called them. */
    Change own[RANKS][MOST] = {{{SUM, 0, 1, 5, 0, 0}, {SUM, 1, 1, 0, 0, 0}}};
    int one[RANKS] = {2};
    CHECK(!has_order(own, one, 0, 5));
    own[0][1].got = 5;
    CHECK(has_order(own, one, 0, 5));
}

static Part draw(t_rng *rng, int kind, const int *changes, const long *before, int epoch, int origin) {
    Part part = {.count = t_below(rng, MOST + 1)};
    for (int k = 0; k < part.count; k++) {
        Step *s = &part.steps[k];
        s->target = t_below(rng, 2) ? 0 : t_below(rng, t_size);
        s->cell = t_below(rng, CELLS);
        s->count = 1 + t_below(rng, RUN);
        if (s->cell + s->count > CELLS)
            s->count = CELLS - s->cell;
        s->call = t_below(rng, kind == ALL || kind == LOCKS ? SWAP : R_ADD);
        s->reads_only = t_below(rng, 4) == 0;
        s->value = 1 + ((long)epoch * RANKS + origin) * MOST + k;
        if (changes[s->target] == COMPARE) {
            /* With what was there, or what another one may have swapped in. */
            s->compare = t_below(rng, 2) ? before[s->target * CELLS + s->cell]
                                         : 1 + ((long)epoch * RANKS + t_below(rng, t_size)) * MOST + t_below(rng, MOST);
            s->call = s->reads_only ? FETCH : SWAP;
        }
        if (s->call == FETCH_ONE || s->call == SWAP)
            s->count = 1;
        if (s->call == ADD || s->call == R_ADD)
            s->reads_only = 0;
    }
    return part;
}

static void perform(const Step *s, int changes, long *out, long *got, MPI_Request *request) {
    MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BXOR, MPI_REPLACE, MPI_NO_OP};
    MPI_Op op = s->reads_only ? MPI_NO_OP : ops[changes];
    MPI_Aint disp = at[s->target] + (MPI_Aint)sizeof(long) * s->cell;
    int to = s->target, n = s->count;
    for (int i = 0; i < n; i++)
        out[i] = s->value;
    switch (s->call) {
    case ADD: OK(MPI_Accumulate(out, n, MPI_LONG, to, disp, n, MPI_LONG, op, win)); break;
    case FETCH: OK(MPI_Get_accumulate(out, n, MPI_LONG, got, n, MPI_LONG, to, disp, n, MPI_LONG, op, win)); break;
    case FETCH_ONE: OK(MPI_Fetch_and_op(out, got, MPI_LONG, to, disp, op, win)); break;
    case R_ADD: OK(MPI_Raccumulate(out, n, MPI_LONG, to, disp, n, MPI_LONG, op, win, request)); break;
    case R_FETCH:
        OK(MPI_Rget_accumulate(out, n, MPI_LONG, got, n, MPI_LONG, to, disp, n, MPI_LONG, op, win, request));
        break;
    default:
        out[1] = s->compare;
        OK(MPI_Compare_and_swap(out, out + 1, got, MPI_LONG, to, disp, win));
    }
}

static void begin(int kind, MPI_Group all) {
    if (kind == FENCE)
        OK(MPI_Win_fence(0, win));
    if (kind == PSCW) {
        OK(MPI_Win_post(all, 0, win));
        OK(MPI_Win_start(all, 0, win));
    }
    if (kind == ALL)
        OK(MPI_Win_lock_all(0, win));
}

static void end(int kind) {
    if (kind == FENCE)
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (kind == PSCW) {
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    }
    if (kind == ALL)
        OK(MPI_Win_unlock_all(win));
}

/* An epoch of this rank: what its steps fetch. */
static void carry_out(t_rng *rng, int kind, const Part *part, const int *changes, MPI_Group all, long (*got)[RUN]) {
    long out[MOST][RUN];
    MPI_Request requests[MOST];
    begin(kind, all);
    for (int k = 0; k < part->count; k++) {
        const Step *s = &part->steps[k];
        requests[k] = MPI_REQUEST_NULL;
        if (kind == LOCKS)
            OK(MPI_Win_lock(t_below(rng, 2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, s->target, 0, win));
        perform(s, changes[s->target], out[k], got[k], &requests[k]);
        if (kind == LOCKS) {
            OK(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
            OK(MPI_Win_unlock(s->target, win));
        } else if (kind == ALL && t_below(rng, 3) == 0) {
            OK(MPI_Win_flush(s->target, win));
        }
    }
    OK(MPI_Waitall(part->count, requests, MPI_STATUSES_IGNORE));
    end(kind);
}

/* What the parts do to a cell of a target. */
static void changes_of(const Part *parts, long (*got)[MOST][RUN], int target, int cell, int by, Change (*all)[MOST], int *counts) {
    for (int origin = 0; origin < t_size; origin++) {
        counts[origin] = 0;
        for (int k = 0; k < parts[origin].count; k++) {
            const Step *s = &parts[origin].steps[k];
            int i = cell - s->cell;
            if (s->target == target && i >= 0 && i < s->count)
                all[origin][counts[origin]++] = (Change){by, s->reads_only, s->call != ADD && s->call != R_ADD,
                                                         s->value, s->compare, got[origin][k][i]};
        }
    }
}

static void check_cell(Change (*all)[MOST], const int *counts, long first, long last, const char *where) {
    static const char *const names[] = {"sum", "max", "bxor", "replace", "compare and swap"};
    if (has_order(all, counts, first, last))
        return;
    for (int origin = 0; origin < t_size; origin++)
        for (int k = 0; k < counts[origin]; k++) {
            const Change *c = &all[origin][k];
            fprintf(stderr, "origin %d: %s of %ld%s", origin, c->reads_only ? "nothing" : names[c->changes], c->value,
                    c->fetches ? "" : "\n");
            if (c->fetches)
                fprintf(stderr, " (compare %ld) fetched %ld\n", c->compare, c->got);
        }
    t_fail(__FILE__, __LINE__, "%s: no order makes %ld of %ld", where, last, first);
}

/* What all cells hold. */
static void look(long *all) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win));
    OK(MPI_Allgather(base, CELLS, MPI_LONG, all, CELLS, MPI_LONG, MPI_COMM_WORLD));
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    if (argc > 4) { /* no other library knows of these */
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[3], 1);
        setenv("TERN_WIN_SCHEDULE", argv[4], 1);
    }
    t_begin(&argc, &argv);
    CHECK(t_size <= RANKS);
    int seed = argc > 1 ? atoi(argv[1]) : 1;
    const char *how = argc > 2 ? argv[2] : "allocate";
    states = calloc(STATES, sizeof *states);
    check_search();
    win = t_window(how, sizeof(long) * CELLS, &base, at);
    memset(base, 0, sizeof(long) * CELLS);
    MPI_Group all;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    t_rng rng = t_seed(seed), own = t_seed(1000 * (seed + 1) + t_rank);
    long before[RANKS * CELLS], after[RANKS * CELLS];
    look(before);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int kind = t_below(&rng, KINDS), changes[RANKS];
        Part parts[RANKS];
        long got[MOST][RUN] = {{0}}, fetched[RANKS][MOST][RUN];
        for (int target = 0; target < t_size; target++)
            changes[target] = t_below(&rng, CHANGES);
        for (int origin = 0; origin < t_size; origin++)
            parts[origin] = draw(&rng, kind, changes, before, epoch, origin);
        carry_out(&own, kind, &parts[t_rank], changes, all, got);
        OK(MPI_Allgather(got, MOST * RUN, MPI_LONG, fetched, MOST * RUN, MPI_LONG, MPI_COMM_WORLD));
        look(after);
        for (int cell = 0; cell < CELLS; cell++) {
            Change what[RANKS][MOST];
            int counts[RANKS];
            char where[100];
            snprintf(where, sizeof where, "seed %d, epoch %d of kind %d, cell %d of rank %d", seed, epoch, kind, cell, t_rank);
            changes_of(parts, fetched, t_rank, cell, changes[t_rank], what, counts);
            check_cell(what, counts, before[t_rank * CELLS + cell], after[t_rank * CELLS + cell], where);
        }
        memcpy(before, after, sizeof before);
    }
    OK(MPI_Group_free(&all));
    if (strcmp(how, "dynamic") == 0)
        OK(MPI_Win_detach(win, base));
    OK(MPI_Win_free(&win));
    free(states);
    return t_end();
}
