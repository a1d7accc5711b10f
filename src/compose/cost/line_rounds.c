#include "compose/cost/line_rounds.h"

#include "direct/direct.h"
#include "doubling/doubling.h"
#include "mst/mst.h"

static double slices_of(const mc_round_line_t *l, int32_t n)
{
    return (double)n / l->len;
}

/* Trees ------------------------------------------------------------------------------------------ */

/* Sends what the halves of one depth exchange. Returns whether there are any. */
static bool halves_at(const mc_round_line_t *l, mc_round_sink_t *sink, int32_t lo, int32_t hi,
                      int32_t root, int32_t depth)
{
    if (lo == hi)
        return false;
    const mc_halves_t h = (l->aligned ? mc_halve_aligned : mc_halve)(lo, hi, root);
    if (depth > 0) {
        const bool left = h.near <= h.mid;
        const bool some = halves_at(l, sink, h.lo, h.mid, left ? h.near : h.far, depth - 1);
        return halves_at(l, sink, h.mid + 1, h.hi, left ? h.far : h.near, depth - 1) || some;
    }
    const int32_t far = h.far > h.mid ? h.hi - h.mid : h.mid + 1 - h.lo;
    const double part = l->slices ? slices_of(l, far) : 1;
    if (l->root_sends)
        sink->send(sink, h.near, h.far, part);
    else
        sink->send(sink, h.far, h.near, part);
    return true;
}

void mc_rounds_mst(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    for (int32_t depth = 0; halves_at(l, sink, 0, l->len - 1, l->root, depth); depth++)
        sink->end(sink, 1);
}

void mc_rounds_chain(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    for (int32_t i = 0; i + 1 < l->len; i++) {
        const int32_t from = (l->root + l->reduces + i) % l->len;
        sink->send(sink, from, (from + 1) % l->len, 1);
        sink->end(sink, 1);
    }
}

void mc_rounds_star(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    for (int32_t i = 0; i < l->len; i++) {
        const double part = l->slices ? slices_of(l, 1) : 1;
        if (i == l->root)
            continue;
        sink->send(sink, l->root_sends ? l->root : i, l->root_sends ? i : l->root, part);
        sink->end(sink, 1);
    }
}

/* The grid of an edst, by row and column from the root on, backwards in a reduction; or turned, by column and row. */
typedef struct {
    const mc_round_line_t *line;
    int32_t columns;
    bool turned;
} grid_t;

static int32_t after(int32_t root, int32_t by, int32_t n, bool back)
{
    return (root + (back ? n - by : by)) % n;
}

static int32_t index_at(const grid_t *g, const int32_t at[2])
{
    const mc_round_line_t *const l = g->line;
    return after(l->root / g->columns, at[g->turned], l->rows, l->reduces) * g->columns +
           after(l->root % g->columns, at[!g->turned], g->columns, l->reduces);
}

static void send_on_grid(const grid_t *g, mc_round_sink_t *sink, const int32_t from[2],
                         const int32_t to[2])
{
    const bool back = g->line->reduces;
    sink->send(sink, index_at(g, back ? to : from), index_at(g, back ? from : to), 0.5);
}

/* A tree of mc_edst_bcast: along row 0, down all columns but the first, and from the end of each other row to its start. */
static void send_tree(const grid_t *g, mc_round_sink_t *sink)
{
    const int32_t rows = g->turned ? g->columns : g->line->rows;
    const int32_t columns = g->turned ? g->line->rows : g->columns;
    for (int32_t c = 0; c + 1 < columns; c++)
        send_on_grid(g, sink, (int32_t[]){0, c}, (int32_t[]){0, c + 1});
    for (int32_t r = 0; r + 1 < rows; r++) {
        for (int32_t c = 1; c < columns; c++)
            send_on_grid(g, sink, (int32_t[]){r, c}, (int32_t[]){r + 1, c});
        send_on_grid(g, sink, (int32_t[]){r + 1, columns - 1}, (int32_t[]){r + 1, 0});
    }
}

void mc_rounds_edst(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    if (l->rows == l->len) {
        mc_rounds_chain(l, sink);
        return;
    }
    for (int turned = 0; turned < 2; turned++)
        send_tree(&(grid_t){l, l->len / l->rows, turned}, sink);
    sink->end(sink, 0);
}

/* Rounds of all ranks ---------------------------------------------------------------------------- */

void mc_rounds_ring(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    if (l->len > 1)
        sink->shift(sink, 1, slices_of(l, 1), l->len - 1);
}

void mc_rounds_fullmesh(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    if (l->len > 1)
        sink->spread(sink, l->slices ? slices_of(l, 1) : 1);
}

/* Some turns of a digit stand for all where they are many: loads change little from one to the next. */
void mc_rounds_digits(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    enum { SAMPLES = 16 };
    for (int32_t unit = 1, radix; unit < l->len; unit *= radix) {
        radix = mc_digits_radix(l->len, unit);
        const int32_t n = radix - 1, samples = n < SAMPLES ? n : SAMPLES;
        for (int32_t k = 0; k < samples; k++) {
            for (int32_t i = 0; i < l->len; i++) {
                const int32_t mine = i / unit % radix;
                const int32_t to = (mine + mc_round_sample(k, samples, radix)) % radix;
                sink->send(sink, i, i + (to - mine) * unit, 1.0 / radix);
            }
            sink->end(sink, (double)n / samples);
        }
    }
}

static void surplus(const mc_round_line_t *l, mc_round_sink_t *sink, bool before, double part)
{
    const mc_core_t c = mc_core(l->len);
    for (int32_t i = 0; i < c.surplus; i++)
        sink->send(sink, 2 * i + before, 2 * i + !before, part);
    if (c.surplus > 0)
        sink->end(sink, 1);
}

static void doubling(const mc_round_line_t *l, mc_round_sink_t *sink, bool turned)
{
    const mc_core_t c = mc_core(l->len);
    const bool gathers = l->slices && !l->reduces, scatters = l->slices && !gathers;
    surplus(l, sink, true, gathers ? slices_of(l, 1) : 1);
    for (int32_t m = 1; m < c.size; m *= 2) {
        const int32_t n = turned ? mc_core_class(c, 2 * m) : mc_core_index(c, m);
        sink->swap(sink, m, true, l->slices ? slices_of(l, n) : 1);
    }
    surplus(l, sink, false, scatters ? slices_of(l, 1) : 1);
}

void mc_rounds_doubling(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    doubling(l, sink, false);
}

void mc_rounds_doubling_turned(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    doubling(l, sink, true);
}

void mc_rounds_aligned(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    for (int32_t m = 1; m < l->len; m *= 2)
        sink->swap(sink, m, false, l->slices ? slices_of(l, (l->len + 2 * m - 1) / (2 * m)) : 1);
}

void mc_rounds_bruck_allgather(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    for (int32_t k = 1; k < l->len; k *= 2)
        sink->shift(sink, l->len - k, slices_of(l, k < l->len - k ? k : l->len - k), 1);
}

void mc_rounds_bruck_turned(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    for (int32_t k = 1; k < l->len; k *= 2)
        sink->shift(sink, l->reduces ? k : l->len - k, slices_of(l, mc_bruck_far_slices(l->len, k)),
                    1);
}

void mc_rounds_bruck_alltoall(const mc_round_line_t *l, mc_round_sink_t *sink)
{
    for (int32_t k = 1; k < l->len; k *= 2)
        sink->shift(sink, k, slices_of(l, mc_bruck_bit_slices(l->len, k)), 1);
}
