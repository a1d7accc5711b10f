#include "doubling/doubling.h"

/* A rank that holds k slices, its own and the following ones, sends them to the rank k before it
 * and receives k more from the rank k after it. */
mc_tile_t mc_bruck_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t k = 1; k < l.len; k *= 2) {
        const int32_t n = k < l.len - k ? k : l.len - k;
        const int32_t to = mc_wrap(l, l.me - k), from = mc_wrap(l, l.me + k);
        const uint32_t start = b->n_steps;
        mc_send(b, mc_line_rank(l, to), mc_slices(v, l, l.me, l.me + n));
        mc_recv(b, mc_line_rank(l, from), mc_slices(v, l, from, from + n));
        mc_in_turns(b, start);
    }
    return mc_freed(v, l);
}

/* Calls `move` for `n` slices from `first` on, each `every` ranks further round the line: in one piece, or in two round
 * the line's end unless that is a multiple of `every` away. */
static void each_far(mc_builder_t *b, mc_line_t l, mc_tile_t v, int32_t peer, int32_t first,
                     int32_t every, int32_t n,
                     void (*move)(mc_builder_t *b, int32_t rank, mc_tile_t v))
{
    const int32_t all = l.len % every == 0 && n == l.len / every ? every : l.len;
    const int32_t from = mc_wrap(l, first) % all, rank = mc_line_rank(l, mc_wrap(l, peer));
    const int32_t to_end = (l.len - from - 1) / every + 1, now = to_end < n ? to_end : n;
    move(b, rank, mc_repeated(v, l, from, 1, every, from + (now - 1) * every + 1));
    if (now < n) {
        const int32_t again = from + now * every - l.len;
        move(b, rank, mc_repeated(v, l, again, 1, every, again + (n - now - 1) * every + 1));
    }
}

/* A rank that holds every 2k-th slice, from its own on, sends them to the rank k before it and receives those in between
 * from the rank k after it: k is halved from round to round. */
mc_tile_t mc_bruck_far_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    int32_t k = 1;
    while (2 * k < l.len)
        k *= 2;
    for (; k > 0 && l.len > 1; k /= 2) {
        const int32_t n = mc_bruck_far_slices(l.len, k);
        const uint32_t start = b->n_steps;
        each_far(b, l, v, l.me - k, l.me, 2 * k, n, mc_send);
        each_far(b, l, v, l.me + k, l.me + k, 2 * k, n, mc_recv);
        mc_in_turns(b, start);
    }
    return mc_freed(v, l);
}

/* A rank sends the sums of every 2k-th slice to the rank k after it: the allgather backwards, and k doubles from round to
 * round. */
mc_tile_t mc_bruck_near_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t k = 1; k < l.len; k *= 2) {
        const int32_t n = mc_bruck_far_slices(l.len, k);
        const uint32_t start = b->n_steps;
        each_far(b, l, v, l.me + k, l.me + k, 2 * k, n, mc_send);
        each_far(b, l, v, l.me - k, l.me, 2 * k, n,
                 l.len == 2 && l.me == 1 ? mc_recv_reduce_before : mc_recv_reduce);
        mc_in_turns(b, start);
    }
    return mc_slice(v, l, l.me);
}

/* Moves the slices whose index has this bit of value `unit`: runs of `unit`, the last of which the
 * line's end may cut short. */
static void each_bit(mc_builder_t *b, mc_line_t l, mc_tile_t v, int32_t unit, int32_t bit,
                     int32_t peer, void (*move)(mc_builder_t *b, int32_t rank, mc_tile_t v))
{
    const int32_t whole = l.len / (2 * unit), from = 2 * unit * whole + bit * unit;
    const int32_t end = l.len - from < unit ? l.len : from + unit, rank = mc_wrap(l, peer);
    if (whole > 0)
        move(b, mc_line_rank(l, rank), mc_digit(v, l, unit, 2, bit));
    if (from < end)
        move(b, mc_line_rank(l, rank), mc_slices(v, l, from, end));
}

static void stay(mc_builder_t *b, int32_t rank, mc_tile_t v)
{
    (void)rank;
    mc_carry(b, v, v);
}

/* Slice i becomes the block for the i-th rank on the right. */
static void rotate(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    mc_carry(b, mc_slices(v, l, l.me, l.len), mc_slices(v, l, 0, l.len - l.me));
    if (l.me > 0)
        mc_carry(b, mc_slices(v, l, 0, l.me), mc_slices(v, l, l.len - l.me, l.len));
    mc_turn(b);
}

/* A block that has travelled i ranks is from the i-th rank on the left. */
static void unfold(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t i = 0; i < l.len; i++)
        mc_carry(b, mc_slice(v, l, i), mc_slice(v, l, l.me - i));
    mc_turn(b);
}

mc_tile_t mc_bruck_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    rotate(b, l, v);
    for (int32_t unit = 1; unit < l.len; unit *= 2) {
        const uint32_t start = b->n_steps;
        each_bit(b, l, v, unit, 1, l.me + unit, mc_give);
        each_bit(b, l, v, unit, 1, l.me - unit, mc_take);
        mc_in_turns(b, start);
        each_bit(b, l, v, unit, 0, l.me, stay);
        mc_turn(b);
    }
    unfold(b, l, v);
    return v;
}
