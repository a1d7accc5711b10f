/*
 * Checks dependencies independently of sealing. It walks through a plan in program order and notes
 * for each chunk the last writer and the readers since. Where a step must wait for another, a path
 * of edges must lead from that one to it.
 */
#include "base/arena.h"
#include "plan/verify/check.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t NONE = UINT32_MAX;

typedef struct {
    uint32_t writer, readers; /* a step, or NONE; the first of a list in `pool`, or NONE */
    bool used;                /* has a step read what the writer wrote? */
} cell_t;

typedef struct {
    uint32_t step, next;
} reader_t;

/* The state of one rank at a time; the arrays are as large as the largest plan needs. */
typedef struct {
    mc_arena_t arena;
    const mc_plan_t *plan;
    uint32_t *pred_off, *pred; /* reversed edges */
    uint32_t *mark;            /* by step: 1 + the last step known to wait for it */
    uint32_t *seen, *stack;    /* by step: the last search that reached it */
    uint32_t searches;
    uint32_t home[MC_MAX_SIDES]; /* the rank's home chunk in a segment of each side */
    cell_t *cell;                /* OUT, shared with IN where a rank has both, then SCRATCH */
    reader_t *pool;
    uint32_t n_pool, pool_capacity;
} hazards_t;

static int hazards_create(const mc_world_t *world, hazards_t *hazards)
{
    size_t steps = 0, edges = 0, cells = 0;
    for (int32_t r = 0; r < world->n_ranks; r++) {
        const mc_plan_t *const plan = world->plan[r];
        const size_t rank_cells = (size_t)plan->n_chunks + plan->n_scratch;
        steps = plan->n_steps > steps ? plan->n_steps : steps;
        edges = plan->n_edges > edges ? plan->n_edges : edges;
        cells = rank_cells > cells ? rank_cells : cells;
    }
    hazards_t h = {.pool = NULL};
    mc_arena_t *const a = &h.arena;
    h.pred_off = mc_arena_take(a, steps + 2, sizeof *h.pred_off);
    h.pred = mc_arena_take(a, edges, sizeof *h.pred);
    h.mark = mc_arena_take(a, steps, sizeof *h.mark);
    h.seen = mc_arena_take(a, steps, sizeof *h.seen);
    h.stack = mc_arena_take(a, steps, sizeof *h.stack);
    h.cell = mc_arena_take(a, cells, sizeof *h.cell);
    if (a->failed) {
        mc_arena_free(a);
        return mc_fail_memory("the dependencies of a plan");
    }
    *hazards = h;
    return MESHCOLL_OK;
}

/* Edges lead forward, and each step counts its predecessors right. */
static int check_edges(const hazards_t *h)
{
    const mc_plan_t *const plan = h->plan;
    uint32_t *const counted = h->mark;
    memset(counted, 0, (size_t)plan->n_steps * sizeof *counted);
    bool in_range = plan->succ_off[0] == 0 && plan->succ_off[plan->n_steps] == plan->n_edges;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        in_range = in_range && plan->succ_off[i] <= plan->succ_off[i + 1] &&
                   plan->succ_off[i + 1] <= plan->n_edges;
    if (!in_range)
        return mc_fail(MESHCOLL_ERR_PLAN, "rank %d: the lists of successors are out of order",
                       plan->rank);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        for (uint32_t e = plan->succ_off[i]; e < plan->succ_off[i + 1]; e++) {
            if (plan->succ[e] <= i || plan->succ[e] >= plan->n_steps)
                return mc_fail_step(plan, i, "has successor %u: expected a later step of %u",
                                    plan->succ[e], plan->n_steps);
            counted[plan->succ[e]]++;
        }
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (counted[i] != plan->n_pred[i])
            return mc_fail_step(plan, i, "waits for %u steps, its count says %u", counted[i],
                                plan->n_pred[i]);
    return MESHCOLL_OK;
}

/* Does a path of edges lead from `early` to `late`? */
static bool leads_to(hazards_t *h, uint32_t early, uint32_t late)
{
    uint32_t n = 0;
    h->searches++;
    h->stack[n++] = late;
    while (n > 0) {
        const uint32_t at = h->stack[--n];
        for (uint32_t e = h->pred_off[at]; e < h->pred_off[at + 1]; e++) {
            const uint32_t p = h->pred[e];
            if (p == early)
                return true;
            /* edges lead forward: a step before `early` cannot follow it */
            if (p > early && h->seen[p] != h->searches) {
                h->seen[p] = h->searches;
                h->stack[n++] = p;
            }
        }
    }
    return false;
}

/* `why` says what `late` does to the data of `early`. */
static int must_wait(hazards_t *h, uint32_t early, uint32_t late, const char *why)
{
    if (early == late || h->mark[early] == late + 1)
        return MESHCOLL_OK;
    if (!leads_to(h, early, late))
        return mc_fail_step(h->plan, late, "%s step %u: expected a dependency, found none", why,
                            early);
    h->mark[early] = late + 1;
    return MESHCOLL_OK;
}

/* A read of IN is no use of what was written to OUT: out of place, IN is other memory. */
static int read_input(hazards_t *h, cell_t *cell, uint32_t step)
{
    reader_t *const pool = mc_grown(h->pool, h->n_pool, &h->pool_capacity, sizeof *pool);
    if (!pool)
        return mc_fail_memory("the dependencies of a plan");
    h->pool = pool;
    h->pool[h->n_pool] = (reader_t){.step = step, .next = cell->readers};
    cell->readers = h->n_pool++;
    return cell->writer == NONE ? MESHCOLL_OK
                                : must_wait(h, cell->writer, step, "reads what is written by");
}

static int read_cell(hazards_t *h, cell_t *cell, uint32_t step)
{
    cell->used = true;
    return read_input(h, cell, step);
}

static int write_cell(hazards_t *h, cell_t *cell, uint32_t step)
{
    int status = MESHCOLL_OK;
    if (cell->writer != NONE && !cell->used)
        return mc_fail_step(
            h->plan, step,
            "overwrites what step %u wrote and nothing has read: expected no useless "
            "work",
            cell->writer);
    for (uint32_t r = cell->readers; r != NONE && !status; r = h->pool[r].next)
        status = must_wait(h, h->pool[r].step, step, "overwrites what is read by");
    *cell = (cell_t){.writer = step, .readers = NONE};
    return status;
}

/* A copy of IN to the same chunk of OUT need not wait for readers of IN: in place it moves nothing,
 * and out of place it writes other memory. */
static int write_own(hazards_t *h, cell_t *cell, uint32_t step)
{
    int status = MESHCOLL_OK;
    if (cell->writer != NONE)
        return write_cell(h, cell, step);
    for (uint32_t r = cell->readers; r != NONE && !status; r = h->pool[r].next)
        if (h->plan->step[h->pool[r].step].src != MC_IN)
            status = must_wait(h, h->pool[r].step, step, "overwrites what is read by");
    cell->writer = step;
    return status;
}

static bool holds(const hazards_t *h, mc_holds_t what, uint32_t chunk)
{
    const mc_layout_t *const l = &h->plan->layout;
    return what == MC_HOLDS_WHOLE ||
           (what == MC_HOLDS_HOME &&
            chunk % l->per_segment == h->home[mc_layout_side(l, chunk / l->per_segment)]);
}

/* Returns NULL where no write can conflict: for chunks of IN that OUT does not share. */
static cell_t *cell_of(const hazards_t *h, uint8_t buffer, uint32_t chunk)
{
    const mc_plan_t *const plan = h->plan;
    if (buffer == MC_SCRATCH)
        return &h->cell[plan->n_chunks + (chunk - plan->scratch_first)];
    if (buffer == MC_IN && !(holds(h, plan->in, chunk) && holds(h, plan->out, chunk)))
        return NULL;
    return &h->cell[chunk];
}

static int each_cell(hazards_t *h, uint32_t step, uint8_t buffer, mc_range_t range,
                     int (*each)(hazards_t *h, cell_t *cell, uint32_t step))
{
    int status = MESHCOLL_OK;
    for (uint32_t k = 0; k < mc_range_chunks(range) && !status; k++) {
        cell_t *const cell = cell_of(h, buffer, mc_range_chunk(range, k));
        if (cell)
            status = each(h, cell, step);
    }
    return status;
}

static int check_step(hazards_t *h, uint32_t step)
{
    const mc_step_t *const s = &h->plan->step[step];
    const mc_op_t op = (mc_op_t)s->op;
    int status = MESHCOLL_OK;
    for (uint32_t e = h->pred_off[step]; e < h->pred_off[step + 1]; e++)
        h->mark[h->pred[e]] = step + 1;
    if (mc_op_reads(op))
        status =
            each_cell(h, step, s->src, mc_step_from(s), s->src == MC_IN ? read_input : read_cell);
    if (mc_op_adds(op) && !status)
        status = each_cell(h, step, s->dst, mc_step_to(s), read_cell);
    if (mc_op_writes(op) && !status)
        status = each_cell(h, step, s->dst, mc_step_to(s),
                           mc_step_copies_own(s) ? write_own : write_cell);
    return status;
}

static int check_left_over(const hazards_t *h)
{
    const mc_plan_t *const plan = h->plan;
    for (uint32_t i = 0; i < plan->n_scratch; i++) {
        const cell_t *const cell = &h->cell[plan->n_chunks + i];
        const uint32_t chunk = plan->scratch_first + i;
        if (cell->writer != NONE && !cell->used && !mc_plan_absent(plan, MC_SCRATCH, chunk))
            return mc_fail_step(plan, cell->writer,
                                "writes scratch[%u], which nothing reads: expected no useless "
                                "work",
                                plan->scratch_first + i);
    }
    return MESHCOLL_OK;
}

static int check_rank(hazards_t *h, const mc_plan_t *plan)
{
    h->plan = plan;
    for (uint32_t side = 0; side < plan->layout.sides; side++)
        h->home[side] = mc_layout_home(&plan->layout, plan->rank, side) % plan->layout.per_segment;
    int status = check_edges(h);
    if (status)
        return status;
    mc_plan_predecessors(plan, h->pred_off, h->pred);
    h->n_pool = h->searches = 0;
    memset(h->mark, 0, (size_t)plan->n_steps * sizeof *h->mark);
    memset(h->seen, 0, (size_t)plan->n_steps * sizeof *h->seen);
    for (size_t i = 0; i < (size_t)plan->n_chunks + plan->n_scratch; i++)
        h->cell[i] = (cell_t){.writer = NONE, .readers = NONE};
    for (uint32_t i = 0; i < plan->n_steps && !status; i++)
        status = check_step(h, i);
    return status ? status : check_left_over(h);
}

int mc_check_dependencies(const mc_world_t *world)
{
    hazards_t h = {0};
    int status = hazards_create(world, &h);
    if (status)
        return status;
    for (int32_t r = 0; r < world->n_ranks && !status; r++)
        status = check_rank(&h, world->plan[r]);
    free(h.pool);
    mc_arena_free(&h.arena);
    return status;
}
