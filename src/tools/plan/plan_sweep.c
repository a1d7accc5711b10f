/* Where the best strategy changes with the size, and where options 1, 2 and 3 cross. */
#include "tools/plan/plan_command.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Sizes over which one strategy is the best; its segments may change within. */
typedef struct {
    uint64_t from, to;
    mc_ranked_t first;    /* at `from` */
    uint32_t least, most; /* segments */
    double last_seconds;  /* at `to` */
} stretch_t;

typedef struct {
    const mc_plan_request_t *request;
    stretch_t *stretch;
    uint32_t n, capacity;
} sweep_t;

static int best_at(const sweep_t *sweep, uint64_t bytes, mc_ranked_t *best)
{
    const mc_plan_request_t *const r = sweep->request;
    const mc_planner_query_t query = mc_plan_query(r, (double)bytes, 1);
    return mc_planner_best(r->collective, &r->mesh, &r->links, &query, best);
}

static int add_stretch(sweep_t *sweep, uint64_t bytes, const mc_ranked_t *best)
{
    stretch_t *const stretch =
        mc_grown(sweep->stretch, sweep->n, &sweep->capacity, sizeof *stretch);
    if (!stretch)
        return mc_fail_memory("the sizes of a sweep");
    sweep->stretch = stretch;
    const uint32_t segments = best->strategy.segments;
    sweep->stretch[sweep->n++] = (stretch_t){.from = bytes,
                                             .to = bytes,
                                             .first = *best,
                                             .least = segments,
                                             .most = segments,
                                             .last_seconds = best->seconds};
    return MESHCOLL_OK;
}

/* What is the best at `bytes` goes on with the last stretch, or begins one. */
static int note(sweep_t *sweep, uint64_t bytes, const mc_ranked_t *best)
{
    stretch_t *const last = sweep->n ? &sweep->stretch[sweep->n - 1] : NULL;
    const uint32_t segments = best->strategy.segments;
    if (!last || !mc_strategy_alike(&last->first.strategy, &best->strategy, true))
        return add_stretch(sweep, bytes, best);
    last->to = bytes;
    last->last_seconds = best->seconds;
    last->least = segments < last->least ? segments : last->least;
    last->most = segments > last->most ? segments : last->most;
    return MESHCOLL_OK;
}

/* Halves (from, to] until the sizes between which the best one changes are next to each other. */
static int narrow(sweep_t *sweep, uint64_t from, const mc_ranked_t *at_from, uint64_t to,
                  const mc_ranked_t *at_to)
{
    const uint64_t middle = from + (to - from) / 2;
    mc_ranked_t best;
    if (middle == from || mc_strategy_alike(&at_from->strategy, &at_to->strategy, true))
        return note(sweep, to, at_to);
    int status = best_at(sweep, middle, &best);
    if (!status)
        status = narrow(sweep, from, at_from, middle, &best);
    return status ? status : narrow(sweep, middle, &best, to, at_to);
}

/* Is a strategy's price a straight line over the bytes? Not where bursts pass, nor where it was measured. */
static bool is_straight(const mc_links_t *links)
{
    return mc_links_measured(links)->n_rows == 0 && !mc_links_burst(links);
}

/* Between two sizes a factor of 2 apart, a strategy that is the best at both is the best in
 * between where costs are straight lines, and nearly always otherwise. */
static int walk(sweep_t *sweep, uint64_t from, uint64_t to)
{
    const bool straight = is_straight(&sweep->request->links);
    mc_ranked_t here, there;
    int status = best_at(sweep, from, &here);
    if (!status)
        status = note(sweep, from, &here);
    while (from < to && !status) {
        const uint64_t step = straight ? from : from / 4 + 1,
                       next = to - from < step ? to : from + step;
        status = best_at(sweep, next, &there);
        if (!status)
            status = narrow(sweep, from, &here, next, &there);
        here = there;
        from = next;
    }
    return status;
}

/* The size at which two named entries cost the same. */
typedef struct {
    const char *a, *b;         /* names */
    const char *below, *above; /* the cheaper one on either side; equal: one is always cheaper */
    double bytes;              /* 0: they do not cross */
    bool always_equal;         /* they cost the same at every size */
} crossing_t;

enum { MAX_OPTIONS = 3, MAX_CROSSINGS = 3 };

typedef struct {
    const char *name;
    mc_strategy_t strategy;
} option_t;

static int find_options(const mc_plan_request_t *r, option_t option[MAX_OPTIONS])
{
    static const char *const names[] = {"option1", "option2", "option3"};
    int n = 0;
    for (size_t i = 0; i < MC_COUNT(names); i++) {
        option_t *const p = &option[n];
        if (mc_strategy_named(names[i], r->collective, &r->mesh, &p->strategy) ||
            mc_plan_check(r, &p->strategy))
            continue;
        p->name = names[i];
        n++;
    }
    return n;
}

/* Seconds by which `b` is dearer; 0 where that is no more than rounding. */
static double dearer(const mc_plan_request_t *r, const option_t *a, const option_t *b, double n)
{
    const double mine = mc_strategy_seconds(&a->strategy, &r->mesh, &r->links, r->root, n);
    const double other = mc_strategy_seconds(&b->strategy, &r->mesh, &r->links, r->root, n);
    return fabs(other - mine) <= 1e-12 * (mine + other) ? 0 : other - mine;
}

/* Seconds are a line: bytes at which it is 0, or 0. */
static double cross_straight(double at_0, double at_unit, double unit)
{
    const double slope = (at_0 - at_unit) / unit;
    return at_0 == 0 || slope == 0 || at_0 / slope <= 0 ? 0 : at_0 / slope;
}

/* Bytes between two sizes at which another one is the cheaper. */
static double halve(const mc_plan_request_t *r, const option_t *a, const option_t *b, double below,
                    double above)
{
    const bool a_first = dearer(r, a, b, below) > 0;
    while (above - below > 0.5) {
        const double middle = (below + above) / 2;
        const bool before = (dearer(r, a, b, middle) > 0) == a_first;
        *(before ? &below : &above) = middle;
    }
    return above;
}

static crossing_t cross(const mc_plan_request_t *r, const option_t *a, const option_t *b)
{
    const double largest = 0x1p50, unit = 0x1p30;
    const bool straight = is_straight(&r->links);
    crossing_t c = {.a = a->name, .b = b->name};
    double at_first = dearer(r, a, b, 0), below = 0;
    if (straight)
        c.bytes = cross_straight(at_first, dearer(r, a, b, unit), unit);
    for (double n = 1; n <= largest && c.bytes == 0; below = n, n *= 2) {
        const double seconds = dearer(r, a, b, n);
        if (at_first == 0)
            at_first = seconds;
        else if (!straight && at_first * seconds < 0)
            c.bytes = halve(r, a, b, below, n);
    }
    c.always_equal = at_first == 0;
    c.below = c.above = at_first > 0 ? a->name : b->name;
    if (c.bytes > 0)
        c.above = at_first > 0 ? b->name : a->name;
    return c;
}

static int find_crossings(const mc_plan_request_t *r, crossing_t crossing[MAX_CROSSINGS])
{
    option_t option[MAX_OPTIONS];
    int n = 0;
    const int options = find_options(r, option);
    for (int a = 0; a < options; a++)
        for (int b = a + 1; b < options; b++)
            crossing[n++] = cross(r, &option[a], &option[b]);
    return n;
}

static void print_crossing(const crossing_t *c)
{
    if (c->always_equal)
        printf("  %s and %s cost the same at every size\n", c->a, c->b);
    else if (c->bytes == 0)
        printf("  %s is cheaper than %s at every size\n", c->below, c->below == c->a ? c->b : c->a);
    else
        printf("  %s is cheaper than %s below %s (%.0f bytes)\n", c->below, c->above,
               mc_print_bytes(c->bytes).text, c->bytes);
}

static void print_crossings(const mc_plan_request_t *r)
{
    crossing_t crossing[MAX_CROSSINGS];
    const int n = find_crossings(r, crossing);
    if (n == 0)
        return;
    printf("\nthe textbook's options, in one segment:\n");
    for (int i = 0; i < n; i++)
        print_crossing(&crossing[i]);
}

/* Sizes where the best strategy changes are exact to the byte. */
static mc_printed_t show_size(uint64_t bytes)
{
    mc_printed_t printed;
    if (bytes % 1024 == 0)
        return mc_print_bytes((double)bytes);
    snprintf(printed.text, sizeof printed.text, "%" PRIu64 " B", bytes);
    return printed;
}

static int print_text(const sweep_t *sweep, uint64_t from, uint64_t to)
{
    char what[80];
    snprintf(what, sizeof what, "%s to %s", mc_print_bytes((double)from).text,
             mc_print_bytes((double)to).text);
    mc_plan_print_head(sweep->request, what);
    mc_table_t table = mc_table("rrrrrl");
    table.breaks = true;
    mc_table_add(&table, "from\tto\ttime\tto\tsegments\tbest strategy");
    for (uint32_t i = 0; i < sweep->n; i++) {
        const stretch_t *const s = &sweep->stretch[i];
        mc_strategy_t phases = s->first.strategy;
        phases.segments = (uint32_t)mc_strategy_sides(&phases);
        mc_table_add(&table, "%s\t%s\t%s\t%s", show_size(s->from).text, show_size(s->to).text,
                     mc_print_seconds(s->first.seconds).text,
                     mc_print_seconds(s->last_seconds).text);
        mc_table_add(&table, s->least == s->most ? "%u" : "%u..%u", s->least, s->most);
        mc_table_add(&table, "%s", mc_show_strategy(&phases, &sweep->request->mesh));
    }
    const int status = mc_table_print(&table, 2, stdout);
    if (!status)
        print_crossings(sweep->request);
    return status;
}

static json_t *json_crossings(const mc_plan_request_t *r)
{
    crossing_t crossing[MAX_CROSSINGS];
    json_t *const list = json_array();
    const int n = find_crossings(r, crossing);
    for (int i = 0; i < n; i++) {
        const crossing_t *const c = &crossing[i];
        json_array_append_new(
            list, json_pack("{s:[s,s], s:o, s:o, s:o}", "between", c->a, c->b, "bytes",
                            c->bytes > 0 ? json_real(c->bytes) : json_null(), "cheaper_below",
                            c->always_equal ? json_null() : json_string(c->below), "cheaper_above",
                            c->always_equal ? json_null() : json_string(c->above)));
    }
    return list;
}

static int print_json(const sweep_t *sweep, uint64_t from, uint64_t to)
{
    json_t *const json = mc_plan_json_head(sweep->request), *const list = json_array();
    for (uint32_t i = 0; i < sweep->n; i++) {
        const stretch_t *const s = &sweep->stretch[i];
        mc_strategy_t phases = s->first.strategy;
        phases.segments = (uint32_t)mc_strategy_sides(&phases);
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:s, s:i, s:i, s:f, s:f}", "from", (json_int_t)s->from,
                            "to", (json_int_t)s->to, "strategy",
                            mc_show_strategy(&phases, &sweep->request->mesh), "least_segments",
                            (int)s->least, "most_segments", (int)s->most, "seconds_from",
                            s->first.seconds, "seconds_to", s->last_seconds));
    }
    json_object_set_new(json, "sweep", json_pack("[I,I]", (json_int_t)from, (json_int_t)to));
    json_object_set_new(json, "best", list);
    json_object_set_new(json, "crossings", json_crossings(sweep->request));
    return mc_json_print(json);
}

int mc_plan_sweep(const mc_plan_request_t *request, uint64_t from, uint64_t to)
{
    sweep_t sweep = {.request = request};
    int status = walk(&sweep, from, to);
    if (!status)
        status = (request->json ? print_json : print_text)(&sweep, from, to);
    free(sweep.stretch);
    return status;
}
