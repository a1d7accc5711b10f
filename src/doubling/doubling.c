#include "doubling/doubling.h"

static int32_t rank_of(mc_line_t l, mc_core_t c, int32_t member)
{
    return mc_line_rank(l, mc_core_index(c, member));
}

/* Returns the slices of `n` members from `first` on. */
static mc_tile_t block(mc_line_t l, mc_core_t c, mc_tile_t v, int32_t first, int32_t n)
{
    return mc_slices(v, l, mc_core_index(c, first), mc_core_index(c, first + n));
}

/* The other rank of a pair; valid only where mc_core_is_surplus or stands_for_two. */
static int32_t surplus(mc_line_t l)
{
    return mc_line_rank(l, l.me + 1);
}

static int32_t stand_in(mc_line_t l)
{
    return mc_line_rank(l, l.me - 1);
}

static bool stands_for_two(mc_line_t l, mc_core_t c)
{
    return l.me < 2 * c.surplus && l.me % 2 == 0;
}

/* The partner's vector is received aside: added to the own one directly it would wait for the send
 * of that, and the partner's likewise. */
static void exchange_sums(mc_builder_t *b, mc_line_t l, mc_core_t c, mc_tile_t v)
{
    const int32_t me = mc_core_member(c, l.me);
    for (int32_t m = 1; m < c.size; m *= 2) {
        const uint32_t start = b->n_steps;
        mc_send(b, rank_of(l, c, me ^ m), v);
        mc_recv_aside(b, rank_of(l, c, me ^ m), v);
        mc_in_turns(b, start);
        if (me & m)
            mc_reduce_aside(b, v);
        else
            mc_reduce_behind(b, v);
    }
}

mc_tile_t mc_doubling_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    const mc_core_t c = mc_core(l.len);
    if (mc_core_is_surplus(c, l.me)) {
        mc_send(b, stand_in(l), v);
        mc_recv(b, stand_in(l), v);
        return v;
    }
    if (stands_for_two(l, c))
        mc_recv_reduce(b, surplus(l), v);
    exchange_sums(b, l, c, v);
    if (stands_for_two(l, c))
        mc_send(b, surplus(l), v);
    return v;
}

mc_tile_t mc_halving_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    const mc_core_t c = mc_core(l.len);
    const int32_t me = mc_core_member(c, l.me);
    if (mc_core_is_surplus(c, l.me)) {
        mc_send(b, stand_in(l), v);
        mc_recv(b, stand_in(l), mc_slice(v, l, l.me));
        return mc_slice(v, l, l.me);
    }
    if (stands_for_two(l, c))
        mc_recv_reduce(b, surplus(l), v);
    for (int32_t m = c.size / 2; m > 0; m /= 2) {
        const int32_t mine = me & ~(m - 1), other = mine ^ m;
        const uint32_t start = b->n_steps;
        mc_send(b, rank_of(l, c, me ^ m), block(l, c, v, other, m));
        mc_recv_reduce_along(b, l, mc_core_index(c, me ^ m), block(l, c, v, mine, m));
        mc_in_turns(b, start);
    }
    if (stands_for_two(l, c))
        mc_send(b, surplus(l), mc_slice(v, l, l.me + 1));
    return mc_slice(v, l, l.me);
}

/* Moves the slices of the members that are `rest` modulo `every`: in one message, or where surplus ranks are among them
 * in two, first those of the members that stand for two. */
static void each_class(mc_builder_t *b, mc_line_t l, mc_core_t c, mc_tile_t v, int32_t rest,
                       int32_t every, int32_t peer,
                       void (*move)(mc_builder_t *b, int32_t rank, mc_tile_t v))
{
    const int32_t single = rest + (c.surplus - rest + every - 1) / every * every;
    const int32_t first = rest < c.surplus ? single : rest;
    if (rest < c.surplus)
        move(b, peer, mc_repeated(v, l, 2 * rest, 2, 2 * every, 2 * c.surplus));
    if (first < c.size)
        move(b, peer, mc_repeated(v, l, first + c.surplus, 1, every, l.len));
}

mc_tile_t mc_halving_near_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    const mc_core_t c = mc_core(l.len);
    const int32_t me = mc_core_member(c, l.me);
    if (mc_core_is_surplus(c, l.me)) {
        mc_send(b, stand_in(l), v);
        mc_recv(b, stand_in(l), mc_slice(v, l, l.me));
        return mc_slice(v, l, l.me);
    }
    if (stands_for_two(l, c))
        mc_recv_reduce(b, surplus(l), v);
    for (int32_t m = 1; m < c.size; m *= 2) {
        const int32_t other = me ^ m, peer = rank_of(l, c, other);
        const uint32_t start = b->n_steps;
        each_class(b, l, c, v, other % (2 * m), 2 * m, peer, mc_send);
        each_class(b, l, c, v, me % (2 * m), 2 * m, peer,
                   me < other ? mc_recv_reduce : mc_recv_reduce_before);
        mc_in_turns(b, start);
    }
    if (stands_for_two(l, c))
        mc_send(b, surplus(l), mc_slice(v, l, l.me + 1));
    return mc_slice(v, l, l.me);
}

mc_tile_t mc_doubling_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    const mc_core_t c = mc_core(l.len);
    const int32_t me = mc_core_member(c, l.me);
    if (mc_core_is_surplus(c, l.me)) {
        mc_send(b, stand_in(l), mc_slice(v, l, l.me));
        mc_recv(b, stand_in(l), mc_freed(v, l));
        return mc_freed(v, l);
    }
    if (stands_for_two(l, c))
        mc_recv(b, surplus(l), mc_slice(v, l, l.me + 1));
    for (int32_t m = 1; m < c.size; m *= 2) {
        const int32_t mine = me & ~(m - 1), other = mine ^ m;
        const uint32_t start = b->n_steps;
        mc_send(b, rank_of(l, c, me ^ m), block(l, c, v, mine, m));
        mc_recv(b, rank_of(l, c, me ^ m), block(l, c, v, other, m));
        mc_in_turns(b, start);
    }
    if (stands_for_two(l, c))
        mc_send(b, surplus(l), mc_freed(v, l));
    return mc_freed(v, l);
}

mc_tile_t mc_doubling_far_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    const mc_core_t c = mc_core(l.len);
    const int32_t me = mc_core_member(c, l.me);
    if (mc_core_is_surplus(c, l.me)) {
        mc_send(b, stand_in(l), mc_slice(v, l, l.me));
        mc_recv(b, stand_in(l), mc_freed(v, l));
        return mc_freed(v, l);
    }
    if (stands_for_two(l, c))
        mc_recv(b, surplus(l), mc_slice(v, l, l.me + 1));
    for (int32_t m = c.size / 2; m > 0; m /= 2) {
        const int32_t other = me ^ m, peer = rank_of(l, c, other);
        const uint32_t start = b->n_steps;
        each_class(b, l, c, v, me % (2 * m), 2 * m, peer, mc_send);
        each_class(b, l, c, v, other % (2 * m), 2 * m, peer, mc_recv);
        mc_in_turns(b, start);
    }
    if (stands_for_two(l, c))
        mc_send(b, surplus(l), mc_freed(v, l));
    return mc_freed(v, l);
}
