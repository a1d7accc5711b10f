/* The ranking for one size, and the terms of each phase. */
#include "compose/price/sides.h"
#include "tools/plan/plan_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const mc_plan_request_t *request;
    mc_ranking_t all;
    const uint32_t *listed; /* indices of those that are shown, ascending */
    const uint32_t
        *tied; /* of each: orders of phases that print the same time; NULL: not counted */
    uint32_t n_listed;
    double best, bound; /* seconds */
    mc_links_t links;   /* as a vector of this size finds them */
} ranking_t;

/* A share of the best time, about the precision of the model. */
static const double close_share = 0.02;

/* A part of the whole as the model cuts it: one segment's bytes. */
static double piece_of(const ranking_t *k, const mc_strategy_t *s)
{
    return (double)k->request->bytes / s->segments;
}

static mc_phase_cost_t phase_cost(const ranking_t *k, const mc_strategy_t *s, int32_t phase)
{
    const mc_plan_request_t *const r = k->request;
    return mc_strategy_phase_cost(s, &r->mesh, &k->links, r->root, phase);
}

/* The cost of a segment through all phases of one side. */
static mc_phase_cost_t side_cost(const ranking_t *k, const mc_strategy_t *s, int32_t side)
{
    const mc_plan_request_t *const r = k->request;
    return mc_strategy_side_cost(s, &r->mesh, &k->links, r->root, side);
}

static double phase_seconds(const ranking_t *k, const mc_strategy_t *s, const mc_phase_cost_t *cost)
{
    const double piece = piece_of(k, s);
    return mc_cost_seconds(&cost->once, &k->links, piece) + cost->network.extra * piece;
}

/* Whose links `busiest` of mc_cost_busy means. */
static const char *links_of(const ranking_t *k, int32_t busiest)
{
    return busiest < 0                 ? ""
           : busiest < MC_BUSY_NETWORK ? k->request->mesh.dim[busiest].name
                                       : "the network";
}

/* A row for the links of each dimension that `what` uses; the time on the first. */
static void add_cost(mc_table_t *table, const ranking_t *k, const mc_strategy_t *s,
                     const char *what, const mc_phase_cost_t *phase)
{
    const mc_plan_request_t *const r = k->request;
    const mc_cost_t *const cost = &phase->once;
    const double seconds = phase_seconds(k, s, phase);
    bool first = true;
    for (int32_t d = 0; d <= r->mesh.ndims; d++) {
        const bool end = d == r->mesh.ndims;
        const mc_term_text_t term = end ? (mc_term_text_t){"-"} : mc_show_term(&cost->dim[d]);
        if (end ? !first : strcmp(term.text, "-") == 0)
            continue;
        mc_table_add(table, "%s\t%s\t%s\t%s", first ? what : "", end ? "-" : r->mesh.dim[d].name,
                     term.text, first ? mc_print_seconds(seconds).text : "");
        first = false;
    }
}

static void print_pipelining(const ranking_t *k, const mc_strategy_t *s,
                             const mc_phase_cost_t *cost)
{
    int32_t d;
    const double seconds = mc_cost_busy(cost, &k->links, piece_of(k, s), &d);
    const double total = mc_strategy_seconds(s, &k->request->mesh, &k->request->links,
                                             k->request->root, (double)k->request->bytes);
    const char *const cores = mc_links_share_cores(&k->links) ? "cores that ranks share" : NULL;
    mc_show_sentence(
        2, "then %u more segments, one every %s, the time each occupies the %s%s%s%s: %s in all",
        s->segments - 1, mc_print_seconds(seconds).text,
        d >= 0  ? "links of "
        : cores ? ""
                : "ranks themselves",
        links_of(k, d), d >= 0 && cores ? " and the " : "", cores ? cores : "",
        mc_print_seconds(total).text);
}

/* Two sides run concurrently: prints the time of the first two segments and the interval of
 * further ones. */
static void print_sides(const ranking_t *k, const mc_strategy_t *s)
{
    const mc_plan_request_t *const r = k->request;
    const double n = (double)r->bytes;
    const mc_pipeline_t pipeline = mc_sides_pipeline(s, &r->mesh, &k->links, r->root, n);
    const double total = mc_strategy_seconds(s, &r->mesh, &r->links, r->root, n);
    const bool wire = pipeline.busiest >= 0, cores = mc_links_share_cores(&k->links);
    const mc_printed_t fill = mc_print_seconds(pipeline.fill);
    if (s->segments > 2)
        mc_show_sentence(2,
                         "a segment of each side, side by side: %s; then %u more of each, two "
                         "every %s, the time they occupy %s%s%s: %s in all",
                         fill.text, s->segments / 2 - 1, mc_print_seconds(pipeline.every).text,
                         wire    ? "the links of "
                         : cores ? "the cores that ranks share"
                                 : "a rank",
                         links_of(k, pipeline.busiest),
                         wire && cores ? " and the cores that ranks share" : "",
                         mc_print_seconds(total).text);
    else
        printf("  a segment of each side, side by side: %s\n", fill.text);
}

static void add_side_rows(mc_table_t *table, const ranking_t *k, const mc_strategy_t *s,
                          int32_t side)
{
    const char *const mark = mc_strategy_sides(s) == 1 ? "" : side == 0 ? "A " : "B ";
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++) {
        const mc_phase_cost_t cost = phase_cost(k, s, i);
        char what[MC_STRATEGY_TEXT];
        snprintf(what, sizeof what, "%s%s", mark, mc_show_phase(s, &k->request->mesh, i));
        add_cost(table, k, s, what, &cost);
    }
    const mc_phase_cost_t total = side_cost(k, s, side);
    char what[16];
    snprintf(what, sizeof what, "%sall phases", mark);
    add_cost(table, k, s, what, &total);
}

static void print_call(const mc_links_t *links)
{
    const double besides = mc_links_call(links);
    if (besides > 0)
        printf("  besides its phases a call takes %s, which the time above contains\n",
               mc_print_seconds(besides).text);
}

static int print_phases(const ranking_t *k, const mc_strategy_t *s)
{
    const mc_plan_request_t *const r = k->request;
    const int32_t sides = mc_strategy_sides(s);
    mc_table_t table = mc_table("lllr");
    mc_table_add(&table, "phase\tlinks of\tterms\t%s", s->segments > 1 ? "a segment" : "time");
    for (int32_t side = 0; side < sides; side++)
        add_side_rows(&table, k, s, side);
    const int status = mc_table_print(&table, 2, stdout);
    if (sides > 1) {
        print_sides(k, s);
    } else if (s->segments > 1) {
        const mc_phase_cost_t total = side_cost(k, s, 0);
        print_pipelining(k, s, &total);
    }
    print_call(&r->links);
    return status;
}

/* The terms below are the model's; the time above may be a measured one. */
static void print_measured(const ranking_t *k, const mc_strategy_t *s)
{
    const mc_plan_request_t *const r = k->request;
    const double n = (double)r->bytes;
    const double listed = mc_strategy_seconds(s, &r->mesh, &r->links, r->root, n);
    const double modelled = mc_strategy_modelled(s, &r->mesh, &r->links, r->root, n);
    if (mc_strategy_is_measured(s, &r->mesh, &r->links))
        printf("  measured: %s; by the model: %s\n", mc_print_seconds(listed).text,
               mc_print_seconds(modelled).text);
}

/* Explains the terms, and suggests more segments where the limit was reached. */
static void print_remarks(const ranking_t *k)
{
    const uint32_t most = (uint32_t)k->request->max_segments;
    putchar('\n');
    mc_show_sentence(0,
                     "α: a message; nβ: n bytes over the link, counted more than once where more "
                     "lines of ranks cross at once than it has ports%s",
                     mc_moves[k->request->collective].reduces ? "; nγ: n bytes summed" : "");
    const bool more = most > 1 && most < MC_MOST_SEGMENTS;
    if (!k->request->strategy && more && 2 * k->all.list[0].strategy.segments > most)
        mc_show_sentence(0,
                         "the best strategy uses the most segments allowed; --max-segments "
                         "%" PRIu32 " allows more",
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
        mc_print_words(mc_show_strategy(s, &k->request->mesh), 4, 4, stdout);
        putchar('\n');
        print_measured(k, s);
        printf("  n = %s%s\n", mc_print_bytes(piece_of(k, s)).text,
               s->segments > 1 ? ", the bytes of one segment" : "");
        status = print_phases(k, s);
    }
    return status;
}

static bool is_searched(const mc_mesh_t *mesh)
{
    return __builtin_popcount(mc_mesh_long(mesh)) > 2; /* mc_planner_rank searches beams there */
}

/* What the rest says in full: the answer, and how good it is. */
static void print_answer(const ranking_t *k)
{
    const mc_plan_request_t *const r = k->request;
    const double above = k->bound > 0 ? k->best / k->bound - 1 : 0;
    char compared[64] = "";
    if (above >= 1)
        mc_number_print(compared, sizeof compared, ", %.2g times what the network allows",
                        above + 1);
    else if (above >= 0.005)
        mc_number_print(compared, sizeof compared, ", %.0f %% above what the network allows",
                        100 * above);
    else if (k->bound > 0)
        snprintf(compared, sizeof compared, ", which is what the network allows");
    mc_show_sentence(0, "The fastest is %s: %s%s.\n",
                     mc_show_strategy(&k->all.list[0].strategy, &r->mesh),
                     mc_print_seconds(k->best).text, compared);
}

static void print_considered(const ranking_t *k)
{
    char among[64] = "", these[128];
    const mc_plan_request_t *const r = k->request;
    /* the ranking has measured strategies only, or, if the request allows none of them, no measured one */
    const bool measured = mc_strategy_is_measured(&k->all.list[0].strategy, &r->mesh, &r->links);
    if (!measured && is_searched(&r->mesh))
        snprintf(among, sizeof among, ", %s is among the %u cheapest",
                 k->all.exhaustive ? "no other" : "perhaps another", k->all.n);
    if (!r->all)
        snprintf(these, sizeof these,
                 "the cheapest with each order of phases (--all: with each algorithm too)");
    else if (k->n_listed == 1)
        snprintf(these, sizeof these, "the cheapest");
    else
        snprintf(these, sizeof these, "the %u cheapest", k->n_listed);
    mc_show_sentence(0, "%s strateg%s %s%s; %s:", mc_print_count(k->all.considered).text,
                     k->all.considered == 1 ? "y was" : "ies were",
                     measured ? "measured" : "priced", among, these);
    putchar('\n');
}

static void add_times(mc_table_t *table, const ranking_t *k, double seconds)
{
    mc_table_add(table, "%s\t%.2f", mc_print_seconds(seconds).text,
                 k->best > 0 ? seconds / k->best : 1.0);
    mc_table_add(table, k->bound > 0 ? "%.2f" : "-", seconds / k->bound);
}

static int print_listed(const ranking_t *k)
{
    const bool one = k->request->strategy != NULL;
    mc_table_t table = mc_table("rrrrl");
    table.breaks = true;
    mc_table_add(&table, "%s\ttime\t/ best\t/ bound\tstrategy", one ? "" : "#");
    for (uint32_t i = 0; i < k->n_listed; i++) {
        const mc_ranked_t *const ranked = &k->all.list[k->listed[i]];
        mc_table_add(&table, one ? "" : "%u", k->listed[i] + 1);
        add_times(&table, k, ranked->seconds);
        const uint32_t tied = k->tied ? k->tied[i] : 0;
        mc_table_add(&table, tied > 0 ? "%s (%u other%s tied)" : "%s",
                     mc_show_strategy(&ranked->strategy, &k->request->mesh), tied,
                     tied == 1 ? "" : "s");
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
    mc_table_t table = mc_table("lrrrr");
    mc_ranked_t named;
    for (int32_t i = 0; i < mc_named_count(); i++) {
        if (!mc_plan_named(k->request, i, &named))
            continue;
        if (table.n_cells == 0)
            mc_table_add(&table, "name\ttime\t/ best\t/ bound\tsegments");
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
    if (!k->request->strategy)
        print_answer(k);
    mc_plan_print_head(k->request, mc_print_bytes((double)k->request->bytes).text);
    if (k->bound > 0 || !mc_links_share_cores(&k->links))
        printf("no strategy is faster than %s (lower bound)\n", mc_print_seconds(k->bound).text);
    if (!k->request->strategy)
        print_considered(k);
    else
        putchar('\n');
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
    json_t *const phases = json_array();
    for (int32_t i = 0; i < s->n_phases; i++) {
        const mc_phase_cost_t cost = phase_cost(k, s, i);
        const double seconds = phase_seconds(k, s, &cost);
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
        total = mc_phase_cost_add(&total, &second);
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
static void choose_listed(ranking_t *k, uint32_t *listed, uint32_t *tied)
{
    const uint32_t top = (uint32_t)k->request->top;
    k->listed = listed;
    if (!k->request->all && !k->request->json) {
        k->tied = tied;
        k->n_listed = mc_plan_shapes(k->all.list, k->all.n, top, listed, tied);
        return;
    }
    for (k->n_listed = 0; k->n_listed < k->all.n && k->n_listed < top; k->n_listed++)
        listed[k->n_listed] = k->n_listed;
}

/* All strategies where they are enumerated. A search takes longer the more it returns, so it returns what is listed, and
 * some more for a list of different orders of phases. */
static uint32_t most_of(const mc_plan_request_t *r)
{
    enum { EACH = 4, LEAST = 40 };
    const uint32_t top = (uint32_t)(r->top > r->simulate ? r->top : r->simulate);
    if (!is_searched(&r->mesh))
        return 0;
    return r->json || r->all ? top : EACH * top > LEAST ? EACH * top : LEAST;
}

static int rank_all(ranking_t *k)
{
    const mc_plan_request_t *const r = k->request;
    const mc_planner_query_t query = mc_plan_query(r, (double)r->bytes, most_of(r));
    int status = mc_planner_rank(r->collective, &r->mesh, &r->links, &query, &k->all);
    if (status)
        return status;
    /* the places of those that are listed, then the numbers of those tied with them */
    uint32_t *const listed = malloc(2 * ((size_t)k->all.n + 1) * sizeof *listed);
    k->best = k->all.list[0].seconds;
    if (listed)
        choose_listed(k, listed, listed + k->all.n + 1);
    status = listed ? print_all(k) : mc_fail_memory("the ranking");
    free(listed);
    free(k->all.list);
    return status;
}

int mc_plan_rank(const mc_plan_request_t *r)
{
    ranking_t k = {.request = r, .links = mc_links_at(&r->links, (double)r->bytes)};
    k.bound = mc_lower_bound(r->collective, &r->mesh, &r->links, (double)r->bytes);
    return r->strategy ? rank_one(&k) : rank_all(&k);
}
