/* The ranking for one size, and the terms of each phase. */
#include "compose/price/sides.h"
#include "tools/plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const mc_plan_request_t *request;
    mc_ranking_t all;
    const uint32_t *listed; /* indices of those that are shown, ascending */
    uint32_t n_listed;
    double best, bound; /* seconds */
} ranking_t;

/* As share of the best time, about the precision of the model. */
static const double close_share = 0.02;

static mc_links_t links_of(const ranking_t *k)
{
    const mc_plan_request_t *const r = k->request;
    return mc_links_at(&r->links, (double)r->bytes);
}

/* A part of the whole as the model cuts it: one segment's bytes. */
static double piece_of(const ranking_t *k, const mc_strategy_t *s)
{
    return (double)k->request->bytes / s->segments;
}

static mc_phase_cost_t phase_cost(const ranking_t *k, const mc_strategy_t *s, int32_t phase)
{
    const mc_plan_request_t *const r = k->request;
    const mc_links_t links = links_of(k);
    return mc_strategy_phase_cost(s, &r->mesh, &links, r->root, phase);
}

/* Of one side, a segment through all its phases. */
static mc_phase_cost_t side_cost(const ranking_t *k, const mc_strategy_t *s, int32_t side)
{
    mc_phase_cost_t sum = {mc_cost_zero(), mc_cost_zero()};
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++) {
        const mc_phase_cost_t phase = phase_cost(k, s, i);
        sum.once = mc_cost_add(&sum.once, &phase.once);
        sum.busy = mc_cost_add(&sum.busy, &phase.busy);
    }
    return sum;
}

static void add_cost(mc_table_t *table, const ranking_t *k, const mc_strategy_t *s,
                     const mc_cost_t *cost)
{
    const mc_plan_request_t *const r = k->request;
    const mc_links_t links = links_of(k);
    char term[MC_TERM_TEXT];
    for (int32_t d = 0; d < r->mesh.ndims; d++)
        mc_table_add(table, "%s", mc_show_term(&cost->dim[d], term));
    mc_table_add_seconds(table, mc_cost_seconds(cost, &links, piece_of(k, s)));
}

static void print_pipelining(const ranking_t *k, const mc_strategy_t *s, const mc_cost_t *busy)
{
    char each[MC_NUMBER_TEXT], all[MC_NUMBER_TEXT];
    const mc_links_t links = links_of(k);
    int32_t d;
    const double seconds = mc_cost_busy(busy, &links, piece_of(k, s), &d);
    const double total = mc_strategy_seconds(s, &k->request->mesh, &k->request->links,
                                             k->request->root, (double)k->request->bytes);
    const char *const cores = mc_links_share_cores(&links) ? "cores that ranks share" : NULL;
    printf(
        "  then %u more segments, one every %s, the time each occupies the %s%s%s%s: %s in all\n",
        s->segments - 1, mc_print_seconds(seconds, each, sizeof each),
        d >= 0  ? "links of "
        : cores ? ""
                : "ranks themselves",
        d < 0 ? "" : k->request->mesh.dim[d].name, d >= 0 && cores ? " and the " : "",
        cores ? cores : "", mc_print_seconds(total, all, sizeof all));
}

/* Two sides run concurrently: prints the time of the first two segments and the interval of
 * further ones. */
static void print_sides(const ranking_t *k, const mc_strategy_t *s)
{
    const mc_plan_request_t *const r = k->request;
    const double n = (double)r->bytes;
    char fill[MC_NUMBER_TEXT], each[MC_NUMBER_TEXT], all[MC_NUMBER_TEXT];
    const mc_links_t links = links_of(k);
    const mc_pipeline_t pipeline = mc_sides_pipeline(s, &r->mesh, &links, r->root, n);
    const double total = mc_strategy_seconds(s, &r->mesh, &r->links, r->root, n);
    printf("  a segment of each side, side by side: %s",
           mc_print_seconds(pipeline.fill, fill, sizeof fill));
    if (s->segments > 2) {
        printf("; then %u more of each, two every %s, ", s->segments / 2 - 1,
               mc_print_seconds(pipeline.every, each, sizeof each));
        if (pipeline.busiest < 0)
            printf("the time they occupy %s",
                   mc_links_share_cores(&links) ? "the cores that ranks share" : "a rank");
        else
            printf("the time they occupy the links of %s%s", r->mesh.dim[pipeline.busiest].name,
                   mc_links_share_cores(&links) ? " and the cores that ranks share" : "");
        printf(": %s in all", mc_print_seconds(total, all, sizeof all));
    }
    putchar('\n');
}

static void add_side_rows(mc_table_t *table, const ranking_t *k, const mc_strategy_t *s,
                          int32_t side)
{
    const char *const mark = mc_strategy_sides(s) == 1 ? "" : side == 0 ? "A " : "B ";
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++) {
        const mc_phase_cost_t cost = phase_cost(k, s, i);
        mc_table_add(table, "%s%s", mark, mc_show_phase(s, &k->request->mesh, i));
        add_cost(table, k, s, &cost.once);
    }
    const mc_phase_cost_t total = side_cost(k, s, side);
    mc_table_add(table, "%sall phases", mark);
    add_cost(table, k, s, &total.once);
}

static void print_call(const mc_links_t *links)
{
    char number[MC_NUMBER_TEXT];
    const double besides = mc_links_call(links);
    if (besides > 0)
        printf("  besides its phases a call takes %s, which the time above contains\n",
               mc_print_seconds(besides, number, sizeof number));
}

static int print_phases(const ranking_t *k, const mc_strategy_t *s)
{
    const mc_plan_request_t *const r = k->request;
    const int32_t sides = mc_strategy_sides(s);
    char align[MC_MAX_DIMS + 3] = "l";
    memset(align + 1, 'l', (size_t)r->mesh.ndims);
    align[1 + r->mesh.ndims] = 'r';
    mc_table_t table = mc_table(align);
    mc_table_add(&table, "phase");
    for (int32_t d = 0; d < r->mesh.ndims; d++)
        mc_table_add(&table, "links of %s", r->mesh.dim[d].name);
    mc_table_add(&table, "%s", s->segments > 1 ? "a segment" : "time");
    for (int32_t side = 0; side < sides; side++)
        add_side_rows(&table, k, s, side);
    const int status = mc_table_print(&table, 2, stdout);
    if (sides > 1) {
        print_sides(k, s);
    } else if (s->segments > 1) {
        const mc_phase_cost_t total = side_cost(k, s, 0);
        print_pipelining(k, s, &total.busy);
    }
    print_call(&r->links);
    return status;
}

static void print_legend(const ranking_t *k, const mc_strategy_t *s)
{
    char size[MC_NUMBER_TEXT];
    printf("  n = %s%s\n", mc_print_bytes(piece_of(k, s), size, sizeof size),
           s->segments > 1 ? ", the bytes of one segment" : "");
}

/* The terms below are the model's; the time above may be a measured one. */
static void print_measured(const ranking_t *k, const mc_strategy_t *s)
{
    const mc_plan_request_t *const r = k->request;
    const double n = (double)r->bytes;
    const double listed = mc_strategy_seconds(s, &r->mesh, &r->links, r->root, n);
    const double modelled = mc_strategy_modelled(s, &r->mesh, &r->links, r->root, n);
    char number[MC_NUMBER_TEXT], other[MC_NUMBER_TEXT];
    if (mc_strategy_is_measured(s, &r->mesh, &r->links))
        printf("  measured: %s; by the model: %s\n",
               mc_print_seconds(listed, number, sizeof number),
               mc_print_seconds(modelled, other, sizeof other));
}

/* Explains the terms, and suggests more segments where the limit was reached. */
static void print_remarks(const ranking_t *k)
{
    const uint32_t most = (uint32_t)k->request->max_segments;
    printf("\nα: a message; nβ: n bytes over the link, counted more than once where more lines of "
           "ranks cross\nat once than it has ports");
    if (mc_moves[k->request->collective].reduces)
        printf("; nγ: n bytes summed");
    putchar('\n');
    const bool more = most > 1 && most < MC_MOST_SEGMENTS;
    if (!k->request->strategy && more && 2 * k->all.list[0].strategy.segments > most)
        printf("the best strategy uses the most segments allowed; --max-segments %" PRIu32
               " allows more\n",
               most * 4 < MC_MOST_SEGMENTS ? most * 4 : MC_MOST_SEGMENTS);
}

/* Phase by phase: of all that are listed, or of the first. */
static int print_details(const ranking_t *k)
{
    int status = MESHCOLL_OK;
    const uint32_t shown = k->request->phases ? k->n_listed : 1;
    for (uint32_t i = 0; i < shown && !status; i++) {
        const mc_strategy_t *const s = &k->all.list[k->listed[i]].strategy;
        putchar('\n');
        if (!k->request->strategy)
            printf("#%u  ", k->listed[i] + 1);
        printf("%s\n", mc_show_strategy(s, &k->request->mesh));
        print_measured(k, s);
        print_legend(k, s);
        status = print_phases(k, s);
    }
    return status;
}

static bool is_searched(const mc_mesh_t *mesh)
{
    int long_dims = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        long_dims += mesh->dim[d].extent > 1;
    return long_dims > 2; /* see mc_planner_rank */
}

static void print_bound(const ranking_t *k)
{
    char number[MC_NUMBER_TEXT], count[MC_NUMBER_TEXT];
    printf("no strategy is faster than %s (lower bound)\n",
           mc_print_seconds(k->bound, number, sizeof number));
    if (k->request->strategy) {
        putchar('\n');
        return;
    }
    const mc_plan_request_t *const r = k->request;
    /* the ranking has measured strategies only, or, if the request allows none of them, no measured one */
    const bool measured =
        k->all.n > 0 && mc_strategy_is_measured(&k->all.list[0].strategy, &r->mesh, &r->links);
    printf("%s strateg%s %s", mc_print_count(k->all.considered, count, sizeof count),
           k->all.considered == 1 ? "y was" : "ies were", measured ? "measured" : "priced");
    if (!measured && is_searched(&r->mesh))
        printf(", %s is among the %u cheapest", k->all.exhaustive ? "no other" : "perhaps another",
               k->all.n);
    if (!k->request->all)
        printf("; the cheapest with each order of phases (--all: with each algorithm too):\n\n");
    else if (k->n_listed == 1)
        printf("; the cheapest:\n\n");
    else
        printf("; the %u cheapest:\n\n", k->n_listed);
}

static void add_times(mc_table_t *table, const ranking_t *k, double seconds)
{
    mc_table_add_seconds(table, seconds);
    mc_table_add(table, "%.2f", k->best > 0 ? seconds / k->best : 1.0);
    if (k->bound > 0)
        mc_table_add(table, "%.2f", seconds / k->bound);
    else
        mc_table_add(table, "-");
}

static int print_listed(const ranking_t *k)
{
    const bool one = k->request->strategy != NULL;
    const char *const head[] = {one ? "" : "#", "time", "/ best", "/ bound", "strategy"};
    mc_table_t table = mc_table("rrrrl");
    mc_table_add_row(&table, head);
    for (uint32_t i = 0; i < k->n_listed; i++) {
        const mc_ranked_t *const ranked = &k->all.list[k->listed[i]];
        if (one)
            mc_table_add(&table, "%s", "");
        else
            mc_table_add(&table, "%u", k->listed[i] + 1);
        add_times(&table, k, ranked->seconds);
        mc_table_add(&table, "%s", mc_show_strategy(&ranked->strategy, &k->request->mesh));
    }
    return mc_table_print(&table, 2, stdout);
}

/* The number of strategies within the precision of the model of the best one. */
static uint32_t count_close(const ranking_t *k)
{
    uint32_t n = 0;
    while (n < k->all.n && k->all.list[n].seconds <= k->best * (1 + close_share))
        n++;
    return n;
}

/* Are there perhaps more? A search returns the cheapest only. */
static bool close_is_least(const ranking_t *k)
{
    return count_close(k) == k->all.n && k->all.n < k->all.considered;
}

static void print_close(const ranking_t *k)
{
    const uint32_t close = count_close(k);
    uint32_t listed = 0;
    while (listed < k->n_listed && k->listed[listed] < close)
        listed++;
    printf("\n%s%u other strateg%s within %.0f %% of the cheapest\n",
           close_is_least(k) ? "at least " : "", close - listed,
           close - listed == 1 ? "y is" : "ies are", 100 * close_share);
}

static int print_named(const ranking_t *k)
{
    static const char *const head[] = {"name", "time", "/ best", "/ bound", "segments"};
    mc_table_t table = mc_table("lrrrr");
    mc_ranked_t named;
    for (int32_t i = 0; i < mc_named_count(); i++) {
        if (!mc_plan_named(k->request, i, &named))
            continue;
        if (table.n_cells == 0)
            mc_table_add_row(&table, head);
        mc_table_add(&table, "%s", mc_named_at(i)->name);
        add_times(&table, k, named.seconds);
        mc_table_add(&table, "%u", named.strategy.segments);
    }
    if (table.n_cells > 0)
        printf("\nnamed strategies, each with its best number of segments:\n\n");
    return mc_table_print(&table, 2, stdout);
}

static int print_ranking(const ranking_t *k)
{
    char size[MC_NUMBER_TEXT];
    mc_plan_print_head(k->request, mc_print_bytes((double)k->request->bytes, size, sizeof size));
    print_bound(k);
    int status = print_listed(k);
    if (!status && !k->request->strategy) {
        print_close(k);
        status = print_named(k);
    }
    if (!status && k->request->simulate)
        status = mc_plan_simulate(k->request, &k->all, NULL);
    if (!status)
        status = print_details(k);
    print_remarks(k);
    return status;
}

static json_t *json_phases(const ranking_t *k, const mc_strategy_t *s)
{
    const mc_plan_request_t *const r = k->request;
    const mc_links_t links = links_of(k);
    json_t *const phases = json_array();
    for (int32_t i = 0; i < s->n_phases; i++) {
        const mc_phase_cost_t cost = phase_cost(k, s, i);
        const double seconds = mc_cost_seconds(&cost.once, &links, piece_of(k, s));
        json_array_append_new(
            phases, json_pack("{s:s, s:i, s:f, s:o, s:o}", "phase", mc_show_phase(s, &r->mesh, i),
                              "side", s->second > 0 && i >= s->second ? 2 : 1, "segment_seconds",
                              seconds, "terms", mc_json_cost(&r->mesh, &cost.once), "busy_terms",
                              mc_json_cost(&r->mesh, &cost.busy)));
    }
    return phases;
}

static json_t *json_strategy(const ranking_t *k, const mc_ranked_t *ranked)
{
    json_t *const phases = json_phases(k, &ranked->strategy);
    mc_phase_cost_t total = side_cost(k, &ranked->strategy, 0);
    if (mc_strategy_sides(&ranked->strategy) > 1) {
        const mc_phase_cost_t second = side_cost(k, &ranked->strategy, 1);
        total.once = mc_cost_add(&total.once, &second.once);
    }
    return json_pack("{s:s, s:i, s:f, s:f, s:o, s:o, s:o}", "strategy",
                     mc_show_strategy(&ranked->strategy, &k->request->mesh), "segments",
                     (int)ranked->strategy.segments, "seconds", ranked->seconds, "times_best",
                     k->best > 0 ? ranked->seconds / k->best : 1.0, "times_bound",
                     k->bound > 0 ? json_real(ranked->seconds / k->bound) : json_null(), "terms",
                     mc_json_cost(&k->request->mesh, &total.once), "phases", phases);
}

static json_t *json_named(const ranking_t *k)
{
    mc_ranked_t named;
    json_t *const list = json_array();
    for (int32_t i = 0; i < mc_named_count(); i++) {
        if (!mc_plan_named(k->request, i, &named))
            continue;
        json_t *const one = json_strategy(k, &named);
        json_object_set_new(one, "name", json_string(mc_named_at(i)->name));
        json_array_append_new(list, one);
    }
    return list;
}

static int print_json(const ranking_t *k)
{
    json_t *const json = mc_plan_json_head(k->request), *const list = json_array();
    for (uint32_t i = 0; i < k->n_listed; i++)
        json_array_append_new(list, json_strategy(k, &k->all.list[k->listed[i]]));
    json_object_set_new(json, "bytes", json_integer((json_int_t)k->request->bytes));
    json_object_set_new(json, "lower_bound_seconds", json_real(k->bound));
    json_object_set_new(json, "best_seconds", json_real(k->best));
    json_object_set_new(json, "considered", json_integer(k->all.considered));
    json_object_set_new(json, "exhaustive", json_boolean(k->all.exhaustive));
    json_object_set_new(json, "strategies", list);
    if (!k->request->strategy) {
        json_object_set_new(json, "within_2_percent",
                            close_is_least(k) ? json_null() : json_integer(count_close(k)));
        json_object_set_new(json, "named", json_named(k));
    }
    const int status =
        k->request->simulate ? mc_plan_simulate(k->request, &k->all, json) : MESHCOLL_OK;
    if (status)
        json_decref(json);
    return status ? status : mc_json_print(json);
}

static int print_all(const ranking_t *k)
{
    return (k->request->json ? print_json : print_ranking)(k);
}

/* The best strategy is planned too, for the ratio. */
static int rank_one(ranking_t *k)
{
    static const uint32_t first = 0;
    const mc_plan_request_t *const r = k->request;
    mc_ranked_t best, only = {.strategy = *r->strategy};
    const mc_planner_query_t query = mc_plan_query(r, (double)r->bytes, 1);
    const int status = mc_planner_best(r->collective, &r->mesh, &r->links, &query, &best);
    if (status)
        return status;
    only.seconds = mc_strategy_seconds(r->strategy, &r->mesh, &r->links, r->root, (double)r->bytes);
    k->all = (mc_ranking_t){.list = &only, .n = 1, .considered = 1, .exhaustive = true};
    k->n_listed = 1;
    k->listed = &first;
    k->best = best.seconds;
    return print_all(k);
}

/* JSON has the full ranking, up to --top. */
static void choose_listed(ranking_t *k, uint32_t *listed)
{
    const uint32_t top = (uint32_t)k->request->top;
    k->listed = listed;
    if (!k->request->all && !k->request->json) {
        k->n_listed = mc_plan_shapes(k->all.list, k->all.n, top, listed);
        return;
    }
    for (k->n_listed = 0; k->n_listed < k->all.n && k->n_listed < top; k->n_listed++)
        listed[k->n_listed] = k->n_listed;
}

/* All strategies where they are enumerated. A search takes longer the more it returns, so it returns what is listed, and
 * some more for a list of different orders of phases. */
static uint32_t most_of(const mc_plan_request_t *r)
{
    enum { EACH = 4 };
    const uint32_t top = (uint32_t)(r->top > r->simulate ? r->top : r->simulate);
    if (!is_searched(&r->mesh))
        return 0;
    return r->json || r->all ? top : EACH * top;
}

static int rank_all(ranking_t *k)
{
    const mc_plan_request_t *const r = k->request;
    const mc_planner_query_t query = mc_plan_query(r, (double)r->bytes, most_of(r));
    int status = mc_planner_rank(r->collective, &r->mesh, &r->links, &query, &k->all);
    if (status)
        return status;
    uint32_t *const listed = malloc(((size_t)k->all.n + 1) * sizeof *listed);
    k->best = k->all.list[0].seconds;
    if (listed)
        choose_listed(k, listed);
    status = listed ? print_all(k) : mc_fail_memory("the ranking");
    free(listed);
    free(k->all.list);
    return status;
}

int mc_plan_rank(const mc_plan_request_t *r)
{
    ranking_t k = {.request = r};
    k.bound = mc_lower_bound(r->collective, &r->mesh, &r->links, (double)r->bytes);
    return r->strategy ? rank_one(&k) : rank_all(&k);
}
