/* Explain: the report. */
#include "base/table.h"

#include "base/system/descriptor.h"
#include "base/system/log.h"
#include "mesh/link/link_show.h"
#include "runtime/call/adapt.h"
#include "runtime/connect/connections.h"
#include "runtime/diagnose/explain.h"
#include "runtime/progress/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 32, NAME = 64 };

/* With fewer runs a slow call is no warning: the first ones also connect ranks and touch new pages. */
enum { COMPARED = 3 };

/* The most candidates for the next best strategy. */
enum { RANKED = 64 };

typedef struct {
    const meshcoll_t *h;
    const mc_explain_t *e;
    FILE *out;
    bool warned;
} report_t;

/* Head ------------------------------------------------------------------------------------------- */

static bool is_tuned(const mc_explain_t *e)
{
    return e->links_from && strncmp(e->links_from, MC_TUNED_FROM, strlen(MC_TUNED_FROM)) == 0;
}

static void print_head(const report_t *r)
{
    fprintf(r->out, "meshcoll: what ran on %s, %d ranks, as rank %d saw it\n", r->h->text,
            r->h->mesh.size, meshcoll_rank(r->h));
    if (!r->e->links_from)
        fprintf(r->out, "links: the preset %s, which is the default\n", mc_cluster_presets[0].name);
    else if (is_tuned(r->e))
        fprintf(r->out, "links: %s\n", r->e->links_from);
    else
        fprintf(r->out, "links: %s, %s\n", r->e->links, r->e->links_from);
    if (*r->h->job->connections.devices)
        fprintf(r->out, "network interfaces that lead to the other ranks: %s\n",
                r->h->job->connections.devices);
    mc_links_show(&r->h->mesh, &r->h->links, r->out);
}

/* Why -------------------------------------------------------------------------------------------- */

static int32_t count_phase(const mc_strategy_t *s, const mc_phase_t *phase)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_phases; i++)
        n += s->phase[i].algorithm == phase->algorithm &&
             s->phase[i].dims.first == phase->dims.first &&
             s->phase[i].dims.count == phase->dims.count;
    return n;
}

/* Do the strategies differ in phases, not only in their order or the number of segments? */
static bool differs(const mc_strategy_t *a, const mc_strategy_t *b)
{
    bool same = a->n_phases == b->n_phases;
    for (int32_t i = 0; i < a->n_phases && same; i++)
        same = count_phase(a, &a->phase[i]) == count_phase(b, &a->phase[i]);
    return !same;
}

static void print_strategy(const report_t *r, const char *before, const mc_strategy_t *strategy)
{
    char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_strategy_print(strategy, &r->h->mesh, &text);
    fprintf(r->out, "%s%s", before, buffer);
}

static void print_alternative(const report_t *r, const char *before, const mc_ranked_t *other,
                              double seconds)
{
    const double more = seconds > 0 ? other->seconds / seconds - 1 : 0;
    print_strategy(r, before, &other->strategy);
    fprintf(r->out, ", %s predicted", mc_print_seconds(other->seconds).text);
    if (fabs(more) >= 0.01)
        fprintf(r->out, ", %.3g times as long", 1 + more);
    else if (more != 0)
        fprintf(r->out, ", %.1g %% %s", 100 * fabs(more), more > 0 ? "longer" : "shorter");
    else if (seconds > 0)
        fprintf(r->out, ", as long");
    fputc('\n', r->out);
}

/* Prints the cheapest strategy with other phases and another cost: one with the same cost often
 * sends the same messages. */
static void print_next(const report_t *r, const mc_record_t *call, double seconds,
                       const mc_ranking_t *ranking)
{
    for (uint32_t i = 0; i < ranking->n; i++) {
        const mc_ranked_t *const other = &ranking->list[i];
        if (other->seconds > seconds && differs(&other->strategy, &call->strategy)) {
            print_alternative(r, "  next best: ", other, seconds);
            return;
        }
    }
    fprintf(r->out, "  next best: none with another cost\n");
}

static void print_chooser(const report_t *r, const mc_record_t *call)
{
    static const char *const by[] = {
        [MC_BY_PLANNER] = "chosen by the planner, as the cheapest",
        [MC_BY_BARRIER] = "chosen by the planner, as the cheapest sum of one element",
        [MC_BY_COUNTS] = "taken as no rank but the block's two ends knows how long a block is",
        [MC_BY_CALL] = "forced by meshcoll_args_t.strategy",
        [MC_BY_MESH] = "forced by meshcoll_set_strategy",
        [MC_BY_ENVIRONMENT] = "forced by MESHCOLL_STRATEGY_"};
    fprintf(r->out, "  %s", by[call->chooser]);
    if (call->chooser == MC_BY_ENVIRONMENT)
        for (const char *c = meshcoll_collective_name(call->collective); *c; c++)
            fputc(mc_upper(*c), r->out);
    fputc('\n', r->out);
}

static int print_why(const report_t *r, const mc_record_t *call, double seconds)
{
    const mc_pacing_t pacing = mc_handle_pacing(r->h);
    const mc_planner_query_t query = {.root = call->root,
                                      .bytes = (double)call->bytes,
                                      .max_segments = MC_MAX_SEGMENTS,
                                      .most = RANKED,
                                      .pacing = &pacing,
                                      .in_order = call->in_order,
                                      .aligned = call->aligned};
    mc_ranking_t ranking;
    if (call->chooser == MC_BY_COUNTS) {
        print_chooser(r, call);
        return MESHCOLL_OK;
    }
    const int status =
        mc_planner_rank(call->collective, &r->h->mesh, &r->h->links, &query, &ranking);
    if (status)
        return status;
    const bool planned = call->chooser == MC_BY_PLANNER || call->chooser == MC_BY_BARRIER;
    const bool same = mc_strategy_equal(&ranking.list[0].strategy, &call->strategy);
    const bool one_line = call->in_order && r->h->order.comm_rank; /* see mc_choice_key_t */
    const bool learned = planned && r->h->calls.adapt && !same && !one_line;
    if (learned)
        fprintf(r->out, "  one of the candidates that calls have tried (see what they learned)\n");
    else
        print_chooser(r, call);
    if (planned && !learned)
        print_next(r, call, seconds, &ranking);
    else if (same)
        fprintf(r->out, "  the planner would take it too\n");
    else
        print_alternative(r, "  the planner would take ", &ranking.list[0], seconds);
    free(ranking.list);
    return MESHCOLL_OK;
}

/* Times ------------------------------------------------------------------------------------------ */

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Returns the median run, as a sample of mc_record_t. */
static const double *median_run(const mc_record_t *call)
{
    double value[MC_EXPLAINED_RUNS];
    const double *sample = call->sample;
    const size_t n = call->n_runs < MC_EXPLAINED_RUNS ? call->n_runs : MC_EXPLAINED_RUNS;
    for (size_t i = 0; i < n; i++)
        value[i] = call->sample[i * mc_call_width(call)];
    qsort(value, n, sizeof *value, by_value);
    while (*sample != value[(n - 1) / 2])
        sample += mc_call_width(call);
    return sample;
}

/* Prints "0.37", "5.2" or "5031". */
static const char *print_ratio(double ratio, char buffer[NUMBER])
{
    const int decimals = ratio < 0.995 ? 2 : ratio < 99.5 ? 1 : 0;
    mc_number_print(buffer, NUMBER, "%.*f", decimals, ratio);
    return buffer;
}

/* Adds a row's times, with "-" for a phase without work on this rank. */
static void add_times(mc_table_t *table, double predicted, double measured)
{
    char ratio[NUMBER];
    mc_table_add(table, "%s\t%s\t%s", predicted > 0 ? mc_print_seconds(predicted).text : "-",
                 measured > 0 ? mc_print_seconds(measured).text : "-",
                 measured > 0 && predicted > 0 ? print_ratio(measured / predicted, ratio) : "-");
}

MC_APART static double predict_phase(const report_t *r, const mc_record_t *call, int32_t i)
{
    const mc_links_t links = mc_links_at(&r->h->links, (double)call->bytes);
    const mc_phase_cost_t cost =
        mc_strategy_phase_cost(&call->strategy, &r->h->mesh, &links, call->root, i);
    return mc_phase_cost_seconds(&cost, &links, call->strategy.segments, (double)call->bytes);
}

/* Prints the times; returns the phase whose measured time is furthest from the predicted one; -1: a
 * kernel tells none of its phases. */
static int32_t print_times(const report_t *r, const mc_record_t *call, double seconds)
{
    mc_table_t table = mc_table("lrrr");
    const double *const run = median_run(call);
    int32_t furthest = call->gpu.blocks ? -1 : 0;
    double most = -1;
    mc_table_add(&table, "phase\tpredicted\tmeasured\tratio");
    for (int32_t i = 0; i < call->strategy.n_phases; i++) {
        char name[MC_STRATEGY_TEXT];
        mc_text_t text = mc_text(name, sizeof name);
        mc_strategy_print_phase(&call->strategy, &r->h->mesh, i, &text);
        const double predicted = predict_phase(r, call, i);
        const double measured = run[1 + i];
        const double off = measured > predicted ? measured - predicted : predicted - measured;
        mc_table_add(&table, "%s", name);
        add_times(&table, predicted, measured);
        if (measured > 0 && off > most) {
            most = off;
            furthest = i;
        }
    }
    const double besides = mc_links_call(&r->h->links);
    if (besides > 0) {
        mc_table_add(&table, "of each call");
        add_times(&table, besides, 0);
    }
    if (call->gpu.blocks == 0) {
        mc_table_add(&table, "until all is sent");
        add_times(&table, 0, run[1 + call->strategy.n_phases]);
    }
    mc_table_add(&table, "the whole call");
    add_times(&table, seconds, run[0]);
    mc_table_print(&table, 4, r->out);
    return furthest;
}

/* Warnings --------------------------------------------------------------------------------------- */

/* Prints advice once, after all calls. */
static void print_advice(const report_t *r)
{
    fprintf(r->out,
            "\nWhere measured and predicted differ by more than %.3g times, the planner may "
            "choose badly:\n",
            r->e->factor);
    if (!r->e->links_from)
        fprintf(r->out,
                "- the default links were not measured here: run `meshcoll tune`, whose links "
                "later meshes\n  find, or give links by MESHCOLL_LINKS\n");
    else if (is_tuned(r->e))
        fprintf(r->out,
                "- the links were measured under another load: run `meshcoll tune` again\n");
    else
        fprintf(r->out,
                "- the links were %s: run `meshcoll tune` and leave them out, or correct "
                "them\n",
                r->e->links_from);
    fprintf(r->out, "- a call's time includes waiting for ranks that start later, and for cores "
                    "where ranks\n  outnumber them\n");
}

/* Prints a warning if there is reason to; returns whether it did. `furthest`: -1: unknown. */
static bool print_warning(const report_t *r, const mc_record_t *call, double seconds,
                          int32_t furthest)
{
    const double measured = *median_run(call);
    const bool slower = measured > seconds;
    const double ratio = slower ? measured / seconds : seconds / measured;
    char dims[NAME], number[NUMBER];
    if (!(seconds > 0) || !(measured > 0) || ratio <= r->e->factor)
        return false;
    if (slower && call->n_runs < COMPARED) {
        fprintf(
            r->out,
            "  too few runs to compare with the prediction: the first ones also connect ranks\n");
        return false;
    }
    fprintf(r->out, "  warning: %s times %s than predicted", print_ratio(ratio, number),
            slower ? "slower" : "faster");
    if (furthest >= 0) {
        mc_text_t text = mc_text(dims, sizeof dims);
        mc_dims_print(&r->h->mesh, call->strategy.phase[furthest].dims, &text);
        fprintf(r->out, "; the phase along %s is furthest off", dims);
    }
    fputc('\n', r->out);
    return true;
}

/* Calls ------------------------------------------------------------------------------------------ */

static void print_title(const report_t *r, const mc_record_t *call)
{
    const mc_move_t *const move = &mc_moves[call->collective];
    if (call->chooser == MC_BY_BARRIER)
        fprintf(r->out, "\nbarrier");
    else
        fprintf(r->out, "\n%s of %s", move->name, mc_print_bytes((double)call->bytes).text);
    if (move->rooted)
        fprintf(r->out, ", root %d", mc_comm_rank_of(&r->h->order, call->root));
    fprintf(r->out, "%s: ", call->gpu.blocks ? ", on device memory" : "");
    if (call->n_runs > 0) {
        fprintf(r->out, "%llu run%s, median %s", (unsigned long long)call->n_runs,
                call->n_runs == 1 ? "" : "s", mc_print_seconds(*median_run(call)).text);
        fprintf(r->out, ", fastest %s", mc_print_seconds(call->least).text);
    }
    if (call->n_untimed > 0)
        fprintf(r->out, "%s%llu%s not timed", call->n_runs > 0 ? ", " : "",
                (unsigned long long)call->n_untimed, call->n_runs > 0 ? " more" : "");
    fputc('\n', r->out);
}

static void print_gpu(const report_t *r, const mc_on_gpu_t *g)
{
    fprintf(r->out, "  by the device executor: %u block%s", g->blocks, g->blocks == 1 ? "" : "s");
    if (g->tracks > 1)
        fprintf(r->out, " in %u tracks", g->tracks);
    fprintf(r->out, ", %u pass%s", g->passes, g->passes == 1 ? "" : "es");
    if (g->by_gpu + g->by_host > 0)
        fprintf(r->out, ", %u slots of %s for each peer and block", g->slots,
                mc_print_bytes(g->slot_bytes).text);
    fputc('\n', r->out);
    if (g->by_gpu > 0)
        fprintf(r->out, "  messages of %u peer%s lie in memory of GPUs\n", g->by_gpu,
                g->by_gpu == 1 ? "" : "s");
    if (g->by_host > 0)
        fprintf(r->out, "  messages of %u peer%s lie in pinned memory of the host\n", g->by_host,
                g->by_host == 1 ? "" : "s");
    if (g->why_host)
        fprintf(r->out, "  those of other machines, as %s\n", g->why_host);
    if (g->direct > 0)
        fprintf(r->out, "  %u of %u messages sent in a pass go straight to registered memory\n",
                g->direct, g->sent);
}

static int print_call(report_t *r, const mc_record_t *call)
{
    const double seconds = mc_strategy_seconds(&call->strategy, &r->h->mesh, &r->h->links,
                                               call->root, (double)call->bytes);
    print_title(r, call);
    print_strategy(r, "  ", &call->strategy);
    fputc('\n', r->out);
    if (call->gpu.blocks > 0)
        print_gpu(r, &call->gpu);
    const int status = print_why(r, call, seconds);
    if (status || call->n_runs == 0)
        return status;
    const int32_t furthest = print_times(r, call, seconds);
    if (call->strategy.segments > 1 && call->strategy.n_phases > 1)
        fprintf(r->out, "    the phases of %u segments overlap: they do not add up\n",
                call->strategy.segments);
    r->warned |= print_warning(r, call, seconds, furthest);
    return MESHCOLL_OK;
}

static int by_total(const void *left, const void *right)
{
    const mc_record_t *const a = *(const mc_record_t *const *)left;
    const mc_record_t *const b = *(const mc_record_t *const *)right;
    return (a->total < b->total) - (a->total > b->total);
}

/* Prints the calls in descending order of their total time. */
static int print_calls(report_t *r)
{
    uint32_t n = 0;
    int status = MESHCOLL_OK;
    const mc_record_t **const call = malloc(((size_t)r->e->n_calls + 1) * sizeof *call);
    if (!call)
        return mc_fail_memory("a report");
    for (uint32_t i = 0; i < r->e->n_calls; i++)
        if (r->e->call[i]->n_runs + r->e->call[i]->n_untimed > 0)
            call[n++] = r->e->call[i];
    qsort(call, n, sizeof *call, by_total);
    for (uint32_t i = 0; i < n && !status; i++)
        status = print_call(r, call[i]);
    free(call);
    if (n == 0)
        fprintf(r->out, "\nnothing has run\n");
    if (r->e->n_left_out > 0)
        fprintf(r->out, "\n%llu runs of further calls are not listed: there were more than %d\n",
                (unsigned long long)r->e->n_left_out, MC_EXPLAINED_CALLS);
    return status;
}

/* Nothing where calls have learned nothing. */
static int print_learned(const report_t *r)
{
    enum { ROOM = MC_LESSONS * (MC_CANDIDATES + 1) * 512 };
    char *const room = malloc(ROOM);
    if (!room)
        return mc_fail_memory("a report");
    mc_text_t text = mc_text(room, ROOM);
    mc_adapt_print(r->h, &text);
    if (text.length > 0)
        fprintf(r->out, "\nWhat calls learned, and what they took (*: what is used):\n%s", room);
    free(room);
    return MESHCOLL_OK;
}

static int write_report(const meshcoll_t *h, char **text)
{
    char *written = NULL;
    size_t bytes = 0;
    report_t r = {.h = h, .e = h->explain, .out = open_memstream(&written, &bytes)};
    if (!r.out)
        return mc_fail_memory("a report");
    if (h->gpu)
        h->job->device->collect(h);
    const locale_t before = mc_number_enter();
    print_head(&r);
    int status = print_calls(&r);
    if (!status)
        status = print_learned(&r);
    if (r.warned)
        print_advice(&r);
    mc_number_leave(before);
    if (fclose(r.out) && !status)
        status = mc_fail_memory("a report");
    if (status) {
        free(written);
        return status;
    }
    *text = written;
    return MESHCOLL_OK;
}

int meshcoll_explain(const meshcoll_t *mesh, char **text)
{
    if (!mesh || !text)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_explain: mesh or text is NULL");
    if (!mesh->explain)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_explain: this mesh records nothing: set MESHCOLL_EXPLAIN=1, or "
                       "meshcoll_params_t.explain, before it is created");
    mc_lock(mesh);
    const int status = write_report(mesh, text);
    mc_unlock(mesh);
    return status;
}

/* Appends: reports of several meshes and runs follow each other in one file. */
static int write_file(const char *path, const char *text)
{
    FILE *const file =
        mc_descriptor_stream(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), "a");
    const bool written = file && fputs(text, file) >= 0;
    if (!(file && fclose(file) == 0 && written))
        return mc_fail(MESHCOLL_ERR_IO, "%s: %s", path, strerror(errno));
    return MESHCOLL_OK;
}

void mc_explain_print(const meshcoll_t *h)
{
    char *text = NULL;
    if (meshcoll_rank(h) != 0)
        return;
    int status = write_report(h, &text);
    if (!status && h->explain->path)
        status = write_file(h->explain->path, text);
    if (status)
        mc_log(MC_LOG_WARN, "the report of MESHCOLL_EXPLAIN could not be written: %s",
               meshcoll_last_error());
    if (text && (status || !h->explain->path))
        fputs(text, stderr);
    free(text);
}
