/* simulate --step: how long a training step takes whose gradients are reduced in buckets, while it still computes. */
#include "tools/simulate/step_command.h"

#include "base/system/file.h"
#include "compose/planner/planner.h"
#include "simulate/step.h"
#include "tools/common/show.h"

#include <stdlib.h>

/* Numbers of equal buckets that the given ones are compared with; segments of all buckets together that are tried, and
 * that may be asked for. */
static const uint32_t counts[] = {1, 2, 4, 16, 64};
enum { MOST_SEGMENTS = 4096, MOST_ASKED = 1 << 16 };

/* The end of a step whose calls are under way together, and of one whose calls follow each other, in seconds. */
typedef struct {
    mc_strategy_t strategy;
    uint32_t n;
    bool given;
    double together, one_by_one;
} row_t;

static struct {
    mc_gradients_t given, cut;
    row_t row[2 * (MC_COUNT(counts) + 1)];
    uint32_t n;
    double computed, bytes;
} step;

static int read_file(const char *path, mc_gradients_t *g)
{
    char *text = NULL;
    size_t bytes = 0;
    int status = mc_file_read(path, &text, &bytes);
    if (!status && !text)
        status =
            mc_fail(MESHCOLL_ERR_IO, "there is no file %s; expected a line for each bucket", path);
    if (!status)
        status = mc_gradients_parse(path, text, bytes, g);
    free(text);
    return status;
}

/* Simulates calls of one stream, as NCCL's are: each begins when the one before has ended. */
static int follow(mc_simulation_t q, const row_t *row, const mc_gradients_t *g, double *seconds)
{
    mc_simulated_t one = {0};
    int64_t end = 0;
    int status = MESHCOLL_OK;
    q.strategy = &row->strategy;
    for (uint32_t k = 0; k < g->n && !status; k++) {
        q.bytes = g->bucket[k].bytes;
        if (k == 0 || q.bytes != g->bucket[k - 1].bytes)
            status = mc_simulate(&q, &one);
        end = (g->bucket[k].ready > end ? g->bucket[k].ready : end) + one.ps;
    }
    *seconds = (double)end / 1e12;
    return status;
}

static int simulate(mc_simulation_t q, row_t *row, mc_gradients_t *g)
{
    mc_strategy_t all = row->strategy;
    mc_simulated_t simulated;
    int64_t end = 0;
    all.segments *= g->n;
    q.strategy = &all;
    q.bytes = step.bytes;
    q.bucket = g->bucket;
    q.n_buckets = g->n;
    int status = mc_simulate(&q, &simulated);
    for (uint32_t k = 0; k < g->n; k++)
        end = g->bucket[k].ended > end ? g->bucket[k].ended : end;
    row->together = (double)end / 1e12;
    q.bucket = NULL;
    q.n_buckets = 0;
    return status ? status : follow(q, row, g, &row->one_by_one);
}

/* Refuses more segments than a step of the most buckets may have, before the first row runs. */
static int check_segments(uint32_t segments)
{
    const uint32_t cut = counts[MC_COUNT(counts) - 1];
    const uint32_t n = step.given.n > cut ? step.given.n : cut;
    if (segments <= MOST_ASKED / n)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "a step is simulated with up to %d segments in all: expected at most %u in each "
                   "of %u buckets; got %u",
                   MOST_ASKED, MOST_ASKED / n, n, segments);
}

/* The strategy of a name, or the cheapest of the model for a bucket. */
static int choose(const mc_step_query_t *query, const char *name, row_t *row)
{
    const mc_simulation_t *const q = &query->simulation;
    const uint32_t most = MOST_SEGMENTS / row->n;
    const mc_planner_query_t wanted = {.root = q->root,
                                       .bytes = step.bytes / row->n,
                                       .max_segments = most < 1    ? 1
                                                       : most > 64 ? 64
                                                                   : most};
    mc_ranked_t best;
    int status;
    if (name) {
        status = mc_strategy_parse(name, query->what, q->mesh, &row->strategy);
        return status ? status : check_segments(row->strategy.segments);
    }
    status = mc_planner_best(query->what, q->mesh, q->links, &wanted, &best);
    if (!status)
        row->strategy = best.strategy;
    return status;
}

/* The given buckets come last, so that theirs are the ends in `given`. */
static int add_rows(const mc_step_query_t *query, const char *name)
{
    int status = MESHCOLL_OK;
    for (size_t i = 0; i <= MC_COUNT(counts) && !status; i++) {
        row_t *const row = &step.row[step.n++];
        row->given = i == MC_COUNT(counts);
        row->n = row->given ? step.given.n : counts[i];
        status = choose(query, name, row);
        if (!row->given)
            mc_gradients_cut(&step.given, row->n, &step.cut);
        if (!status)
            status = simulate(query->simulation, row, row->given ? &step.given : &step.cut);
    }
    return status;
}

/* Output ------------------------------------------------------------------------------------------ */

static int print_rows(const mc_mesh_t *mesh)
{
    mc_table_t table = mc_table("rrrrrrl");
    mc_table_add(&table, "buckets\teach\tstep\texposed\tone by one\texposed\tstrategy");
    for (uint32_t i = 0; i < step.n; i++) {
        const row_t *const row = &step.row[i];
        mc_table_add(&table, "%u\t%s\t%s\t%s\t%s\t%s\t%s", row->n,
                     row->given ? "as given" : mc_print_bytes(step.bytes / row->n).text,
                     mc_print_seconds(row->together).text,
                     mc_print_seconds(row->together - step.computed).text,
                     mc_print_seconds(row->one_by_one).text,
                     mc_print_seconds(row->one_by_one - step.computed).text,
                     mc_show_strategy(&row->strategy, mesh));
    }
    return mc_table_print(&table, 2, stdout);
}

static int print_buckets(const mc_mesh_t *mesh)
{
    mc_table_t table = mc_table("rrrrr");
    printf("\nthe buckets as given, %s\n\n",
           mc_show_strategy(&step.row[step.n - 1].strategy, mesh));
    mc_table_add(&table, "bucket\tbytes\tready\tends\tafter");
    for (uint32_t k = 0; k < step.given.n; k++) {
        const mc_bucket_t *const b = &step.given.bucket[k];
        mc_table_add(&table, "%u\t%s\t%s\t%s\t%s", k, mc_print_bytes(b->bytes).text,
                     mc_print_seconds((double)b->ready / 1e12).text,
                     mc_print_seconds((double)b->ended / 1e12).text,
                     mc_print_seconds((double)(b->ended - b->ready) / 1e12).text);
    }
    return mc_table_print(&table, 2, stdout);
}

static int print_json(const mc_mesh_t *mesh, json_t *head)
{
    json_t *const steps = json_array(), *const buckets = json_array();
    for (uint32_t i = 0; i < step.n; i++) {
        const row_t *const row = &step.row[i];
        json_array_append_new(
            steps, json_pack("{s:s, s:i, s:b, s:f, s:f, s:f, s:f}", "strategy",
                             mc_show_strategy(&row->strategy, mesh), "buckets", (int)row->n,
                             "given", row->given, "seconds", row->together, "exposed_seconds",
                             row->together - step.computed, "one_by_one_seconds", row->one_by_one,
                             "one_by_one_exposed_seconds", row->one_by_one - step.computed));
    }
    for (uint32_t k = 0; k < step.given.n; k++)
        json_array_append_new(buckets,
                              json_pack("{s:f, s:I, s:I}", "bytes", step.given.bucket[k].bytes,
                                        "ready_ps", (json_int_t)step.given.bucket[k].ready,
                                        "ended_ps", (json_int_t)step.given.bucket[k].ended));
    json_object_set_new(head, "computed_seconds", json_real(step.computed));
    json_object_set_new(head, "steps", steps);
    json_object_set_new(head, "buckets", buckets);
    return mc_json_print(head);
}

int mc_step_simulate(const mc_step_query_t *query)
{
    const mc_mesh_t *const mesh = query->simulation.mesh;
    char title[256];
    int status = read_file(query->path, &step.given);
    if (status)
        return status;
    step.bytes = mc_gradients_bytes(&step.given);
    step.computed = (double)step.given.bucket[step.given.n - 1].ready / 1e12;
    if (!query->strategy)
        status = add_rows(query, "flat-ring");
    if (!status)
        status = add_rows(query, query->strategy);
    if (status || query->json)
        return status ? status : print_json(mesh, query->json_head(step.bytes));
    snprintf(title, sizeof title, "a training step: %s of gradients, computed in %s",
             mc_print_bytes(step.bytes).text, mc_print_seconds(step.computed).text);
    query->print_head(title);
    status = print_rows(mesh);
    return status ? status : print_buckets(mesh);
}
