/*
 * Alpha and cpu from small collectives over the whole mesh, as least squares of the model's own terms:
 * what the library will predict with them is what was measured with.
 */
#include "tools/tune_fit.h"

#include "compose/planner.h"

/* Dimensions of the mesh that are longer than 1, outermost first. */
static int32_t long_dims(const mc_mesh_t *mesh, int32_t dim[MC_MAX_DIMS])
{
    int32_t n = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1)
            dim[n++] = d;
    return n;
}

static void add(mc_text_t *text, const char *collective, const char *algorithm, const char *dim)
{
    mc_text_add(text, "%s%s:%s(%s)", text->length ? " " : "", collective, algorithm, dim);
}

/* To one rank and back by chains, all dimensions but `without`, which may be -1; `first` first. */
static void add_chains(mc_text_t *text, const mc_mesh_t *mesh, int32_t first, int32_t without)
{
    int32_t dim[MC_MAX_DIMS], order[MC_MAX_DIMS], n = 0;
    if (first >= 0)
        order[n++] = first;
    for (int32_t i = long_dims(mesh, dim) - 1; i >= 0; i--)
        if (dim[i] != first && dim[i] != without)
            order[n++] = dim[i];
    for (int32_t i = 0; i < n; i++)
        add(text, "reduce", "chain", mesh->dim[order[i]].name);
    for (int32_t i = n - 1; i >= 0; i--)
        add(text, "bcast", "chain", mesh->dim[order[i]].name);
}

/*
 * Three for each dimension d, closed, so that one run starts when the last is over:
 *   along all lines of d first, then along one line of each other dimension: few messages, many rounds
 *   rings along d: all ranks send in every round
 *   exchanges along d, and the rest in all lines of the others
 */
bool mc_tune_shape(const mc_mesh_t *mesh, int32_t i, char text[MC_TUNE_SHAPE])
{
    int32_t dim[MC_MAX_DIMS];
    const int32_t n = long_dims(mesh, dim);
    if (n == 0 || i >= MC_TUNE_EACH * n)
        return false;
    mc_text_t out = mc_text(text, MC_TUNE_SHAPE);
    const int32_t d = dim[i % n];
    const char *const name = mesh->dim[d].name;
    if (i / n == 0)
        add_chains(&out, mesh, d, -1);
    if (i / n == 1) {
        add(&out, "reduce_scatter", "ring", name);
        add_chains(&out, mesh, -1, d);
        add(&out, "allgather", "ring", name);
    }
    if (i / n == 2) {
        add(&out, "allreduce", "doubling", name);
        add_chains(&out, mesh, -1, d);
    }
    return true;
}

bool mc_tune_burst(const mc_mesh_t *mesh, char text[MC_TUNE_SHAPE])
{
    int32_t dim[MC_MAX_DIMS];
    const int32_t n = long_dims(mesh, dim);
    mc_text_t out = mc_text(text, MC_TUNE_SHAPE);
    for (int32_t i = n - 1; i >= 0; i--)
        add(&out, "reduce_scatter", "ring", mesh->dim[dim[i]].name);
    for (int32_t i = 0; i < n; i++)
        add(&out, "allgather", "ring", mesh->dim[dim[i]].name);
    return n > 0;
}

/* One equation: what multiplies the unknowns, and what they add up to. */
typedef struct {
    double factor[2 * MC_MAX_DIMS], sum;
} equation_t;

static int equation_of(const mc_mesh_t *mesh, const mc_links_t *links, int32_t i, double seconds,
                       equation_t *e)
{
    char text[MC_TUNE_SHAPE];
    mc_strategy_t strategy;
    mc_tune_shape(mesh, i, text);
    const int status = mc_strategy_parse(text, MESHCOLL_ALLREDUCE, mesh, &strategy);
    *e = (equation_t){.sum = 1};
    for (int32_t k = 0; !status && k < strategy.n_phases; k++) {
        const mc_phase_cost_t cost = mc_strategy_phase_cost(&strategy, mesh, links, 0, k);
        for (int32_t d = 0; d < mesh->ndims; d++) {
            e->factor[2 * d] += mc_ratio_value(cost.once.dim[d].alpha) / seconds;
            e->factor[2 * d + 1] += (double)cost.once.dim[d].messages / seconds;
        }
    }
    return status;
}

/* The best value of unknown u, the others as they are; none is negative. */
static double improved(const equation_t *e, int32_t n, const double *value, int32_t u)
{
    double above = 0, below = 0;
    for (int32_t i = 0; i < n; i++) {
        double rest = e[i].sum;
        for (int32_t v = 0; v < 2 * MC_MAX_DIMS; v++)
            rest -= v == u ? 0 : e[i].factor[v] * value[v];
        above += e[i].factor[u] * rest;
        below += e[i].factor[u] * e[i].factor[u];
    }
    return below > 0 && above > 0 ? above / below : 0;
}

int mc_tune_fit(const mc_mesh_t *mesh, const double seconds[MC_TUNE_SHAPES],
                double alpha[MC_MAX_DIMS], double cpu[MC_MAX_DIMS])
{
    enum { SWEEPS = 2000 }; /* least squares by turns, far more than it takes */
    equation_t e[MC_TUNE_SHAPES];
    double value[2 * MC_MAX_DIMS] = {0};
    char text[MC_TUNE_SHAPE];
    mc_links_t links;
    int32_t n = 0;
    int status = mc_links_parse(NULL, mesh, &links);
    for (; !status && mc_tune_shape(mesh, n, text); n++)
        status = equation_of(mesh, &links, n, seconds[n], &e[n]);
    if (status)
        return status;
    for (int32_t sweep = 0; sweep < SWEEPS; sweep++)
        for (int32_t u = 0; u < 2 * MC_MAX_DIMS; u++)
            value[u] = improved(e, n, value, u);
    for (int32_t d = 0; d < mesh->ndims; d++) {
        alpha[d] = value[2 * d];
        cpu[d] = value[2 * d + 1];
    }
    return MESHCOLL_OK;
}
