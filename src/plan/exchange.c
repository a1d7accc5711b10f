/* Alltoall: phases that receive into another buffer than they send from. */
#include "plan/pairs.h"
#include "plan/steps.h"

#include <assert.h>

typedef struct {
    mc_builder_t *b;
    uint32_t next; /* the next step to adjust */
    uint32_t from; /* offset of the chunks that the steps read from those of the vector */
} carried_t;

/* Returns the buffer that holds the chunks after `turn` phases. The two halves of SCRATCH alternate
 * between IN and OUT. A single phase receives into SCRATCH too: in place, a chunk of IN goes to the
 * very rank whose chunk replaces it, and each of the two would wait for the other. */
static mc_buffer_t stand_of(const mc_builder_t *b, int32_t turn, uint32_t *offset)
{
    *offset = 0;
    if (turn == 0)
        return MC_IN;
    if (turn == b->turns && turn > 1)
        return MC_OUT;
    *offset = turn % 2 ? 0 : b->head.n_chunks;
    return MC_SCRATCH;
}

static void give_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    uint32_t offset;
    const mc_buffer_t src = stand_of(c->b, c->b->turn, &offset);
    r.first += offset;
    mc_append(c->b, mc_step_of(MC_OP_SEND, c->peer, src, MC_IN, r));
}

static void take_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    uint32_t offset;
    const mc_buffer_t dst = stand_of(c->b, c->b->turn + 1, &offset);
    r.first += offset;
    mc_append(c->b, mc_step_of(MC_OP_RECV, c->peer, MC_IN, dst, r));
}

static void carry_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    uint32_t from, to = 0;
    const mc_buffer_t src = stand_of(c->b, c->b->turn, &from);
    const mc_buffer_t dst = c->b->turns > 1 ? stand_of(c->b, c->b->turn + 1, &to) : MC_OUT;
    mc_step_t step = mc_step_of(MC_OP_COPY, -1, src, dst, r);
    step.first += from;
    step.to += to;
    mc_append(c->b, step);
}

/* Sets where the steps of the first tile write: the ranges of a second tile of the same shape. */
static void carry_to_range(void *context, mc_range_t r)
{
    carried_t *const c = context;
    mc_step_t *const s = &c->b->step[c->next];
    if (c->b->status)
        return;
    assert(c->next < c->b->n_steps && s->run == r.run && s->nrun == r.nrun);
    s->to += r.first - s->first + c->from;
    c->next++;
}

/* Copies the chunks that a single phase received from SCRATCH to OUT, after all sends. */
static void bring_out(mc_builder_t *b)
{
    const uint32_t end = b->n_steps;
    for (uint32_t i = b->segment_start; i < end; i++) {
        const mc_step_t s = b->step[i];
        if (s.op == MC_OP_RECV)
            mc_append(b, mc_step_of(MC_OP_COPY, -1, MC_SCRATCH, MC_OUT, mc_step_to(&s)));
    }
}

void mc_give(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    if (b->counting)
        return;
    if (b->pairs)
        mc_pairs_give(b, peer, v);
    else
        mc_each_range(b, peer, &v, give_range);
}

void mc_take(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    if (b->counting)
        return;
    if (b->pairs)
        mc_pairs_take(b, peer, v);
    else
        mc_each_range(b, peer, &v, take_range);
}

void mc_carry(mc_builder_t *b, mc_tile_t from, mc_tile_t to)
{
    carried_t c = {.b = b, .next = b->n_steps};
    if (b->counting)
        return;
    assert(!b->pairs);
    mc_each_range(b, -1, &from, carry_range);
    stand_of(b, b->turn, &c.from);
    mc_tile_ranges(&b->head.layout, &to, carry_to_range, &c);
}

void mc_keep(mc_builder_t *b, mc_tile_t v)
{
    if (b->pairs && !b->counting)
        mc_pairs_keep(b, v);
    else
        mc_carry(b, v, v);
    mc_turn(b);
}

void mc_turn(mc_builder_t *b)
{
    if (b->pairs && !b->counting)
        mc_pairs_turn(b);
    else if (!b->counting && b->turns == 1)
        bring_out(b);
    b->turn++;
}
