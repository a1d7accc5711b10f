/* Exact fractions, costs as sums of them, and the seconds that a cost takes on given links. */
#include "compose/cost/cost.h"

#include <math.h>

static uint64_t odd_part(uint64_t a)
{
    return a >> __builtin_ctzll(a);
}

/* Binary algorithm (Stein 1967): most common factors here are powers of two, and division is slow.
 * Neither argument is 0. */
static int64_t gcd(int64_t a, int64_t b)
{
    const uint64_t x = (uint64_t)(a < 0 ? -a : a), y = (uint64_t)(b < 0 ? -b : b);
    uint64_t less = odd_part(x), more = odd_part(y);
    while (less != 1 && more != less) {
        if (more < less) {
            const uint64_t swapped = less;
            less = more;
            more = swapped;
            continue;
        }
        more = odd_part(more - less);
    }
    return (int64_t)(less << __builtin_ctzll(x | y));
}

static int64_t over(int64_t a, int64_t divisor)
{
    return divisor == 1 ? a : a / divisor;
}

mc_ratio_t mc_ratio(int64_t num, int64_t den)
{
    if (num == 0 || den == 0)
        return (mc_ratio_t){0, 1};
    const int64_t common = den < 0 ? -gcd(num, den) : gcd(num, den);
    return (mc_ratio_t){over(num, common), over(den, common)};
}

/* Sums over several extents, ports and factors may need more than 64 bits. */
__extension__ typedef unsigned __int128 wide_t;

/* The fraction itself if it fits 64 bits, else its last convergent that does, which differs from it in
 * the 62nd bit. Neither argument is negative. */
static mc_ratio_t narrowed(wide_t num, wide_t den)
{
    const wide_t most = INT64_MAX / 2;
    wide_t num_before = 0, num_at = 1, den_before = 1, den_at = 0;
    while (den != 0) {
        const wide_t whole = num / den, rest = num % den;
        if (whole > most || whole * num_at + num_before > most ||
            whole * den_at + den_before > most)
            break;
        const wide_t num_next = whole * num_at + num_before, den_next = whole * den_at + den_before;
        num_before = num_at;
        num_at = num_next;
        den_before = den_at;
        den_at = den_next;
        num = den;
        den = rest;
    }
    return (mc_ratio_t){(int64_t)num_at, (int64_t)(den_at ? den_at : 1)};
}

static mc_ratio_t add_wide(mc_ratio_t a, mc_ratio_t b, int64_t common)
{
    const wide_t a_part = (wide_t)(b.den / common), b_part = (wide_t)(a.den / common);
    return narrowed((wide_t)a.num * a_part + (wide_t)b.num * b_part, b_part * (wide_t)b.den);
}

mc_ratio_t mc_ratio_add(mc_ratio_t a, mc_ratio_t b)
{
    int64_t from_a, from_b, num, den;
    if (a.num == 0)
        return b;
    if (b.num == 0)
        return a;
    if (a.den == b.den && !__builtin_add_overflow(a.num, b.num, &num))
        return a.den == 1 ? (mc_ratio_t){num, 1} : mc_ratio(num, a.den);
    const int64_t common = gcd(a.den, b.den);
    if (__builtin_mul_overflow(a.num, b.den / common, &from_a) ||
        __builtin_mul_overflow(b.num, a.den / common, &from_b) ||
        __builtin_add_overflow(from_a, from_b, &num) ||
        __builtin_mul_overflow(a.den / common, b.den, &den))
        return add_wide(a, b, common);
    return mc_ratio(num, den);
}

/* Cancels common factors before multiplying, so that products stay as small as the result. */
mc_ratio_t mc_ratio_mul(mc_ratio_t a, mc_ratio_t b)
{
    int64_t num, den;
    if (a.num == 0 || b.num == 0)
        return (mc_ratio_t){0, 1};
    if (b.num == b.den)
        return a;
    const int64_t left = gcd(a.num, b.den), right = gcd(b.num, a.den);
    const int64_t a_num = over(a.num, left), b_num = over(b.num, right);
    const int64_t a_den = over(a.den, right), b_den = over(b.den, left);
    if (__builtin_mul_overflow(a_num, b_num, &num) || __builtin_mul_overflow(a_den, b_den, &den))
        return narrowed((wide_t)a_num * (wide_t)b_num, (wide_t)a_den * (wide_t)b_den);
    return (mc_ratio_t){num, den};
}

bool mc_ratio_equal(mc_ratio_t a, mc_ratio_t b)
{
    return a.num == b.num && a.den == b.den;
}

double mc_ratio_value(mc_ratio_t a)
{
    return (double)a.num / (double)a.den;
}

mc_cost_t mc_cost_zero(void)
{
    mc_cost_t cost;
    const mc_ratio_t none = {0, 1};
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        cost.dim[d] = (mc_term_t){none, none, none, none, 0, none};
    return cost;
}

static mc_term_t add_terms(const mc_term_t *a, const mc_term_t *b)
{
    return (mc_term_t){.alpha = mc_ratio_add(a->alpha, b->alpha),
                       .beta = mc_ratio_add(a->beta, b->beta),
                       .gamma = mc_ratio_add(a->gamma, b->gamma),
                       .row = mc_ratio_add(a->row, b->row),
                       .messages = a->messages + b->messages,
                       .volume = mc_ratio_add(a->volume, b->volume)};
}

mc_cost_t mc_cost_add(const mc_cost_t *a, const mc_cost_t *b)
{
    mc_cost_t sum;
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        sum.dim[d] = add_terms(&a->dim[d], &b->dim[d]);
    return sum;
}

mc_phase_cost_t mc_phase_cost_add(const mc_phase_cost_t *a, const mc_phase_cost_t *b)
{
    mc_phase_cost_t sum = {.once = mc_cost_add(&a->once, &b->once),
                           .busy = mc_cost_add(&a->busy, &b->busy),
                           .network = a->network};
    mc_strain_add(&sum.network, &b->network, 1);
    return sum;
}

/* Memory whose ranks share cores, gap / cpu of them (mc_correction_t): the cores copy for all ranks. One rank alone, from
 * caches that no other fills, copies twice as fast as ranks that do so at once (docs/lab-notes/calibration.md). */
static double wire_seconds(const mc_term_t *term, const mc_links_t *links, int32_t d, double n)
{
    const mc_link_t *const link = &links->dim[d];
    const double cpu = links->correction[d].cpu, path = mc_ratio_value(term->beta);
    const bool known = link->pulled && cpu > 0 && link->gap != link->alpha && link->gap > 0;
    const double all = known ? mc_ratio_value(term->volume) * cpu / link->gap : 0;
    return n * link->beta * (all > 0 ? fmax(path / 2, all) : path);
}

mc_term_t mc_term_bytes(const mc_term_t *term)
{
    const mc_ratio_t none = {0, 1};
    return (mc_term_t){none, term->beta, term->gamma, none, 0, term->volume};
}

double mc_term_own(const mc_term_t *term, const mc_links_t *links, int32_t d, double n)
{
    const mc_link_t *const link = &links->dim[d];
    return mc_ratio_value(term->alpha) * link->alpha +
           mc_ratio_value(term->row) * (link->gap - link->alpha) +
           term->messages * links->correction[d].cpu +
           n * mc_ratio_value(term->gamma) * link->gamma;
}

double mc_term_seconds(const mc_term_t *term, const mc_links_t *links, int32_t d, double n)
{
    return mc_term_own(term, links, d, n) + wire_seconds(term, links, d, n);
}

double mc_cost_seconds(const mc_cost_t *cost, const mc_links_t *links, double n)
{
    double seconds = 0;
    for (int32_t d = 0; d < links->ndims; d++)
        seconds += mc_term_seconds(&cost->dim[d], links, d, n);
    return seconds;
}

double mc_cost_rounded(double seconds)
{
    const double carry = seconds * (0x1p13 + 1);
    return carry - (carry - seconds);
}

bool mc_links_are_apart(const mc_links_t *links, int32_t d)
{
    return links->dim[d].gap != links->dim[d].alpha || mc_links_share_cores(links);
}

mc_busy_t mc_term_busy(const mc_term_t *busy, const mc_links_t *links, int32_t d, double n)
{
    const double all = mc_term_seconds(busy, links, d, n);
    if (!mc_links_are_apart(links, d))
        return (mc_busy_t){all, 0};
    if (links->dim[d].pulled)
        return (mc_busy_t){mc_links_share_cores(links) ? 0 : all, all};
    return (mc_busy_t){wire_seconds(busy, links, d, n), mc_term_own(busy, links, d, n)};
}

double mc_cost_busy(const mc_phase_cost_t *cost, const mc_links_t *links, double n,
                    int32_t *busiest)
{
    double wire[MC_BUSY_WIRES] = {0}, own = 0;
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_busy_t b = mc_term_busy(&cost->busy.dim[d], links, d, n);
        own += b.own;
        wire[mc_links_wire(links, d)] += b.link;
    }
    for (int32_t k = 0; k < MC_NETWORK_PARTS && links->network; k++)
        wire[MC_BUSY_NETWORK + k] = cost->network.busy[k] * n;
    return mc_pipeline_every(wire, links->network ? MC_BUSY_WIRES : links->ndims, own,
                             mc_links_share_cores(links), busiest);
}

double mc_phase_cost_seconds(const mc_phase_cost_t *cost, const mc_links_t *links,
                             uint32_t segments, double n)
{
    const double piece = n / segments;
    int32_t dim;
    const double busiest = mc_cost_busy(cost, links, piece, &dim);
    const double fill = mc_cost_seconds(&cost->once, links, piece) + cost->network.extra * piece;
    return mc_cost_rounded(fill + (segments - 1) * busiest);
}
