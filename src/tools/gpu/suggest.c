/*
 * The mesh that GPUs suggest: groups that reach each other the same way, within groups that reach
 * each other worse.
 */
#include "tools/gpu/gpus.h"

#include <stdio.h>

/* Do two GPUs belong together? */
typedef bool (*close_t)(const mc_gpus_t *gpus, int32_t a, int32_t b);

static bool by_access(const mc_gpus_t *gpus, int32_t a, int32_t b)
{
    return mc_gpus_reach(gpus, a, b) >= MC_BY_PCIE;
}

static bool by_nvlink(const mc_gpus_t *gpus, int32_t a, int32_t b)
{
    return mc_gpus_reach(gpus, a, b) >= MC_BY_NVLINK;
}

static bool by_rank(const mc_gpus_t *gpus, int32_t a, int32_t b)
{
    return mc_gpus_is_faster(gpus, a, b) && mc_gpus_is_faster(gpus, b, a);
}

static bool by_node(const mc_gpus_t *gpus, int32_t a, int32_t b)
{
    return by_access(gpus, a, b) && gpus->gpu[a].node >= 0 &&
           gpus->gpu[a].node == gpus->gpu[b].node;
}

/* Groups of GPUs that belong together: by GPU, its group's first one. */
typedef struct {
    int32_t of[MC_MOST_GPUS];
    int32_t n, size; /* groups; GPUs of each; 0: sizes differ */
    bool whole;      /* each belongs together with all others of its group */
} groups_t;

static void join(groups_t *g, int32_t n, int32_t a, int32_t b)
{
    const int32_t to = g->of[a] < g->of[b] ? g->of[a] : g->of[b];
    const int32_t from = g->of[a] < g->of[b] ? g->of[b] : g->of[a];
    for (int32_t i = 0; i < n; i++)
        if (g->of[i] == from)
            g->of[i] = to;
}

static int32_t size_of(const groups_t *g, int32_t n, int32_t first)
{
    int32_t size = 0;
    for (int32_t i = 0; i < n; i++)
        size += g->of[i] == first;
    return size;
}

static groups_t groups_of(const mc_gpus_t *gpus, close_t close)
{
    const int32_t n = gpus->n;
    groups_t g = {.whole = true};
    for (int32_t i = 0; i < n; i++)
        g.of[i] = i;
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = 0; b < a; b++)
            if (close(gpus, a, b))
                join(&g, n, a, b);
    g.size = n > 0 ? size_of(&g, n, 0) : 0;
    for (int32_t a = 0; a < n; a++) {
        g.n += g.of[a] == a;
        g.size = size_of(&g, n, g.of[a]) == g.size ? g.size : 0;
        for (int32_t b = 0; b < a; b++)
            if (g.of[a] == g.of[b] && !close(gpus, a, b))
                g.whole = false;
    }
    return g;
}

static const char *fault_of(const groups_t *g)
{
    if (!g->whole)
        return "some GPUs reach each other through a third one only";
    return g->size == 0 ? "groups of GPUs that belong together are of unequal sizes" : NULL;
}

/* The outer groups' order, then the inner groups', then that of their numbers. */
static void put_in_order(const groups_t *outer, const groups_t *inner, int32_t n, mc_gpu_mesh_t *m)
{
    int32_t at = 0;
    for (int32_t o = 0; o < n; o++)
        for (int32_t i = 0; outer->of[o] == o && i < n; i++)
            for (int32_t k = 0; inner->of[i] == i && outer->of[i] == o && k < n; k++)
                if (inner->of[k] == i)
                    m->order[at++] = k;
    m->in_order = true;
    for (int32_t i = 0; i < n; i++)
        m->in_order = m->in_order && m->order[i] == i;
}

/* Groups within `outer`: by NVLinks, where there are none by the driver's performance ranks, and where these are all
 * the same by NUMA nodes. *by: what decided; NULL: nothing did. */
static groups_t inner_of(const mc_gpus_t *gpus, const groups_t *outer, const char **by)
{
    const struct {
        close_t close;
        const char *name;
    } way[] = {{by_nvlink, gpus->has_nvml ? "NVLinks" : "the driver's performance ranks"},
               {by_rank, "the driver's performance ranks"},
               {by_node, "NUMA nodes"}};
    for (size_t i = 0; i < MC_COUNT(way); i++) {
        const groups_t found = groups_of(gpus, way[i].close);
        const bool splits = found.n > outer->n || way[i].close == by_nvlink;
        if (splits && found.n < gpus->n) {
            *by = way[i].name;
            return found;
        }
    }
    *by = NULL;
    return *outer;
}

mc_gpu_mesh_t mc_gpus_suggest(const mc_gpus_t *gpus)
{
    mc_gpu_mesh_t m = {0};
    const char *by;
    groups_t outer = groups_of(gpus, by_access), inner = inner_of(gpus, &outer, &by);
    const groups_t all = {.n = 1, .size = gpus->n, .whole = true};
    const char *const fault_inside = by ? fault_of(&inner) : NULL;
    const char *const fault = fault_inside ? fault_inside : fault_of(&outer);
    mc_text_t but = mc_text(m.but, sizeof m.but);
    m.flat = fault;
    if (fault)
        mc_text_add(&but, "%s", fault);
    if (fault_of(&outer))
        outer = all;
    if (!by || fault_inside) /* none, or of no use */
        inner = outer;
    by = fault_inside ? NULL : by;
    snprintf(m.by, sizeof m.by, "%s%s%s", outer.n > 1 || !by ? "peer access" : "",
             outer.n > 1 && by ? " and " : "", by ? by : "");
    /* between outer groups, between the inner ones of each, and within these */
    const int32_t extent[] = {outer.n, inner.n / (outer.n ? outer.n : 1), inner.size};
    const char *const name[] = {"gpu", "island", "domain"};
    int32_t left = 0;
    for (size_t i = 0; i < MC_COUNT(extent); i++)
        left += extent[i] > 1;
    mc_text_t text = mc_text(m.mesh, sizeof m.mesh);
    for (size_t i = 0; i < MC_COUNT(extent); i++)
        if (extent[i] > 1)
            mc_text_add(&text, "%s%s=%d", text.length ? "," : "", name[--left], (int)extent[i]);
    if (text.length == 0)
        mc_text_add(&text, "gpu=%d", (int)gpus->n);
    put_in_order(&outer, &inner, gpus->n, &m);
    return m;
}
