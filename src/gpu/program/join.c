#include "gpu/program/join.h"

#include "gpu/program/piece.h"

#include <stdlib.h>

_Static_assert((int)MC_DEVICE_SLOTS >= MC_PROGRAM_WINDOW + 2, "joined messages cannot hang");

/* Joining ---------------------------------------------------------------------------------------- */

/* Messages that are moved together: runs [at, end), so many for each. */
typedef struct {
    uint32_t at, end, runs;
    uint32_t receives, sends;
} group_t;

/* One side of a run. */
typedef struct {
    uint8_t buffer;
    uint64_t at;
    int64_t stride;
} side_t;

static side_t from_of(const mc_device_run_t *r)
{
    return (side_t){r->from_buffer, r->from, r->from_stride};
}
static side_t to_of(const mc_device_run_t *r)
{
    return (side_t){r->to_buffer, r->to, r->to_stride};
}
static bool same_side(side_t a, side_t b)
{
    return a.buffer == b.buffer && a.at == b.at && a.stride == b.stride;
}

/* Run i of the first direct send of a group; NULL: it has none. */
static const mc_device_run_t *direct_send(const group_t *g, const mc_device_run_t *run, uint32_t i)
{
    for (uint32_t at = g->at + i; at < g->end; at += g->runs)
        if (run[at].op == MC_DEVICE_SEND && run[at].flags & MC_DEVICE_DIRECT)
            return &run[at];
    return NULL;
}

/* Can a run be moved with run i of a group's messages? Direct sends go to one place of their peers. */
static bool fits(const group_t *g, const mc_device_run_t *run, uint32_t i,
                 const mc_device_run_t *next)
{
    const mc_device_run_t *const first = &run[g->at + i], *const sent = direct_send(g, run, i);
    const side_t value = g->receives > 0 ? to_of(first) : from_of(first);
    if (next->n != first->n || next->bytes != first->bytes || !same_side(from_of(next), value))
        return false;
    if (next->op != MC_DEVICE_SEND)
        return same_side(to_of(next), value);
    return !sent || !(next->flags & MC_DEVICE_DIRECT) || same_side(to_of(next), to_of(sent));
}

static bool has_lane(const group_t *g, const mc_device_run_t *run, uint32_t lane)
{
    for (uint32_t i = g->at; i < g->end; i += g->runs)
        if (run[i].lane == lane)
            return true;
    return false;
}

static void count(group_t *g, const mc_device_run_t *run, uint32_t at)
{
    g->sends += run[at].op == MC_DEVICE_SEND;
    g->receives += run[at].op != MC_DEVICE_SEND;
    g->end = at + g->runs;
}

static group_t alone(const mc_device_run_t *run, uint32_t at)
{
    group_t g = {.at = at, .runs = mc_device_step_end(run, at) - at};
    count(&g, run, at);
    return g;
}

/* The group that begins at `at`. */
static group_t group_at(const mc_device_run_t *run, uint32_t at)
{
    group_t g = alone(run, at);
    while (run[g.end - 1].flags & MC_DEVICE_JOIN)
        count(&g, run, g.end);
    return g;
}

/* Can the message behind a group be moved with it? */
static bool takes(const group_t *g, const mc_device_run_t *run, uint32_t n)
{
    const mc_device_run_t *const next = &run[g->end];
    if (g->end == n || !mc_device_is_message(next) || next->op == MC_DEVICE_RECV ||
        (next->op == MC_DEVICE_RECV_REDUCE && g->sends > 0) ||
        g->receives + g->sends == MC_DEVICE_JOINED || has_lane(g, run, next->lane) ||
        mc_device_track(next) != mc_device_track(&run[g->at]) ||
        mc_device_step_end(run, g->end) - g->end != g->runs)
        return false;
    for (uint32_t i = 0; i < g->runs; i++)
        if (!fits(g, run, i, &run[g->end + i]))
            return false;
    return true;
}

/* Along a tree the first peer passes on what it receives. Its message is not delayed by others. */
static bool is_delayed(const group_t *g, const mc_plan_t *plan, const mc_device_run_t *run)
{
    return g->sends > 0 && plan->traffic[plan->step[run[g->end].step].phase].rooted;
}

static group_t join_from(const mc_plan_t *plan, mc_device_run_t *run, uint32_t n, uint32_t at)
{
    group_t g = alone(run, at);
    while (takes(&g, run, n) && !is_delayed(&g, plan, run)) {
        run[g.end - 1].flags |= MC_DEVICE_JOIN;
        count(&g, run, g.end);
    }
    return g;
}

const char *mc_device_join_fault(const mc_device_run_t *run, uint32_t n, uint32_t *at)
{
    group_t g = alone(run, *at);
    while (run[g.end - 1].flags & MC_DEVICE_JOIN) {
        if (!takes(&g, run, n)) {
            *at = g.end - 1;
            return "the next message cannot be moved with it";
        }
        count(&g, run, g.end);
    }
    for (uint32_t i = g.at; i < g.end; i++) {
        const bool receives = run[i].op != MC_DEVICE_SEND, drops = run[i].flags & MC_DEVICE_DROP;
        const bool last = i >= g.at + (g.receives - 1) * g.runs;
        if (drops ? !receives || (last && g.sends == 0) : receives && !last) {
            *at = i;
            return "what it writes is dropped and not sent, or is kept but overwritten";
        }
    }
    *at = g.end;
    return NULL;
}

/* What is kept ----------------------------------------------------------------------------------- */

/* Walks the plan backwards. `later`: what later steps read, or the caller: chunks of IN and OUT, which may
 * be the same memory, and of SCRATCH. `last`: by step, 1 more than the first run of the group that ends with
 * it; 0: none. */
typedef struct {
    const mc_binding_t *binding;
    mc_bitmap_t later[2];
    uint32_t *last;
} keeping_t;

static void keeping_close(keeping_t *k)
{
    free(k->last);
    mc_bitmap_free(&k->later[1]);
    mc_bitmap_free(&k->later[0]);
}

static int keeping_open(const mc_binding_t *binding, keeping_t *keeping)
{
    const mc_plan_t *const plan = binding->plan;
    keeping_t k = {.binding = binding, .last = calloc((size_t)plan->n_steps + 1, sizeof *k.last)};
    int status = k.last ? MESHCOLL_OK : mc_fail_memory("a program");
    if (!status)
        status = mc_bitmap_init(&k.later[0], plan->n_chunks);
    if (!status)
        status = mc_bitmap_init(&k.later[1], plan->scratch_first + plan->n_scratch);
    if (status) {
        keeping_close(&k);
        return status;
    }
    mc_bitmap_set(&k.later[0], 0, plan->n_chunks);
    *keeping = k;
    return MESHCOLL_OK;
}

/* Where a chunk is noted: a lent one of SCRATCH lies in OUT. */
static mc_bitmap_t *place_of(keeping_t *k, mc_buffer_t buffer, uint32_t chunk)
{
    const bool aside =
        buffer == MC_SCRATCH && mc_binding_chunk(k->binding, MC_SCRATCH, chunk).home != MC_OUT;
    return &k->later[aside];
}

typedef enum { ANY, SET, CLEAR } note_t;

/* Is any chunk of the range read later? Or notes that all are, or none. */
static bool note(keeping_t *k, mc_buffer_t buffer, mc_range_t range, note_t what)
{
    bool any = false;
    for (uint32_t i = 0; i < mc_range_chunks(range); i++) {
        const uint32_t chunk = mc_range_chunk(range, i);
        mc_bitmap_t *const map = place_of(k, buffer, chunk);
        any = any || mc_bitmap_has(map, chunk);
        if (what == SET)
            mc_bitmap_set(map, chunk, 1);
        if (what == CLEAR)
            map->word[chunk / 64] &= ~(UINT64_C(1) << chunk % 64);
    }
    return any;
}

static void step_back(keeping_t *k, const mc_step_t *s)
{
    const mc_op_t op = (mc_op_t)s->op;
    if (mc_op_writes(op) && !mc_op_adds(op))
        (void)note(k, (mc_buffer_t)s->dst, mc_step_to(s), CLEAR);
    if (mc_op_reads(op))
        (void)note(k, (mc_buffer_t)s->src, mc_step_from(s), SET);
}

/* Marks the receives of a group whose value is not kept: of all but the last the next one takes it. */
static void drop(const group_t *g, mc_device_run_t *run, bool kept)
{
    const uint32_t receives = g->receives - (kept && g->receives > 0);
    for (uint32_t i = 0; i < receives * g->runs; i++)
        run[g->at + i].flags |= MC_DEVICE_DROP;
}

int mc_device_join(const mc_binding_t *binding, mc_device_run_t *run, uint32_t n)
{
    const mc_plan_t *const plan = binding->plan;
    keeping_t k;
    const int status = keeping_open(binding, &k);
    if (status)
        return status;
    for (uint32_t i = 0; i < n;) {
        if (!mc_device_is_message(&run[i])) {
            i++;
            continue;
        }
        const group_t g = join_from(plan, run, n, i);
        k.last[run[g.end - 1].step] = g.at + 1;
        i = g.end;
    }
    for (uint32_t i = plan->n_steps; i-- > 0;) {
        if (k.last[i] > 0) {
            const group_t g = group_at(run, k.last[i] - 1);
            const mc_step_t *const s = &plan->step[run[g.at].step];
            const bool sent = g.receives > 0 && g.sends > 0;
            drop(&g, run, !sent || note(&k, (mc_buffer_t)s->dst, mc_step_to(s), ANY));
        }
        step_back(&k, &plan->step[i]);
    }
    keeping_close(&k);
    return MESHCOLL_OK;
}
