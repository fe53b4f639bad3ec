/* Heat spreads over a plate: the five-point Jacobi iteration on a two-dimensional grid of
 * ranks. Halos travel by non-blocking sendrecv while the interior is computed; columns by
 * a vector type; the residual by allreduce; the result is collected by subarray types and
 * written as a PNG.
 *
 *   mpiexec -n 4 heat [--width N] [--height N] [--steps N] [--out FILE] [--check]
 *
 * --check computes the same serially on rank 0 and compares: the results are equal bit by
 * bit, because every cell is computed by the same operations in the same order. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "png.h"

typedef struct {
    int width, height, steps, check;
    const char *out;
} options;

/* A rank's block of the plate, with one row or column of halo around it. */
typedef struct {
    int x0, y0, width, height, stride;
    double *now, *next;
    unsigned char *fixed; /* cells held at their temperature */
} block;

typedef struct {
    int rank, size, columns, rows, up, down, left, right;
    MPI_Datatype column;
} grid;

static _Noreturn void die(const char *text, const char *detail) {
    fprintf(stderr, "heat: %s%s\n", text, detail);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static int number(const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < 1 || value > 100000)
        die("not a number from 1 to 100000: ", text);
    return (int)value;
}

static options parse(int argc, char **argv) {
    options o = {640, 400, 6000, 0, "heat.png"};
    for (int i = 1; i < argc; i++) {
        int more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            o.check = 1;
        else if (more && strcmp(argv[i], "--width") == 0)
            o.width = number(argv[++i]);
        else if (more && strcmp(argv[i], "--height") == 0)
            o.height = number(argv[++i]);
        else if (more && strcmp(argv[i], "--steps") == 0)
            o.steps = number(argv[++i]);
        else if (more && strcmp(argv[i], "--out") == 0)
            o.out = argv[++i];
        else
            die("unknown or incomplete option: ", argv[i]);
    }
    return o;
}

/* The heat sources, in coordinates of the unit square: the temperature if held, else -1. */
static double source(double x, double y) {
    double ring = hypot((x - 0.32) * 1.6, y - 0.5), bar = fabs(y - 0.5 - 0.18 * sin(9 * x));
    if (ring > 0.20 && ring < 0.23)
        return 1.0;
    if (x > 0.62 && x < 0.93 && bar < 0.012)
        return 0.8;
    if (hypot((x - 0.78) * 1.6, y - 0.82) < 0.05 || hypot((x - 0.32) * 1.6, y - 0.5) < 0.04)
        return 0.0;
    return x <= 0 || y <= 0 || x >= 1 || y >= 1 ? 0.0 : -1;
}

static block make_block(const options *o, int x0, int x1, int y0, int y1) {
    block b = {x0, y0, x1 - x0, y1 - y0, x1 - x0 + 2, NULL, NULL, NULL};
    size_t cells = (size_t)b.stride * (size_t)(b.height + 2);
    b.now = calloc(cells, sizeof(double));
    b.next = calloc(cells, sizeof(double));
    b.fixed = calloc(cells, 1);
    if (!b.now || !b.next || !b.fixed)
        die("no memory for the plate", "");
    for (int j = 0; j < b.height; j++)
        for (int i = 0; i < b.width; i++) {
            size_t at = (size_t)(j + 1) * (size_t)b.stride + (size_t)i + 1;
            double held = source((double)(x0 + i) / (o->width - 1), (double)(y0 + j) / (o->height - 1));
            b.fixed[at] = held >= 0;
            b.now[at] = b.next[at] = held >= 0 ? held : 0.1;
        }
    return b;
}

static void free_block(block *b) {
    free(b->now);
    free(b->next);
    free(b->fixed);
}

/* The process grid whose blocks are closest to squares. */
static grid make_grid(const options *o) {
    grid g = {0, 0, 1, 1, MPI_PROC_NULL, MPI_PROC_NULL, MPI_PROC_NULL, MPI_PROC_NULL, MPI_DATATYPE_NULL};
    double best = INFINITY;
    MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g.size);
    for (int columns = 1; columns <= g.size; columns++) {
        int rows = g.size / columns;
        double shape = fabs(log((double)o->width / columns) - log((double)o->height / (rows ? rows : 1)));
        if (columns * rows == g.size && shape < best) {
            best = shape;
            g.columns = columns;
            g.rows = rows;
        }
    }
    if (g.columns > o->width || g.rows > o->height)
        die("more ranks than rows or columns of the plate", "");
    int x = g.rank % g.columns, y = g.rank / g.columns;
    g.left = x > 0 ? g.rank - 1 : MPI_PROC_NULL;
    g.right = x + 1 < g.columns ? g.rank + 1 : MPI_PROC_NULL;
    g.up = y > 0 ? g.rank - g.columns : MPI_PROC_NULL;
    g.down = y + 1 < g.rows ? g.rank + g.columns : MPI_PROC_NULL;
    return g;
}

/* Where part `index` of `parts` of a length begins. */
static int begin(int length, int parts, int index) {
    return (int)((long long)length * index / parts);
}

static block block_of(const options *o, const grid *g, int rank, int bounds_only) {
    int x = rank % g->columns, y = rank / g->columns;
    int x0 = begin(o->width, g->columns, x), x1 = begin(o->width, g->columns, x + 1);
    int y0 = begin(o->height, g->rows, y), y1 = begin(o->height, g->rows, y + 1);
    if (!bounds_only)
        return make_block(o, x0, x1, y0, y1);
    return (block){x0, y0, x1 - x0, y1 - y0, x1 - x0 + 2, NULL, NULL, NULL};
}

/* One step of the rows and columns given (half open, in block coordinates); the largest change. */
static double relax(block *b, int x0, int x1, int y0, int y1) {
    double change = 0;
    for (int j = y0; j < y1; j++)
        for (int i = x0; i < x1; i++) {
            size_t at = (size_t)(j + 1) * (size_t)b->stride + (size_t)i + 1, s = (size_t)b->stride;
            if (b->fixed[at])
                continue;
            double value = 0.25 * ((b->now[at - 1] + b->now[at + 1]) + (b->now[at - s] + b->now[at + s]));
            change = fmax(change, fabs(value - b->now[at]));
            b->next[at] = value;
        }
    return change;
}

static void start_halo(block *b, const grid *g, MPI_Request *requests) {
    size_t s = (size_t)b->stride, w = (size_t)b->width, h = (size_t)b->height;
    double *top = b->now + s + 1, *bottom = b->now + h * s + 1;
    MPI_Isendrecv(top, b->width, MPI_DOUBLE, g->up, 0, bottom + s, b->width, MPI_DOUBLE, g->down, 0, MPI_COMM_WORLD,
                  &requests[0]);
    MPI_Isendrecv(bottom, b->width, MPI_DOUBLE, g->down, 1, top - s, b->width, MPI_DOUBLE, g->up, 1, MPI_COMM_WORLD,
                  &requests[1]);
    MPI_Isendrecv(top, 1, g->column, g->left, 2, top + w, 1, g->column, g->right, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isendrecv(top + w - 1, 1, g->column, g->right, 3, top - 1, 1, g->column, g->left, 3, MPI_COMM_WORLD,
                  &requests[3]);
}

/* One step: the interior while the halo travels, then the rim. */
static double step(block *b, const grid *g) {
    int w = b->width, h = b->height;
    MPI_Request requests[4];
    start_halo(b, g, requests);
    double change = relax(b, 1, w - 1, 1, h - 1);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    change = fmax(change, relax(b, 0, w, 0, 1));
    if (h > 1)
        change = fmax(change, relax(b, 0, w, h - 1, h));
    change = fmax(change, relax(b, 0, 1, 1, h - 1));
    if (w > 1)
        change = fmax(change, relax(b, w - 1, w, 1, h - 1));
    double *swap = b->now;
    b->now = b->next;
    b->next = swap;
    return change;
}

static void simulate(const options *o, block *b, const grid *g) {
    double begun = MPI_Wtime();
    for (int s = 1; s <= o->steps; s++) {
        double change = step(b, g), largest;
        if (s % ((o->steps + 9) / 10) && s != o->steps)
            continue;
        MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (g->rank == 0) {
            int tenths = (int)(10LL * s / o->steps);
            double rate = (double)o->width * o->height * s / (MPI_Wtime() - begun) / 1e6;
            printf("[%.*s%.*s] step %d of %d, residual %.2e, %.0f million cells/s\n", tenths, "##########",
                   10 - tenths, "----------", s, o->steps, largest, rate);
            fflush(stdout);
        }
    }
}

/* The whole plate on rank 0 (NULL elsewhere). */
static double *collect(const options *o, const block *b, const grid *g) {
    int whole[2] = {o->height, o->width}, padded[2] = {b->height + 2, b->stride};
    int shape[2] = {b->height, b->width}, inside[2] = {1, 1};
    MPI_Datatype mine;
    MPI_Request sending;
    MPI_Type_create_subarray(2, padded, shape, inside, MPI_ORDER_C, MPI_DOUBLE, &mine);
    MPI_Type_commit(&mine);
    MPI_Isend(b->now, 1, mine, 0, 4, MPI_COMM_WORLD, &sending);
    double *plate = NULL;
    if (g->rank == 0 && !(plate = malloc(sizeof(double) * (size_t)o->width * (size_t)o->height)))
        die("no memory for the whole plate", "");
    for (int r = 0; r < g->size && g->rank == 0; r++) {
        block other = block_of(o, g, r, 1);
        int part[2] = {other.height, other.width}, at[2] = {other.y0, other.x0};
        MPI_Datatype type;
        MPI_Type_create_subarray(2, whole, part, at, MPI_ORDER_C, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        MPI_Recv(plate, 1, type, r, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
    }
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    MPI_Type_free(&mine);
    return plate;
}

static void verify(const options *o, const double *plate) {
    block b = make_block(o, 0, o->width, 0, o->height);
    for (int s = 0; s < o->steps; s++) {
        relax(&b, 0, b.width, 0, b.height);
        double *swap = b.now;
        b.now = b.next;
        b.next = swap;
    }
    for (int y = 0; y < o->height; y++)
        for (int x = 0; x < o->width; x++)
            if (b.now[(size_t)(y + 1) * (size_t)b.stride + (size_t)x + 1] != plate[(size_t)y * (size_t)o->width + (size_t)x]) {
                fprintf(stderr, "heat: cell (%d, %d) differs from the serial result\n", x, y);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    printf("equal to the serial result in all %d cells\n", o->width * o->height);
    free_block(&b);
}

/* From black over violet, red and orange to white, with faint lines of equal temperature. */
static void colour(double heat, unsigned char *rgb) {
    static const double stops[7][3] = {{4, 3, 18},    {48, 12, 92},   {120, 28, 109}, {188, 55, 84},
                                       {237, 105, 37}, {251, 180, 26}, {252, 255, 200}};
    double place = fmin(fmax(sqrt(heat), 0), 1) * 6, line = fmod(heat * 10 + 0.5, 1.0);
    int low = place >= 6 ? 5 : (int)place;
    for (int c = 0; c < 3; c++) {
        double value = stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c]);
        rgb[c] = (unsigned char)(line < 0.1 ? value * 0.82 : value);
    }
}

static void picture(const options *o, const double *plate) {
    size_t cells = (size_t)o->width * (size_t)o->height;
    unsigned char *rgb = malloc(3 * cells);
    if (!rgb)
        die("no memory for the picture", "");
    for (size_t i = 0; i < cells; i++)
        colour(plate[i], rgb + 3 * i);
    if (!png_write(o->out, rgb, o->width, o->height))
        die("cannot write ", o->out);
    printf("wrote %s (%d x %d)\n", o->out, o->width, o->height);
    free(rgb);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    options o = parse(argc, argv);
    grid g = make_grid(&o);
    block b = block_of(&o, &g, g.rank, 0);
    MPI_Type_vector(b.height, 1, b.stride, MPI_DOUBLE, &g.column);
    MPI_Type_commit(&g.column);
    if (g.rank == 0)
        printf("a plate of %d x %d cells on %d x %d ranks\n", o.width, o.height, g.columns, g.rows);
    simulate(&o, &b, &g);
    double *plate = collect(&o, &b, &g);
    if (plate && o.check)
        verify(&o, plate);
    if (plate)
        picture(&o, plate);
    free(plate);
    free_block(&b);
    MPI_Type_free(&g.column);
    MPI_Finalize();
    return 0;
}
