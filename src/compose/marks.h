/* Paths that came to a node of the graph of placements, so that no dearer one need be followed there; for
 * the search. */
#ifndef MC_COMPOSE_MARKS_H
#define MC_COMPOSE_MARKS_H

#include "mesh/mesh.h"

#include <stdlib.h>
#include <string.h>

/* Of a node so many at most. */
enum { MC_MOST_MARKS = 64, MC_FIRST_MARKS = 256 };

/* A mark is a load: what the price of a path depends on, and only grows with. `alike`: seconds by which a part
 * may be more and count as no dearer. */
typedef struct {
    int32_t *last, n_nodes; /* by node, as index + 1; NULL: nothing is marked */
    int32_t n, room, n_loads;
    int32_t *before; /* by mark: the node's mark before, as index + 1 */
    double *load;    /* by mark and part */
    double alike;
    bool failed; /* there was no memory for one */
} mc_marks_t;

static inline void mc_marks_clear(mc_marks_t *m)
{
    m->n = 0;
    if (m->last)
        memset(m->last, 0, sizeof *m->last * (size_t)m->n_nodes);
}

static inline bool mc_marks_no_dearer(const mc_marks_t *m, const double *a, const double *b)
{
    const double alike = m->alike;
    for (int32_t i = 0; i < m->n_loads; i++)
        if (a[i] > b[i] + alike)
            return false;
    return true;
}

static inline bool mc_marks_grow(mc_marks_t *m)
{
    const size_t room = m->room ? 2 * (size_t)m->room : MC_FIRST_MARKS;
    int32_t *const before = realloc(m->before, sizeof *before * room);
    m->before = before ? before : m->before;
    double *const load = realloc(m->load, sizeof *load * room * (size_t)m->n_loads);
    m->load = load ? load : m->load;
    m->room = before && load ? (int32_t)room : m->room;
    return before && load;
}

/* Was there an earlier path to this node that is no dearer, whatever follows? Ties are the earlier
 * one's. Else this path is marked. */
static inline bool mc_marks_outdone(mc_marks_t *m, int32_t node, const double *load)
{
    int32_t n = 0;
    for (int32_t i = m->last[node]; i; i = m->before[i - 1], n++)
        if (mc_marks_no_dearer(m, m->load + (size_t)(i - 1) * (size_t)m->n_loads, load))
            return true;
    if (n >= MC_MOST_MARKS)
        return false;
    if (m->n == m->room && !mc_marks_grow(m)) {
        m->failed = true;
        return false;
    }
    memcpy(m->load + (size_t)m->n * (size_t)m->n_loads, load, sizeof *load * (size_t)m->n_loads);
    m->before[m->n++] = m->last[node];
    m->last[node] = m->n;
    return false;
}

#endif
