/*
 * Fits alpha and cpu to the times of small collectives over the whole mesh, by least squares over
 * the terms of the cost model. The library predicts with the same terms.
 */
#include "tools/tune/tune_fit.h"

#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"

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

/* The network's wires: the port of dimension `top`, and wires of their own of other dimensions,
 * which are assumed to be equal. */
static int32_t set_burst(const mc_mesh_t *mesh, int32_t top, double burst, mc_links_t *links)
{
    int32_t wires = 0;
    for (int32_t d = top; d < mesh->ndims; d++) {
        const bool own = mesh->dim[d].extent > 1 && links->dim[d].wire == MC_WIRE_OWN;
        if ((own && !links->dim[d].pulled) || d == mc_links_wire(links, top)) {
            links->dim[d].burst = burst;
            wires++;
        }
    }
    return wires;
}

int mc_tune_keep_burst(const mc_mesh_t *mesh, double seconds, mc_links_t *links)
{
    enum { HALVINGS = 32 };
    char text[MC_TUNE_SHAPE];
    mc_strategy_t strategy;
    int32_t top = 0;
    if (!mc_tune_burst(mesh, text))
        return MESHCOLL_OK;
    while (mesh->dim[top].extent == 1)
        top++;
    const int status = mc_strategy_parse(text, MESHCOLL_ALLREDUCE, mesh, &strategy);
    if (status || links->dim[top].pulled)
        return status;
    const double saved = mc_strategy_seconds(&strategy, mesh, links, 0, MC_TUNE_BURST) -
                         mc_strategy_seconds(&strategy, mesh, links, 0, 0) - seconds;
    double most = saved > 0 ? floor(saved / links->dim[mc_links_wire(links, top)].beta) : 0;
    if (set_burst(mesh, top, most, links) == 1)
        return MESHCOLL_OK;
    /* several wires save up in parallel: the smallest burst for which the sum is what was saved */
    double least = 0;
    for (int i = 0; i < HALVINGS && most - least > 1; i++) {
        const double burst = (least + most) / 2;
        set_burst(mesh, top, burst, links);
        const bool enough = mc_strategy_seconds(&strategy, mesh, links, 0, MC_TUNE_BURST) -
                                mc_strategy_seconds(&strategy, mesh, links, 0, 0) <=
                            seconds;
        *(enough ? &most : &least) = burst;
    }
    set_burst(mesh, top, floor(most), links);
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

/* Where values may lie. */
typedef struct {
    double least[UNKNOWNS], most[UNKNOWNS];
} range_t;

static range_t not_negative(void)
{
    range_t range = {0};
    for (int32_t u = 0; u < UNKNOWNS; u++)
        range.most[u] = INFINITY;
    return range;
}

/* Coordinate descent, with far more iterations than it needs. */
static void solve(const equation_t *e, int32_t n, int32_t sweeps, const range_t *range,
                  double value[UNKNOWNS])
{
    const normal_t normal = normal_of(e, n);
    for (int32_t u = 0; u < UNKNOWNS; u++)
        value[u] = range->least[u];
    for (int32_t sweep = 0; sweep < sweeps; sweep++)
        for (int32_t u = 0; u < UNKNOWNS; u++)
            value[u] = fmin(fmax(improved(&normal, value, u), range->least[u]), range->most[u]);
}

int mc_tune_fit(const mc_mesh_t *mesh, const double seconds[MC_TUNE_SHAPES],
                double alpha[MC_MAX_DIMS], double cpu[MC_MAX_DIMS])
{
    enum { SWEEPS = 2000 };
    equation_t e[MC_TUNE_SHAPES];
    double value[UNKNOWNS];
    const range_t range = not_negative();
    char text[MC_TUNE_SHAPE];
    mc_links_t links;
    int32_t n = 0;
    int status = mc_links_parse(NULL, mesh, &links);
    for (; !status && mc_tune_shape(mesh, n, text); n++)
        status = equation_of(mesh, &links, n, seconds[n], &e[n]);
    if (status)
        return status;
    solve(e, n, SWEEPS, &range, value);
    for (int32_t d = 0; d < mesh->ndims; d++) {
        alpha[d] = value[2 * d];
        cpu[d] = value[2 * d + 1];
    }
    return MESHCOLL_OK;
}

/* Pieces ----------------------------------------------------------------------------------------- */

/* The second term of mc_busy_both(). */
static double link_of(const mc_tune_pieces_t *pieces, double own)
{
    return pieces->seconds > own ? sqrt(pieces->seconds * pieces->seconds - own * own) : 0;
}

double mc_tune_header(const mc_tune_pieces_t *coarse, const mc_tune_pieces_t *fine, double own)
{
    const double link = link_of(fine, own);
    const double beta = (link_of(coarse, own) - link) / (coarse->bytes - fine->bytes);
    const double header = link / beta - fine->bytes;
    return beta > 0 && header > 0 ? header : 0;
}

/* The fit may assign no time to one dimension. A message costs at least what one of a sequence
 * costs. */
double mc_tune_alpha(double fitted, double cpu, double row)
{
    const double alpha = fmax(fitted, cpu);
    return alpha > 0 ? alpha : row;
}

/* One line at one size --------------------------------------------------------------------------- */

/* D is replaced by the name of the dimension. */
static const struct {
    meshcoll_collective_t collective;
    const char *strategy;
} probes[] = {
    {MESHCOLL_ALLREDUCE, "reduce_scatter:ring(D) allgather:ring(D)"},
    {MESHCOLL_ALLREDUCE, "allreduce:doubling(D)"},
    {MESHCOLL_ALLREDUCE, "reduce_scatter:fullmesh(D) allgather:fullmesh(D)"},
    {MESHCOLL_ALLREDUCE, "reduce_scatter:halving(D) allgather:doubling(D)"},
    {MESHCOLL_ALLREDUCE, "reduce_scatter:fullmesh(D) gather:star(D) bcast:star(D)"},
    {MESHCOLL_ALLGATHER, "allgather:ring(D)"},
    {MESHCOLL_ALLGATHER, "allgather:fullmesh(D)"},
    {MESHCOLL_ALLGATHER, "allgather:doubling(D)"},
    {MESHCOLL_ALLGATHER, "gather:star(D) bcast:star(D)"},
    {MESHCOLL_REDUCE_SCATTER, "reduce_scatter:ring(D)"},
    {MESHCOLL_REDUCE_SCATTER, "reduce_scatter:fullmesh(D)"},
    {MESHCOLL_REDUCE, "reduce:star(D)"},
    {MESHCOLL_REDUCE, "reduce:mst(D)"},
    {MESHCOLL_REDUCE, "reduce_scatter:fullmesh(D) gather:star(D)"},
    {MESHCOLL_BCAST, "bcast:star(D)"},
    {MESHCOLL_BCAST, "bcast:mst(D)"},
    {MESHCOLL_SCATTER, "scatter:star(D)"},
    {MESHCOLL_SCATTER, "scatter:mst(D)"},
    {MESHCOLL_GATHER, "gather:star(D)"},
    {MESHCOLL_GATHER, "gather:mst(D)"},
    {MESHCOLL_ALLTOALL, "alltoall:pairwise(D)"},
};
_Static_assert(MC_COUNT(probes) <= MC_TUNE_PROBES, "room for all times");

bool mc_tune_probe(const mc_mesh_t *mesh, int32_t i, mc_tune_probe_t *probe)
{
    int32_t dim[MC_MAX_DIMS];
    if (long_dims(mesh, dim) != 1 || i >= (int32_t)MC_COUNT(probes))
        return false;
    mc_text_t text = mc_text(probe->strategy, sizeof probe->strategy);
    for (const char *at = probes[i].strategy; *at; at++)
        if (*at == 'D')
            mc_text_add(&text, "%s", mesh->dim[dim[0]].name);
        else
            mc_text_add(&text, "%c", *at);
    probe->collective = probes[i].collective;
    probe->dim = dim[0];
    return true;
}

bool mc_tune_single(const mc_mesh_t *mesh, int32_t algorithm, mc_tune_probe_t *probe)
{
    int32_t dim[MC_MAX_DIMS];
    const mc_algorithm_t *const a = &mc_algorithms[algorithm];
    if (long_dims(mesh, dim) != 1 || a->composite || a->plane)
        return false;
    mc_text_t text = mc_text(probe->strategy, sizeof probe->strategy);
    add(&text, meshcoll_collective_name(a->collective), a->name, mesh->dim[dim[0]].name);
    probe->collective = a->collective;
    probe->dim = dim[0];
    return true;
}

/* Appends the pairs of two hops; returns the new count. */
static int32_t add_pairs(const mc_graph_t *graph, const mc_hop_t *first, const mc_hop_t *second,
                         mc_tune_pair_t pair[MC_TUNE_PAIRS], int32_t n)
{
    mc_choices_t left = mc_graph_choices(graph, second);
    while (left && n < MC_TUNE_PAIRS)
        pair[n++] = (mc_tune_pair_t){graph->collective, mc_graph_choices(graph, first),
                                     mc_choices_take(&left)};
    return n;
}

static int32_t pairs_of(const mc_graph_t *graph, mc_tune_pair_t pair[MC_TUNE_PAIRS], int32_t n)
{
    mc_hop_t first[MC_MAX_HOPS], second[MC_MAX_HOPS];
    const mc_node_t start = mc_graph_start(graph);
    const int32_t firsts = mc_graph_hops(graph, &start, first);
    for (int32_t i = 0; i < firsts; i++) {
        const mc_node_t middle = mc_graph_after(&start, &first[i]);
        const int32_t seconds = mc_graph_hops(graph, &middle, second);
        for (int32_t k = 0; k < seconds; k++) {
            const mc_node_t end = mc_graph_after(&middle, &second[k]);
            /* an alltoall that gathers sends the vector once per rank: too long to be timed */
            if (mc_graph_ended(graph, &end) && !first[i].gathered && !second[k].gathered)
                n = add_pairs(graph, &first[i], &second[k], pair, n);
        }
    }
    return n;
}

int32_t mc_tune_pairs(const mc_mesh_t *mesh, mc_tune_pair_t pair[MC_TUNE_PAIRS])
{
    int32_t dim[MC_MAX_DIMS], n = 0;
    if (long_dims(mesh, dim) != 1)
        return 0;
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const mc_graph_t graph = mc_graph((meshcoll_collective_t)c, mesh, false, NULL);
        n = pairs_of(&graph, pair, n);
    }
    return n;
}

void mc_tune_pair_probe(const mc_mesh_t *mesh, const mc_tune_pair_t *pair, int32_t first,
                        mc_tune_probe_t *probe)
{
    const int32_t algorithm[] = {first, pair->second};
    int32_t dim[MC_MAX_DIMS];
    long_dims(mesh, dim);
    mc_text_t text = mc_text(probe->strategy, sizeof probe->strategy);
    for (size_t i = 0; i < MC_COUNT(algorithm); i++) {
        const mc_algorithm_t *const a = &mc_algorithms[algorithm[i]];
        add(&text, meshcoll_collective_name(a->collective), a->name, mesh->dim[dim[0]].name);
    }
    probe->collective = pair->asked;
    probe->dim = dim[0];
}

int mc_tune_pair_factor(const mc_mesh_t *mesh, const mc_links_t *links, const mc_tune_probe_t *pair,
                        double bytes, double seconds, double *factor)
{
    const double least = 0.5;
    const mc_links_t at = mc_links_at(links, bytes);
    mc_strategy_t strategy;
    const int status = mc_strategy_parse(pair->strategy, pair->collective, mesh, &strategy);
    if (status)
        return status;
    const mc_phase_cost_t first = mc_strategy_phase_cost(&strategy, mesh, &at, 0, 0),
                          second = mc_strategy_phase_cost(&strategy, mesh, &at, 0, 1);
    const double expected = mc_phase_cost_seconds(&second, &at, 1, bytes),
                 left = seconds - mc_phase_cost_seconds(&first, &at, 1, bytes);
    const mc_algorithm_t *const a = &mc_algorithms[strategy.phase[1].algorithm];
    const mc_factor_key_t own = {pair->dim, a->collective, a->collective, a->name};
    *factor = (double)mc_links_factor(&at, &own, 0) / MC_FACTOR_ONE *
              (left > least * expected ? left / expected : least);
    return MESHCOLL_OK;
}

enum { ALPHA, GAP, CPU, BETA, BUS, GAMMA };

/* The terms of mc_term_seconds(), relative to the measured time. */
static void add_term(equation_t *e, const mc_term_t *term, double bytes, double seconds)
{
    const double row = mc_ratio_value(term->row);
    e->factor[ALPHA] += (mc_ratio_value(term->alpha) - row) / seconds;
    e->factor[GAP] += row / seconds;
    e->factor[CPU] += term->messages / seconds;
    e->factor[BETA] += mc_ratio_value(term->beta) * bytes / seconds;
    e->factor[BUS] += mc_ratio_value(term->volume) * bytes / seconds;
    e->factor[GAMMA] += mc_ratio_value(term->gamma) * bytes / seconds;
}

static int probe_equation(const mc_mesh_t *mesh, const mc_links_t *links, int32_t i, double bytes,
                          double seconds, equation_t *e)
{
    mc_tune_probe_t probe;
    mc_strategy_t strategy;
    mc_tune_probe(mesh, i, &probe);
    const int status = mc_strategy_parse(probe.strategy, probe.collective, mesh, &strategy);
    *e = (equation_t){.sum = 1};
    for (int32_t k = 0; !status && k < strategy.n_phases; k++) {
        const mc_phase_cost_t cost = mc_strategy_phase_cost(&strategy, mesh, links, 0, k);
        add_term(e, &cost.once.dim[probe.dim], bytes, seconds);
    }
    return status;
}

/* Equations with a large residual weigh less, so that the fit minimises the sum of the
 * residuals, not of their squares. No closed form fits all collectives, and the few that fit
 * worst must not distort the others (iteratively reweighted least squares, Weiszfeld 1937). */
static void weigh(const equation_t *e, int32_t n, const double value[UNKNOWNS], equation_t *weighed)
{
    const double least = 0.03; /* below that all weigh the same */
    for (int32_t i = 0; i < n; i++) {
        double off = e[i].sum;
        for (int32_t u = 0; u < UNKNOWNS; u++)
            off -= e[i].factor[u] * value[u];
        const double weight = 1 / sqrt(fmax(fabs(off), least));
        weighed[i].sum = e[i].sum * weight;
        for (int32_t u = 0; u < UNKNOWNS; u++)
            weighed[i].factor[u] = e[i].factor[u] * weight;
    }
}

/* The cost of a message apart from its bytes hardly depends on its size. It is at least half of
 * the cost at the smallest size, which times of large vectors do not show, and at most twice
 * that of the next smaller size, as protocols change. Without these limits the fit explains
 * differences in bandwidth by numbers of messages. */
static range_t range_after(const mc_link_point_t *smaller, int32_t n, bool alone)
{
    range_t range = not_negative();
    if (alone)
        range.most[BETA] = range.most[BUS] = range.most[GAMMA] = 0;
    if (n == 0)
        return range;
    range.least[ALPHA] = smaller[0].alpha / 2;
    range.least[GAP] = smaller[0].gap / 2;
    range.least[CPU] = smaller[0].cpu / 2;
    const mc_link_point_t *const next = &smaller[n - 1];
    range.most[ALPHA] = range.most[GAP] = range.most[CPU] =
        2 * fmax(next->alpha, fmax(next->gap, next->cpu));
    return range;
}

int mc_tune_fit_at(const mc_mesh_t *mesh, const double seconds[MC_TUNE_PROBES], double bytes,
                   const mc_link_point_t *smaller, int32_t n_smaller, bool alone,
                   mc_link_point_t *point)
{
    enum { SWEEPS = 20000, WEIGHINGS = 4 };
    equation_t e[MC_TUNE_PROBES], weighed[MC_TUNE_PROBES];
    double value[UNKNOWNS];
    const range_t range = range_after(smaller, n_smaller, alone);
    mc_tune_probe_t probe;
    mc_links_t links;
    int32_t n = 0;
    int status = mc_links_parse("uniform", mesh, &links);
    for (int32_t d = 0; d < mesh->ndims; d++)
        links.dim[d].pulled = true; /* and has no ports: contention between ranks is in bus */
    for (; !status && mc_tune_probe(mesh, n, &probe); n++)
        status = probe_equation(mesh, &links, n, bytes, seconds[n], &e[n]);
    if (status)
        return status;
    solve(e, n, SWEEPS, &range, value);
    for (int i = 0; i < WEIGHINGS; i++) {
        weigh(e, n, value, weighed);
        solve(weighed, n, SWEEPS, &range, value);
    }
    *point = (mc_link_point_t){.bytes = bytes,
                               .alpha = value[ALPHA],
                               .gap = value[GAP],
                               .cpu = value[CPU],
                               .beta = value[BETA],
                               .bus = value[BUS],
                               .gamma = value[GAMMA]};
    return MESHCOLL_OK;
}
