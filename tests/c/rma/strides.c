/* Random epochs of all kinds, of Puts, Gets or accumulates of up to 3000 elements, with types that go forwards, backwards and in steps on
 * either side, with and without requests: against a model that all ranks carry out. Each origin has its part of each window. */
// args: 1 create
// args: 2 allocate
// args: 3 dynamic
// args: 4 create rc
// args: 5 create rd
// timeout: 120
#include "tern_test.h"

enum { PART = 1 << 15, EPOCHS = 16, MOST = 16, ROOM = 1 << 17, UNTOUCHED = 0x33333333 };

typedef struct {
    int target, count, there, here; /* how far apart elements are on either side */
    int at, from;                   /* where the first of them in memory is */
    int value;
} Step;

enum { FENCE, EXPOSE, LOCK_ALL, LOCK };
enum { PUT, GET, ACCUMULATE };

static MPI_Win win;
static int *base, *model; /* model[target][origin][..] */
static int *memory, *want;
static MPI_Aint *at;
static MPI_Group all;
static uint64_t seed;

static int below(int n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static int *of(int target, int origin) {
    return model + ((size_t)target * t_size + origin) * PART;
}

/* The element that comes first in the type. */
static int begin(int lowest, int count, int step) {
    return lowest + (step < 0 ? (count - 1) * -step : 0);
}

static int length(int count, int step) {
    return count * abs(step) + 1;
}

/* What an origin does in an epoch, none of it where it does something else. */
static int draw(Step *steps) {
    static const int COUNTS[] = {1, 2, 7, 16, 17, 40, 300, 1000, 3000}, APART[] = {1, 1, 2, 3, -1, -2};
    int *there = t_alloc(t_size * sizeof *there), here = 0, count = 0;
    memset(there, 0, t_size * sizeof *there);
    for (int wanted = below(MOST); wanted > 0; wanted--) {
        Step step = {.target = below(t_size), .count = COUNTS[below(9)], .there = APART[below(6)], .here = APART[below(6)], .value = below(1000000)};
        step.at = there[step.target], step.from = here;
        int lengths[2] = {length(step.count, step.there), length(step.count, step.here)};
        if (step.at + lengths[0] > PART || here + lengths[1] > ROOM)
            continue;
        there[step.target] += lengths[0], here += lengths[1];
        steps[count++] = step;
    }
    free(there);
    return count;
}

static void simulate(const Step *step, int verb, int origin) {
    int *cells = of(step->target, origin) + begin(step->at, step->count, step->there);
    int *own = memory + begin(step->from, step->count, step->here), *wanted = want + (own - memory);
    for (int i = 0; i < step->count; i++) {
        int *cell = cells + i * step->there, value = step->value + i;
        if (origin == t_rank && verb == GET)
            wanted[i * step->here] = *cell;
        else if (origin == t_rank)
            wanted[i * step->here] = own[i * step->here] = value;
        if (verb != GET)
            *cell = verb == PUT ? value : *cell + value;
    }
}

static MPI_Datatype spaced(int count, int apart) {
    MPI_Datatype type;
    OK(MPI_Type_vector(count, 1, apart, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static void carry_out(const Step *step, int verb, MPI_Request *request) {
    MPI_Datatype here = spaced(step->count, step->here), there = spaced(step->count, step->there);
    int *own = memory + begin(step->from, step->count, step->here), target = step->target;
    MPI_Aint first = (MPI_Aint)t_rank * PART + begin(step->at, step->count, step->there);
    first = at[target] + first * (MPI_Aint)sizeof(int);
    if (verb == PUT && request)
        OK(MPI_Rput(own, 1, here, target, first, 1, there, win, request));
    else if (verb == PUT)
        OK(MPI_Put(own, 1, here, target, first, 1, there, win));
    else if (verb == GET && request)
        OK(MPI_Rget(own, 1, here, target, first, 1, there, win, request));
    else if (verb == GET)
        OK(MPI_Get(own, 1, here, target, first, 1, there, win));
    else if (request)
        OK(MPI_Raccumulate(own, 1, here, target, first, 1, there, MPI_SUM, win, request));
    else
        OK(MPI_Accumulate(own, 1, here, target, first, 1, there, MPI_SUM, win));
    OK(MPI_Type_free(&here));
    OK(MPI_Type_free(&there));
}

static void play(const Step *steps, int count, int verb, int kind) {
    MPI_Request requests[MOST];
    int asked = 0;
    if (kind == FENCE) {
        OK(MPI_Win_fence(0, win));
    } else if (kind == EXPOSE) {
        OK(MPI_Win_post(all, 0, win));
        OK(MPI_Win_start(all, 0, win));
    } else if (kind == LOCK_ALL) {
        OK(MPI_Win_lock_all(0, win));
    }
    for (int i = 0; i < count; i++) {
        if (kind == LOCK)
            OK(MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, steps[i].target, 0, win));
        int asks = (kind == LOCK_ALL || kind == LOCK) && i % 5 == 0;
        carry_out(&steps[i], verb, asks ? &requests[asked++] : NULL);
        if (kind == LOCK_ALL && i % 7 == 3)
            OK(MPI_Win_flush(steps[i].target, win));
        if (kind == LOCK_ALL && i % 7 == 5)
            OK(MPI_Win_flush_local_all(win));
        if (kind != LOCK)
            continue;
        OK(MPI_Waitall(asked, requests, MPI_STATUSES_IGNORE));
        asked = 0;
        OK(MPI_Win_unlock(steps[i].target, win));
    }
    OK(MPI_Waitall(asked, requests, MPI_STATUSES_IGNORE));
    if (kind == FENCE) {
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    } else if (kind == EXPOSE) {
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    } else if (kind == LOCK_ALL) {
        OK(MPI_Win_unlock_all(win));
    }
}

static void epoch(int number) {
    Step steps[MOST], own[MOST];
    int count = 0, kind = number % 4, verb = below(3);
    for (int i = 0; i < ROOM; i++)
        memory[i] = want[i] = UNTOUCHED;
    for (int origin = 0; origin < t_size; origin++) {
        int drawn = draw(steps);
        for (int i = 0; i < drawn; i++)
            simulate(&steps[i], verb, origin);
        if (origin == t_rank)
            memcpy(own, steps, sizeof own), count = drawn;
    }
    play(own, count, verb, kind);
    for (int i = 0; i < ROOM; i++)
        if (memory[i] != want[i])
            t_fail(__FILE__, __LINE__, "epoch %d, kind %d, verb %d: %d here at %d, expected %d", number, kind, verb, memory[i], i, want[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win));
    for (int i = 0; i < t_size * PART; i++)
        if (base[i] != of(t_rank, 0)[i])
            t_fail(__FILE__, __LINE__, "epoch %d, kind %d, verb %d: %d in the part of rank %d at %d, expected %d", number, kind, verb, base[i],
                   i / PART, i % PART, of(t_rank, 0)[i]);
    OK(MPI_Win_unlock(t_rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    const char *kind = argc > 2 ? argv[2] : "create";
    if (argc > 3) {
        setenv("TERN_DEVICES", "rnic", 1);
        setenv("TERN_TRANSPORT", argv[3], 1);
    }
    t_begin(&argc, &argv);
    seed = argc > 1 ? (uint64_t)atoi(argv[1]) : 1;
    MPI_Aint bytes = (MPI_Aint)PART * t_size * (MPI_Aint)sizeof(int), own = 0;
    int is_allocated = strcmp(kind, "allocate") == 0, is_dynamic = strcmp(kind, "dynamic") == 0;
    if (!is_allocated)
        base = t_alloc(bytes);
    if (is_allocated) {
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    } else if (is_dynamic) {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, base, bytes));
        OK(MPI_Get_address(base, &own));
    } else {
        OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    memset(base, 0, bytes);
    at = t_alloc(t_size * sizeof own);
    OK(MPI_Allgather(&own, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    model = calloc(t_size, bytes), memory = t_alloc(ROOM * sizeof *memory), want = t_alloc(ROOM * sizeof *want);
    CHECK(model != NULL);
    for (int number = 0; number < EPOCHS; number++)
        epoch(number);
    if (is_dynamic)
        OK(MPI_Win_detach(win, base));
    OK(MPI_Win_free(&win));
    OK(MPI_Group_free(&all));
    if (!is_allocated)
        free(base);
    free(model), free(memory), free(want), free(at);
    return t_end();
}
