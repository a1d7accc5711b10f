#include "doubling/doubling.h"

/* Calls `move` for `n` slices from `first` on, in one piece or, round the line's end, in two. */
static void each_run(mc_builder_t *b, mc_line_t l, mc_tile_t v, int32_t peer, int32_t first,
                     int32_t n, void (*move)(mc_builder_t *b, int32_t rank, mc_tile_t v))
{
    const int32_t from = mc_wrap(l, first), rank = mc_line_rank(l, mc_wrap(l, peer));
    const int32_t to_end = l.len - from < n ? l.len - from : n;
    move(b, rank, mc_slices(v, l, from, from + to_end));
    if (to_end < n)
        move(b, rank, mc_slices(v, l, 0, n - to_end));
}

/* Who holds k slices, its own and those after, passes them to k ranks before and gets k more. */
mc_tile_t mc_bruck_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t k = 1; k < l.len; k *= 2) {
        const int32_t n = k < l.len - k ? k : l.len - k;
        each_run(b, l, v, l.me - k, l.me, n, mc_send);
        each_run(b, l, v, l.me + k, l.me + k, n, mc_recv);
    }
    return mc_freed(v, l);
}
