/* Seconds of a phase, and how long it occupies its links, as linear functions of its bytes. */
#ifndef MC_COMPOSE_LINEAR_H
#define MC_COMPOSE_LINEAR_H

#include "compose/cost/cost.h"

/* fixed + per_byte * bytes */
typedef struct {
    double fixed, per_byte;
} mc_linear_t;

static inline double mc_linear_at(mc_linear_t f, double bytes)
{
    return f.fixed + f.per_byte * bytes;
}
static inline mc_linear_t mc_linear_add(mc_linear_t a, mc_linear_t b)
{
    return (mc_linear_t){a.fixed + b.fixed, a.per_byte + b.per_byte};
}

/* A round is charged to one dimension; on a merged line others may have messages in it too. */
static inline bool mc_phase_crosses(const mc_phase_cost_t *cost, int32_t d)
{
    const mc_term_t *const once = &cost->once.dim[d];
    return once->alpha.num > 0 || once->messages > 0 || cost->busy.dim[d].beta.num > 0;
}

/* mc_term_seconds as a function of the bytes. */
static inline mc_linear_t mc_linear_of(const mc_term_t *term, const mc_links_t *links, int32_t d)
{
    const mc_term_t bytes_only = mc_term_bytes(term);
    return (mc_linear_t){mc_term_seconds(term, links, d, 0),
                         mc_term_seconds(&bytes_only, links, d, 1)};
}

/* mc_term_busy as a function of the bytes: the time of the link, and of its ranks. */
typedef struct {
    mc_linear_t link, own;
} mc_linear_busy_t;

static inline mc_linear_busy_t mc_linear_busy(const mc_term_t *busy, const mc_links_t *links,
                                              int32_t d)
{
    const mc_term_t bytes_only = mc_term_bytes(busy);
    const mc_busy_t fixed = mc_term_busy(busy, links, d, 0);
    const mc_busy_t per_byte = mc_term_busy(&bytes_only, links, d, 1);
    return (mc_linear_busy_t){{fixed.link, per_byte.link}, {fixed.own, per_byte.own}};
}

#endif
