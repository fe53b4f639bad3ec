/* Random epochs against a sequential model. All ranks draw the same program and
 * carry out their own part of it; every rank carries out all of it on a copy.
 * Cells of one origin have one outcome; those of all are only added to. With
 * two more arguments by Tern's adapter, in this manner and with this schedule, with one more with fences of this kind. */
// args: 1 allocate
// args: 2 create
// args: 3 dynamic
// args: 4 allocate
// args: 5 create rc original
// args: 6 create rc gets-first
// args: 7 create rc interleaved
// args: 8 create rc merge-last
// args: 9 create rc aggregate
// args: 10 create rc hybrid
// args: 11 create rc early
// args: 12 allocate rc early-hybrid
// args: 13 allocate rc auto
// args: 14 create rd auto
// args: 15 create ud auto
// args: 16 create hybrid auto
// args: 17 create hybrid aggregate
// args: 18 create rc auto told
// args: 19 create rc auto asked
// timeout: 240
#include "../window.h"

enum { OWN = 48, COMMON = 16, EPOCHS = 60, MOST = 12 };

typedef struct { /* what an origin does */
    int verb, target, cell, count, op;
    long value;
} Step;

static long *base, *model; /* model[target][...] */
static MPI_Aint *at;
static MPI_Win win;
static MPI_Op ops[4];

static int cells(void) {
    return OWN * t_size + COMMON;
}

static long *of(int target) {
    return model + (size_t)target * cells();
}

static long combine(int op, long old, long value) {
    switch (op) {
    case 0: return old + value;
    case 1: return old > value ? old : value;
    case 2: return old ^ value;
    default: return value;
    }
}

/* One step of `origin` on the model; what it fetches goes to `want`. */
static void simulate(const Step *step, int origin, long *want) {
    long *own = of(step->target) + OWN * origin + step->cell;
    switch (step->verb) {
    case 0: /* put */
        for (int i = 0; i < step->count; i++)
            own[i] = step->value + i;
        break;
    case 1: /* put with gaps */
        for (int i = 0; i < step->count; i++)
            own[2 * i] = step->value + i;
        break;
    case 2: /* get */
        for (int i = 0; i < step->count; i++)
            want[i] = own[i];
        break;
    case 3: /* accumulate */
        for (int i = 0; i < step->count; i++)
            own[i] = combine(step->op, own[i], step->value + i);
        break;
    case 4: /* get and accumulate */
        for (int i = 0; i < step->count; i++) {
            want[i] = own[i];
            own[i] = combine(step->op, own[i], step->value + i);
        }
        break;
    case 5: /* fetch and op */
        want[0] = own[0];
        own[0] = combine(step->op, own[0], step->value);
        break;
    case 6: /* compare and swap with what is there, or not */
        want[0] = own[0];
        if (step->op % 2)
            own[0] = step->value;
        break;
    case 7: /* add to cells of all */
        for (int i = 0; i < step->count; i++)
            of(step->target)[OWN * t_size + i] += step->value + i;
        break;
    }
}

static void perform(const Step *step, long *out, long *got, const long *want, MPI_Datatype *gaps) {
    int to = step->target, n = step->count;
    MPI_Aint disp = at[to] + (MPI_Aint)sizeof(long) * (OWN * t_rank + step->cell);
    for (int i = 0; i < n; i++)
        out[i] = step->value + i;
    switch (step->verb) {
    case 0: OK(MPI_Put(out, n, MPI_LONG, to, disp, n, MPI_LONG, win)); break;
    case 1: OK(MPI_Put(out, n, MPI_LONG, to, disp, 1, gaps[n], win)); break;
    case 2: OK(MPI_Get(got, n, MPI_LONG, to, disp, n, MPI_LONG, win)); break;
    case 3: OK(MPI_Accumulate(out, n, MPI_LONG, to, disp, n, MPI_LONG, ops[step->op], win)); break;
    case 4:
        OK(MPI_Get_accumulate(out, n, MPI_LONG, got, n, MPI_LONG, to, disp, n, MPI_LONG, ops[step->op], win));
        break;
    case 5: OK(MPI_Fetch_and_op(out, got, MPI_LONG, to, disp, ops[step->op], win)); break;
    case 6:
        out[1] = step->op % 2 ? want[0] : want[0] + 1;
        OK(MPI_Compare_and_swap(out, out + 1, got, MPI_LONG, to, disp, win));
        break;
    case 7:
        disp = at[to] + (MPI_Aint)sizeof(long) * OWN * t_size;
        OK(MPI_Accumulate(out, n, MPI_LONG, to, disp, n, MPI_LONG, MPI_SUM, win));
        break;
    }
}

static void draw(t_rng *rng, Step *steps, int *count) {
    int manner = t_below(rng, 3), free_cell = 0;
    *count = t_below(rng, MOST);
    for (int k = 0; k < *count; k++) {
        Step *step = &steps[k];
        step->target = t_below(rng, t_size);
        step->op = t_below(rng, 4);
        step->value = t_below(rng, 1000000);
        step->count = 1 + t_below(rng, 4);
        step->cell = t_below(rng, OWN - 8);
        if (manner == 0) { /* puts: no cell twice */
            step->verb = t_below(rng, 2);
            step->cell = free_cell;
            free_cell += 2 * step->count;
            if (free_cell > OWN - 8)
                step->verb = 7;
        } else if (manner == 1) {
            step->verb = 2;
        } else {
            step->verb = 3 + t_below(rng, 5);
            if (step->verb > 4 && step->verb < 7)
                step->count = 1;
        }
    }
}

static void begin(int kind, MPI_Group all) {
    switch (kind) {
    case 0: OK(MPI_Win_fence(0, win)); break;
    case 1: OK(MPI_Win_post(all, 0, win)); OK(MPI_Win_start(all, 0, win)); break;
    case 2: OK(MPI_Win_lock_all(0, win)); break;
    default: break; /* a lock per target */
    }
}

static void end(int kind) {
    switch (kind) {
    case 0: OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win)); break;
    case 1: OK(MPI_Win_complete(win)); OK(MPI_Win_wait(win)); break;
    case 2: OK(MPI_Win_flush_all(win)); OK(MPI_Win_unlock_all(win)); break;
    default: break;
    }
}

/* The window; its length. */
static MPI_Aint make(const char *how) {
    ops[0] = MPI_SUM, ops[1] = MPI_MAX, ops[2] = MPI_BXOR, ops[3] = MPI_REPLACE;
    MPI_Aint bytes = (MPI_Aint)sizeof(long) * cells();
    at = t_alloc(sizeof *at * t_size);
    model = calloc((size_t)cells() * t_size, sizeof *model);
    win = t_window(how, bytes, &base, at);
    return bytes;
}

int main(int argc, char **argv) {
    if (argc > 4) { /* no other library knows of these */
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[3], 1);
        setenv("TERN_WIN_SCHEDULE", argv[4], 1);
        setenv("TERN_WIN_FENCE", argc > 5 ? argv[5] : "auto", 1);
    }
    t_begin(&argc, &argv);
    int seed = argc > 1 ? atoi(argv[1]) : 1;
    const char *how = argc > 2 ? argv[2] : "allocate";
    MPI_Aint bytes = make(how);
    MPI_Datatype gaps[5];
    for (int n = 1; n < 5; n++) {
        OK(MPI_Type_vector(n, 1, 2, MPI_LONG, &gaps[n]));
        OK(MPI_Type_commit(&gaps[n]));
    }
    MPI_Group all;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    memset(base, 0, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    t_rng rng = t_seed(seed);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int kind = t_below(&rng, 4), count = 0, own = 0;
        Step steps[MOST], mine_steps[MOST];
        long out[MOST][8], got[MOST][8], want[MOST][8];
        memset(got, 0, sizeof got);
        memset(want, 0, sizeof want);
        for (int origin = 0; origin < t_size; origin++) {
            draw(&rng, steps, &count);
            long unused[8];
            for (int k = 0; k < count; k++)
                simulate(&steps[k], origin, origin == t_rank ? want[k] : unused);
            if (origin == t_rank) {
                memcpy(mine_steps, steps, sizeof steps);
                own = count;
            }
        }
        begin(kind, all);
        for (int k = 0; k < own; k++) {
            int to = mine_steps[k].target;
            if (kind == 3)
                OK(MPI_Win_lock(k % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, to, 0, win));
            perform(&mine_steps[k], out[k], got[k], want[k], gaps);
            if (kind == 3)
                OK(MPI_Win_unlock(to, win));
            else if (kind == 2 && k % 3 == 0)
                OK(MPI_Win_flush(to, win));
        }
        end(kind);
        for (int k = 0; k < own; k++)
            for (int i = 0; i < 8; i++)
                if (got[k][i] != want[k][i])
                    t_fail(__FILE__, __LINE__, "seed %d, epoch %d of kind %d, step %d (verb %d): fetched %ld at %d, expected %ld",
                           seed, epoch, kind, k, mine_steps[k].verb, got[k][i], i, want[k][i]);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win));
        for (int i = 0; i < cells(); i++)
            if (base[i] != of(t_rank)[i])
                t_fail(__FILE__, __LINE__, "seed %d, epoch %d of kind %d: cell %d is %ld, expected %ld", seed, epoch,
                       kind, i, base[i], of(t_rank)[i]);
        OK(MPI_Win_unlock(t_rank, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    for (int n = 1; n < 5; n++)
        OK(MPI_Type_free(&gaps[n]));
    OK(MPI_Group_free(&all));
    if (strcmp(how, "dynamic") == 0)
        OK(MPI_Win_detach(win, base));
    OK(MPI_Win_free(&win));
    return t_end();
}
