#include "direct/direct.h"

int32_t mc_digits_radix(int32_t len, int32_t unit)
{
    const int32_t left = len / unit;
    for (int32_t radix = 2; radix <= left / radix; radix++)
        if (left % radix == 0)
            return radix;
    return left;
}

/* A pairwise exchange among the ranks that differ in this digit only. */
static void exchange_digit(mc_builder_t *b, mc_line_t l, mc_tile_t v, int32_t unit, int32_t radix)
{
    const int32_t mine = l.me / unit % radix, others = l.me - mine * unit;
    for (int32_t k = 1; k < radix; k++) {
        const int32_t to = (mine + k) % radix, from = (mine + radix - k) % radix;
        const uint32_t start = b->n_steps;
        mc_give(b, mc_line_rank(l, others + to * unit), mc_digit(v, l, unit, radix, to));
        mc_take(b, mc_line_rank(l, others + from * unit), mc_digit(v, l, unit, radix, from));
        mc_in_turns(b, start);
    }
    mc_keep(b, mc_digit(v, l, unit, radix, mine));
}

mc_tile_t mc_digits_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    int32_t unit = 1;
    do {
        const int32_t radix = mc_digits_radix(l.len, unit);
        exchange_digit(b, l, v, unit, radix);
        unit *= radix;
    } while (unit < l.len);
    return v;
}
