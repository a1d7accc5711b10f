#include "gpu/program/direct.h"

#include "gpu/program/format.h"

#include <string.h>

static const mc_plan_t *plan_of(const mc_direct_world_t *w, int32_t i)
{
    return w->binding[i].plan;
}

static bool is_message(const mc_step_t *s)
{
    return mc_op_sends((mc_op_t)s->op) || mc_op_receives((mc_op_t)s->op);
}

/* Words of a chunk: what blocks share. */
static uint64_t words_of(const mc_binding_t *b, uint8_t buffer, uint32_t chunk)
{
    const size_t bytes = mc_binding_chunk(b, (mc_buffer_t)buffer, chunk).bytes;
    return (bytes + MC_DEVICE_WORD - 1) / MC_DEVICE_WORD;
}

/* Ends of messages ------------------------------------------------------------------------------- */

static int32_t index_of(const mc_direct_world_t *w, int32_t rank)
{
    int32_t i = 0;
    while (i < w->n && plan_of(w, i)->rank != rank)
        i++;
    return i < w->n ? i : -1;
}

/* The receive of a send: messages of two ranks are numbered in program order. */
static uint32_t find_receive(const mc_plan_t *plan, const mc_step_t *send, int32_t from)
{
    uint32_t i = 0;
    while (i < plan->n_steps && !(mc_op_receives((mc_op_t)plan->step[i].op) &&
                                  plan->step[i].peer == from && plan->step[i].seq == send->seq))
        i++;
    return i;
}

/* Does a step store in OUT? Chunks of SCRATCH that lie there do so out of place, which ranks know of
 * each other only where all are. */
static bool stores_in_out(const mc_direct_world_t *w, int32_t i, const mc_step_t *s)
{
    const mc_range_t to = mc_step_to(s);
    bool all = s->dst == MC_OUT || (s->dst == MC_SCRATCH && w->apart);
    for (uint32_t k = 0; all && s->dst == MC_SCRATCH && k < mc_range_chunks(to); k++) {
        const mc_chunk_t chunk =
            mc_binding_chunk(&w->binding[i], MC_SCRATCH, mc_range_chunk(to, k));
        all = chunk.bytes == 0 || chunk.home == MC_OUT;
    }
    return all;
}

/* A receive that only stores, in OUT, what a rank that reaches it sends. */
static bool may_be_direct(const mc_direct_world_t *w, int32_t i, int32_t from, const mc_step_t *s)
{
    return s->op == MC_OP_RECV && w->linked[from * w->n + i] && stores_in_out(w, i, s);
}

static void match_send(const mc_direct_t *d, int32_t i, uint32_t step)
{
    const mc_direct_world_t *const w = &d->world;
    const mc_step_t *const s = &plan_of(w, i)->step[step];
    const int32_t to = index_of(w, s->peer);
    if (to < 0)
        return;
    const mc_plan_t *const plan = plan_of(w, to);
    const uint32_t at = find_receive(plan, s, plan_of(w, i)->rank);
    if (at == plan->n_steps)
        return;
    const bool direct = may_be_direct(w, to, i, &plan->step[at]);
    d->step[d->first[i] + step] = (mc_direct_step_t){to, at, direct};
    d->step[d->first[to] + at] = (mc_direct_step_t){i, step, direct};
}

static void match_all(const mc_direct_t *d)
{
    for (int32_t i = 0; i < d->world.n; i++)
        for (uint32_t k = 0; k < plan_of(&d->world, i)->n_steps; k++)
            d->step[d->first[i] + k] = (mc_direct_step_t){.peer = -1};
    for (int32_t i = 0; i < d->world.n; i++)
        for (uint32_t k = 0; k < plan_of(&d->world, i)->n_steps; k++)
            if (mc_op_sends((mc_op_t)plan_of(&d->world, i)->step[k].op))
                match_send(d, i, k);
}

/* Order ------------------------------------------------------------------------------------------ */

/* For places of so many words. Steps are counted from 1; 0: none. */
typedef struct {
    mc_arena_t arena;
    const mc_direct_t *direct;
    uint64_t words;
    uint32_t *touched; /* by step that receives: the last step before it that touches its places */
    uint32_t *clock;   /* rank * n + other: how many of the other's steps it knows to be done */
    uint32_t *sent;    /* step * n + other: the same, as its message carries it */
    uint32_t *at;      /* by rank: its next step */
    uint32_t *last;    /* by chunk of OUT: the last step of a rank that touched it */
} order_t;

static int order_open(const mc_direct_t *d, order_t *order)
{
    const size_t n = (size_t)d->world.n, steps = d->first[n];
    const size_t chunks = n > 0 ? plan_of(&d->world, 0)->n_chunks : 0;
    order_t o = {.direct = d};
    o.touched = mc_arena_take(&o.arena, steps, sizeof *o.touched);
    o.clock = mc_arena_take(&o.arena, n * n, sizeof *o.clock);
    o.sent = mc_arena_take(&o.arena, steps * n, sizeof *o.sent);
    o.at = mc_arena_take(&o.arena, n, sizeof *o.at);
    o.last = mc_arena_take(&o.arena, chunks, sizeof *o.last);
    if (o.arena.failed) {
        mc_arena_free(&o.arena);
        return mc_fail_memory("the order of messages");
    }
    *order = o;
    return MESHCOLL_OK;
}

/* Words of a block's slice of a chunk. */
static uint64_t part_of(uint64_t words, uint32_t blocks, uint32_t block)
{
    const uint64_t slice = (words + blocks - 1) / blocks, at = slice * block;
    const uint64_t left = words > at ? words - at : 0;
    return left < slice ? left : slice;
}

/* Has each block a part of a chunk of `words` in each pass in which it has one of a chunk of `least`? */
static bool covers(uint64_t words, uint64_t least, uint32_t blocks)
{
    bool all = words >= least;
    for (uint32_t b = 0; all && words > least && b < blocks; b++)
        all = part_of(words, blocks, b) >= part_of(least, blocks, b);
    return all;
}

static bool carries(const order_t *o, int32_t i, const mc_step_t *send)
{
    const mc_direct_world_t *const w = &o->direct->world;
    const mc_range_t from = mc_step_from(send);
    bool any = false;
    for (uint32_t k = 0; k < mc_range_chunks(from) && !any; k++)
        any = covers(words_of(&w->binding[i], send->src, mc_range_chunk(from, k)), o->words,
                     w->blocks);
    return any;
}

/* Notes that a step touches chunks, where they may lie in OUT. */
static void touch(const order_t *o, int32_t i, uint8_t buffer, mc_range_t range, uint32_t step)
{
    const mc_direct_world_t *const w = &o->direct->world;
    const mc_binding_t *const b = &w->binding[i];
    for (uint32_t k = 0; k < mc_range_chunks(range); k++) {
        const uint32_t c = mc_range_chunk(range, k);
        const bool lent = buffer == MC_SCRATCH && c < b->lent.bits && mc_bitmap_has(&b->lent, c);
        if (buffer == MC_OUT || (buffer == MC_IN && !w->apart) || lent)
            o->last[c] = step;
    }
}

static uint32_t last_touch(const order_t *o, int32_t i, const mc_step_t *s)
{
    const mc_range_t to = mc_step_to(s);
    uint32_t last = 0;
    for (uint32_t k = 0; k < mc_range_chunks(to); k++) {
        const uint32_t c = mc_range_chunk(to, k);
        /* an empty chunk of SCRATCH has no place in OUT */
        if (words_of(&o->direct->world.binding[i], s->dst, c) == o->words && o->last[c] > last)
            last = o->last[c];
    }
    return last;
}

/* A scaled sum has written OUT before its first step. */
static void find_touches(const order_t *o, int32_t i)
{
    const mc_plan_t *const plan = plan_of(&o->direct->world, i);
    const uint32_t before = o->direct->world.binding[i].reducer.scale ? 1 : 0;
    for (uint32_t c = 0; c < plan->n_chunks; c++)
        o->last[c] = before;
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        const mc_step_t *const s = &plan->step[k];
        const mc_op_t op = (mc_op_t)s->op;
        if (op == MC_OP_RECV && o->direct->step[o->direct->first[i] + k].direct)
            o->touched[o->direct->first[i] + k] = last_touch(o, i, s);
        if (mc_op_reads(op))
            touch(o, i, s->src, mc_step_from(s), k + 1);
        if (mc_op_writes(op))
            touch(o, i, s->dst, mc_step_to(s), k + 1);
    }
}

/* Is the receiver done with the places of this send? */
static bool is_ordered(const order_t *o, int32_t i, const mc_direct_step_t *m)
{
    const int32_t n = o->direct->world.n;
    return o->clock[i * n + m->peer] >= o->touched[o->direct->first[m->peer] + m->step];
}

static void send(const order_t *o, int32_t i, uint32_t step, mc_direct_step_t *m)
{
    const mc_direct_t *const d = o->direct;
    const size_t n = (size_t)d->world.n;
    if (m->direct && !is_ordered(o, i, m))
        m->direct = d->step[d->first[m->peer] + m->step].direct = false;
    memcpy(o->sent + (d->first[i] + step) * n, o->clock + (size_t)i * n, n * sizeof *o->sent);
    o->sent[(d->first[i] + step) * n + (size_t)i] = step + 1;
}

static void receive(const order_t *o, int32_t i, const mc_direct_step_t *m)
{
    const mc_direct_t *const d = o->direct;
    const size_t n = (size_t)d->world.n;
    const uint32_t *const sent = o->sent + (d->first[m->peer] + m->step) * n;
    uint32_t *const clock = o->clock + (size_t)i * n;
    if (!carries(o, m->peer, &plan_of(&d->world, m->peer)->step[m->step]))
        return;
    for (size_t k = 0; k < n; k++)
        clock[k] = sent[k] > clock[k] ? sent[k] : clock[k];
}

/* A rank's next step; false: it waits for a message. */
static bool walk_step(const order_t *o, int32_t i)
{
    const mc_direct_t *const d = o->direct;
    const uint32_t at = o->at[i];
    const mc_step_t *const s = &plan_of(&d->world, i)->step[at];
    mc_direct_step_t *const m = &d->step[d->first[i] + at];
    if (m->peer >= 0 && mc_op_sends((mc_op_t)s->op))
        send(o, i, at, m);
    else if (m->peer >= 0 && is_message(s)) {
        if (o->at[m->peer] <= m->step)
            return false;
        receive(o, i, m);
    }
    o->clock[i * d->world.n + i] = ++o->at[i];
    return true;
}

/* Do all ranks reach their ends? A plan that was verified does. */
static bool walk(const order_t *o)
{
    const mc_direct_world_t *const w = &o->direct->world;
    bool moved = true, ended = true;
    while (moved) {
        moved = false;
        for (int32_t i = 0; i < w->n; i++)
            while (o->at[i] < plan_of(w, i)->n_steps && walk_step(o, i))
                moved = true;
    }
    for (int32_t i = 0; i < w->n; i++)
        ended = ended && o->at[i] == plan_of(w, i)->n_steps;
    return ended;
}

static void drop_all(const mc_direct_t *d)
{
    for (size_t k = 0; k < d->first[d->world.n]; k++)
        d->step[k].direct = false;
}

static int prove(const mc_direct_t *d, uint64_t words)
{
    order_t o = {.direct = d};
    const int status = order_open(d, &o);
    if (status)
        return status;
    o.words = words;
    for (int32_t i = 0; i < d->world.n; i++)
        find_touches(&o, i);
    if (!walk(&o))
        drop_all(d);
    mc_arena_free(&o.arena);
    return MESHCOLL_OK;
}

/* The least words, above so many, of a place that a direct message writes; 0: there is none. */
static uint64_t next_words(const mc_direct_t *d, uint64_t above)
{
    uint64_t least = 0;
    for (int32_t i = 0; i < d->world.n; i++)
        for (uint32_t k = 0; k < plan_of(&d->world, i)->n_steps; k++) {
            const mc_step_t *const s = &plan_of(&d->world, i)->step[k];
            const mc_range_t to = mc_step_to(s);
            if (!d->step[d->first[i] + k].direct || s->op != MC_OP_RECV)
                continue;
            for (uint32_t j = 0; j < mc_range_chunks(to); j++) {
                const uint64_t words =
                    words_of(&d->world.binding[i], s->dst, mc_range_chunk(to, j));
                if (words > above && (least == 0 || words < least))
                    least = words;
            }
        }
    return least;
}

/* ------------------------------------------------------------------------------------------------ */

int mc_direct_find(const mc_direct_world_t *world, mc_direct_t *direct)
{
    const size_t n = (size_t)world->n;
    mc_direct_t d = {.world = *world};
    d.first = mc_arena_take(&d.arena, n + 1, sizeof *d.first);
    for (size_t i = 0; d.first && i < n; i++)
        d.first[i + 1] = d.first[i] + plan_of(world, (int32_t)i)->n_steps;
    d.step = mc_arena_take(&d.arena, d.first ? d.first[n] : 0, sizeof *d.step);
    int status = d.arena.failed ? mc_fail_memory("the ends of messages") : MESHCOLL_OK;
    if (!status)
        match_all(&d);
    for (uint64_t words = 0; !status && (words = next_words(&d, words)) > 0;)
        status = prove(&d, words);
    if (status)
        mc_arena_free(&d.arena);
    else
        *direct = d;
    return status;
}

const mc_direct_step_t *mc_direct_message(const mc_direct_t *d, int32_t rank, uint32_t step)
{
    const int32_t i = index_of(&d->world, rank);
    const mc_direct_step_t *const m = i < 0 ? NULL : &d->step[d->first[i] + step];
    return m && m->direct ? m : NULL;
}
