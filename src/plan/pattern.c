/* Derives what steps wait for from the order in which they read and write chunks. */
#include "plan/steps.h"

#include <stdlib.h>
#include <string.h>

/* IN and OUT share memory in place, so they are one space always. */
enum { USER_SPACE, SCRATCH_SPACE, SPACES };
static const uint32_t NONE = UINT32_MAX;

typedef struct {
    mc_bitmap_t bound; /* chunks at which a cell starts */
    uint32_t *before;  /* per word of `bound`: the cells that start before it */
    uint32_t *writer;  /* per cell: its last writer */
    uint32_t *readers; /* per cell: first of a list in `pool` of its readers since */
} space_t;

typedef struct {
    uint32_t step, next;
} reader_t;

typedef struct {
    uint32_t from, to;
} edge_t;

typedef struct {
    space_t space[SPACES];
    reader_t *pool;
    uint32_t n_pool, pool_capacity;
    edge_t *edge;
    uint32_t n_edges, edge_capacity;
    uint32_t *mark; /* per step: 1 + the last step it has an edge to */
} sealing_t;

static int space_index(uint8_t buffer)
{
    return buffer == MC_SCRATCH ? SCRATCH_SPACE : USER_SPACE;
}

static void bound_range(mc_bitmap_t *bound, mc_range_t r)
{
    for (uint32_t i = 0; i < mc_range_runs(r); i++) {
        const mc_chunks_t run = mc_range_run(r, i);
        mc_bitmap_set(bound, run.first, 1);
        if (run.first + run.n < bound->bits)
            mc_bitmap_set(bound, run.first + run.n, 1);
    }
}

static uint32_t cell_of(const space_t *space, uint32_t chunk)
{
    const uint64_t upto = space->bound.word[chunk / 64] & (~UINT64_C(0) >> (63 - chunk % 64));
    return space->before[chunk / 64] + (uint32_t)__builtin_popcountll(upto) - 1;
}

static int space_init(space_t *space, uint32_t chunks)
{
    const int status = mc_bitmap_init(&space->bound, chunks);
    if (status)
        return status;
    mc_bitmap_set(&space->bound, 0, 1);
    return MESHCOLL_OK;
}

/* Numbers the cells, once all bounds are set. */
static int space_number_cells(space_t *space)
{
    const uint32_t words = space->bound.bits / 64 + 1;
    space->before = malloc(words * sizeof *space->before);
    if (!space->before)
        return mc_fail_memory("sealing a plan");
    uint32_t cells = 0;
    for (uint32_t w = 0; w < words; w++) {
        space->before[w] = cells;
        cells += (uint32_t)__builtin_popcountll(space->bound.word[w]);
    }
    space->writer = malloc(cells * sizeof *space->writer);
    space->readers = malloc(cells * sizeof *space->readers);
    if (!space->writer || !space->readers)
        return mc_fail_memory("sealing a plan");
    memset(space->writer, 0xff, cells * sizeof *space->writer);
    memset(space->readers, 0xff, cells * sizeof *space->readers);
    return MESHCOLL_OK;
}

static void sealing_free(sealing_t *s)
{
    for (int i = 0; i < SPACES; i++) {
        mc_bitmap_free(&s->space[i].bound);
        free(s->space[i].before);
        free(s->space[i].writer);
        free(s->space[i].readers);
    }
    free(s->pool);
    free(s->edge);
    free(s->mark);
}

static void set_bounds(sealing_t *s, const mc_step_t *step, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const mc_op_t op = (mc_op_t)step[i].op;
        if (mc_op_reads(op))
            bound_range(&s->space[space_index(step[i].src)].bound, mc_step_from(&step[i]));
        if (mc_op_writes(op))
            bound_range(&s->space[space_index(step[i].dst)].bound, mc_step_to(&step[i]));
    }
}

static int add_edge(sealing_t *s, uint32_t from, uint32_t to)
{
    if (from == to || s->mark[from] == to + 1)
        return MESHCOLL_OK;
    edge_t *const edge = mc_grown(s->edge, s->n_edges, &s->edge_capacity, sizeof *edge);
    if (!edge)
        return mc_fail_memory("sealing a plan");
    s->edge = edge;
    s->mark[from] = to + 1;
    s->edge[s->n_edges++] = (edge_t){from, to};
    return MESHCOLL_OK;
}

static int read_cell(sealing_t *s, space_t *space, uint32_t cell, uint32_t step)
{
    reader_t *const pool = mc_grown(s->pool, s->n_pool, &s->pool_capacity, sizeof *pool);
    if (!pool)
        return mc_fail_memory("sealing a plan");
    s->pool = pool;
    const int status =
        space->writer[cell] == NONE ? MESHCOLL_OK : add_edge(s, space->writer[cell], step);
    if (status)
        return status;
    s->pool[s->n_pool] = (reader_t){.step = step, .next = space->readers[cell]};
    space->readers[cell] = s->n_pool++;
    return MESHCOLL_OK;
}

static int write_cell(sealing_t *s, space_t *space, uint32_t cell, uint32_t step)
{
    int status = MESHCOLL_OK;
    if (space->readers[cell] == NONE && space->writer[cell] != NONE)
        status = add_edge(s, space->writer[cell], step);
    for (uint32_t r = space->readers[cell]; r != NONE && !status; r = s->pool[r].next)
        status = add_edge(s, s->pool[r].step, step);
    space->writer[cell] = step;
    space->readers[cell] = NONE;
    return status;
}

/* A copy of IN to the same chunk of OUT need not wait for other readers of IN: it does not change
 * the data they read. The next writer of the chunk waits for the copy and for them. */
static int write_own(sealing_t *s, space_t *space, uint32_t cell, uint32_t step)
{
    if (space->writer[cell] != NONE)
        return write_cell(s, space, cell, step);
    space->writer[cell] = step;
    return MESHCOLL_OK;
}

static int each_cell(sealing_t *s, uint8_t buffer, mc_range_t r, uint32_t step,
                     int (*each)(sealing_t *, space_t *, uint32_t cell, uint32_t step))
{
    space_t *const space = &s->space[space_index(buffer)];
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < mc_range_runs(r); i++) {
        const mc_chunks_t run = mc_range_run(r, i);
        const uint32_t last = cell_of(space, run.first + run.n - 1);
        for (uint32_t cell = cell_of(space, run.first); cell <= last && !status; cell++)
            status = each(s, space, cell, step);
    }
    return status;
}

static int derive_edges(sealing_t *s, const mc_step_t *step, uint32_t n)
{
    s->mark = calloc((size_t)n + 1, sizeof *s->mark);
    if (!s->mark)
        return mc_fail_memory("sealing a plan");
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        const mc_op_t op = (mc_op_t)step[i].op;
        if (mc_op_reads(op))
            status = each_cell(s, step[i].src, mc_step_from(&step[i]), i, read_cell);
        if (mc_op_adds(op) && !status)
            status = each_cell(s, step[i].dst, mc_step_to(&step[i]), i, read_cell);
        if (mc_op_writes(op) && !status)
            status = each_cell(s, step[i].dst, mc_step_to(&step[i]), i,
                               mc_step_copies_own(&step[i]) ? write_own : write_cell);
    }
    return status;
}

/* Edges are sorted by target, so each step's successors ascend too. */
static void fill_edges(const sealing_t *s, mc_pattern_t *p)
{
    memset(p->succ_off, 0, ((size_t)p->n + 1) * sizeof *p->succ_off);
    memset(p->n_pred, 0, (size_t)p->n * sizeof *p->n_pred);
    for (uint32_t e = 0; e < s->n_edges; e++) {
        p->succ_off[s->edge[e].from]++;
        p->n_pred[s->edge[e].to]++;
    }
    uint32_t end = 0;
    for (uint32_t i = 0; i <= p->n; i++) {
        end += p->succ_off[i];
        p->succ_off[i] = end;
    }
    for (uint32_t e = s->n_edges; e-- > 0;)
        p->succ[--p->succ_off[s->edge[e].from]] = s->edge[e].to;
}

static int keep_edges(const sealing_t *s, mc_pattern_t *p)
{
    const size_t words = 2 * (size_t)p->n + 1 + s->n_edges;
    p->succ_off = malloc(words * sizeof *p->succ_off);
    if (!p->succ_off)
        return mc_fail_memory("sealing a plan");
    p->succ = p->succ_off + p->n + 1;
    p->n_pred = p->succ + s->n_edges;
    p->n_edges = s->n_edges;
    fill_edges(s, p);
    return MESHCOLL_OK;
}

int mc_pattern_derive(mc_pattern_t *p, uint32_t chunks, uint32_t scratch)
{
    sealing_t s = {0};
    int status = space_init(&s.space[USER_SPACE], chunks);
    if (!status)
        status = space_init(&s.space[SCRATCH_SPACE], scratch);
    if (!status)
        set_bounds(&s, p->step, p->n);
    for (int i = 0; i < SPACES && !status; i++)
        status = space_number_cells(&s.space[i]);
    if (!status)
        status = derive_edges(&s, p->step, p->n);
    if (!status)
        status = keep_edges(&s, p);
    sealing_free(&s);
    return status;
}

void mc_pattern_free(mc_pattern_t *p)
{
    free(p->succ_off);
    *p = (mc_pattern_t){0};
}
