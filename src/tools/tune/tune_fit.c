/*
 * Fits alpha and cpu to the times of small collectives over the whole mesh, by least squares over
 * the terms of the cost model. The library predicts with the same terms.
 */
#include "tools/tune/tune_fit.h"

#include "compose/algorithms/registry.h"
#include "compose/price/strategy_cost.h"

#include <math.h>

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

/* Chains to one rank and back along all dimensions except `without` (-1: none); dimension
 * `first` runs first. */
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

/* Of the network's wires: the port of dimension `top`, and wires of their own of other dimensions, which
 * are assumed to be equal. */
static void set_burst(const mc_mesh_t *mesh, int32_t top, double burst, mc_links_t *links)
{
    for (int32_t d = top; d < mesh->ndims; d++) {
        const bool own = mesh->dim[d].extent > 1 && links->dim[d].wire == MC_WIRE_OWN;
        if ((own && !links->dim[d].pulled) || d == mc_links_wire(links, top))
            links->correction[d].burst = burst;
    }
}

int mc_tune_keep_burst(const mc_mesh_t *mesh, const mc_estimate_t *shot, mc_links_t *links)
{
    const double most = 64; /* times the bytes measured */
    char text[MC_TUNE_SHAPE];
    mc_strategy_t strategy;
    mc_links_t free = *links;
    int32_t top = 0;
    if (shot->n < MC_LEAST_ROUNDS || !mc_tune_burst(mesh, text))
        return MESHCOLL_OK;
    while (mesh->dim[top].extent == 1)
        top++;
    const int status = mc_strategy_parse(text, MESHCOLL_ALLREDUCE, mesh, &strategy);
    if (status || links->dim[top].pulled)
        return status;
    set_burst(mesh, top, INFINITY, &free);
    const double none = mc_strategy_seconds(&strategy, mesh, links, 0, 0),
                 all = mc_strategy_seconds(&strategy, mesh, links, 0, MC_TUNE_BURST) - none,
                 least = mc_strategy_seconds(&strategy, mesh, &free, 0, MC_TUNE_BURST) - none;
    /* the share of beta that counts, bytes / (bytes + burst) of mc_links_at */
    const double share = fmax((shot->value - least) / (all - least), 1 / (1 + most));
    if (all - shot->value > 2 * shot->error && share < 1)
        set_burst(mesh, top, floor(MC_TUNE_BURST * (1 / share - 1)), links);
    return MESHCOLL_OK;
}

/* One equation: coefficients of the unknowns, and the right-hand side. */
enum { UNKNOWNS = 2 * MC_MAX_DIMS };
typedef struct {
    double factor[UNKNOWNS], sum;
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
            e->factor[2 * d + 1] += cost.once.dim[d].messages / seconds;
        }
    }
    return status;
}

/* The normal equations of least squares. */
typedef struct {
    double factor[UNKNOWNS][UNKNOWNS], sum[UNKNOWNS];
} normal_t;

static normal_t normal_of(const equation_t *e, int32_t n)
{
    normal_t normal = {0};
    for (int32_t i = 0; i < n; i++)
        for (int32_t u = 0; u < UNKNOWNS; u++) {
            normal.sum[u] += e[i].factor[u] * e[i].sum;
            for (int32_t v = 0; v < UNKNOWNS; v++)
                normal.factor[u][v] += e[i].factor[u] * e[i].factor[v];
        }
    return normal;
}

/* The optimum of unknown u with the others fixed. */
static double improved(const normal_t *normal, const double *value, int32_t u)
{
    const double *const factor = normal->factor[u];
    double rest = normal->sum[u] + factor[u] * value[u];
    for (int32_t v = 0; v < UNKNOWNS; v++)
        rest -= factor[v] * value[v];
    return factor[u] > 0 ? rest / factor[u] : 0;
}

/* Coordinate descent among values that are not negative, with far more iterations than it needs. */
static void solve(const equation_t *e, int32_t n, double value[UNKNOWNS])
{
    enum { SWEEPS = 2000 };
    const normal_t normal = normal_of(e, n);
    for (int32_t u = 0; u < UNKNOWNS; u++)
        value[u] = 0;
    for (int32_t sweep = 0; sweep < SWEEPS; sweep++)
        for (int32_t u = 0; u < UNKNOWNS; u++)
            value[u] = fmax(improved(&normal, value, u), 0);
}

int mc_tune_fit(const mc_mesh_t *mesh, const double seconds[MC_TUNE_SHAPES],
                double alpha[MC_MAX_DIMS], double cpu[MC_MAX_DIMS])
{
    static equation_t e[MC_TUNE_SHAPES];
    double value[UNKNOWNS];
    char text[MC_TUNE_SHAPE];
    static mc_links_t links;
    int32_t n = 0;
    int status = mc_links_parse(NULL, mesh, &links);
    for (; !status && mc_tune_shape(mesh, n, text); n++)
        status = equation_of(mesh, &links, n, seconds[n], &e[n]);
    if (status)
        return status;
    solve(e, n, value);
    for (int32_t d = 0; d < mesh->ndims; d++) {
        alpha[d] = value[2 * d];
        cpu[d] = value[2 * d + 1];
    }
    return MESHCOLL_OK;
}

/* The fit may assign no time to one dimension. A message costs at least what one of a sequence
 * costs. */
double mc_tune_alpha(double fitted, double cpu, double row)
{
    const double alpha = fmax(fitted, cpu);
    return alpha > 0 ? alpha : row;
}
