/* Paths that came to a node of the graph of placements, so that no dearer one need be followed there; for
 * the search. */
#ifndef MC_COMPOSE_MARKS_H
#define MC_COMPOSE_MARKS_H

#include "mesh/mesh.h"

#include <stdlib.h>
#include <string.h>

/* Of a node so many at most. A load: fill, then what each link and the ranks are busy. */
enum { MC_MOST_MARKS = 64, MC_FIRST_MARKS = 256, MC_LOADS = MC_MAX_DIMS + 2 };

typedef struct {
    int32_t before; /* the node's mark before, as index + 1 */
    double load[MC_LOADS];
} mc_mark_t;

/* `alike`: seconds by which a load may be more and count as no dearer. */
typedef struct {
    int32_t *last, n_nodes; /* by node, as index + 1; NULL: nothing is marked */
    int32_t n, room, n_loads;
    mc_mark_t *mark;
    double alike;
} mc_marks_t;

static inline void mc_marks_clear(mc_marks_t *m)
{
    m->n = 0;
    if (m->last)
        memset(m->last, 0, sizeof *m->last * (size_t)m->n_nodes);
}

static inline bool mc_marks_no_dearer(const mc_marks_t *m, const double *a, const double *b)
{
    for (int32_t i = 0; i < m->n_loads; i++)
        if (a[i] > b[i] + m->alike)
            return false;
    return true;
}

/* Was there an earlier path to this node that is no dearer, whatever follows? Ties are the earlier
 * one's. Else this path is marked. */
static inline bool mc_marks_outdone(mc_marks_t *m, int32_t node, const double *load)
{
    int32_t n = 0;
    for (int32_t i = m->last[node]; i; i = m->mark[i - 1].before, n++)
        if (mc_marks_no_dearer(m, m->mark[i - 1].load, load))
            return true;
    if (n >= MC_MOST_MARKS)
        return false;
    if (m->n == m->room) {
        const int32_t room = m->room ? 2 * m->room : MC_FIRST_MARKS;
        mc_mark_t *const grown = realloc(m->mark, sizeof *grown * (size_t)room);
        if (!grown) /* without it the search only takes longer */
            return false;
        m->mark = grown;
        m->room = room;
    }
    mc_mark_t *const mark = &m->mark[m->n++];
    mark->before = m->last[node];
    memcpy(mark->load, load, sizeof *load * (size_t)m->n_loads);
    m->last[node] = m->n;
    return false;
}

#endif
