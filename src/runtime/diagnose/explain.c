/* Explain: its setting, and the samples of each run. */
#include "runtime/diagnose/explain.h"

#include "mesh/link/link_text.h"
#include "runtime/call/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The setting ------------------------------------------------------------------------------------ */

enum { FACTOR = 2 };

static int parse_factor(mc_word_t number, double *factor)
{
    const mc_word_t given = number;
    double value;
    if (!mc_read_number(&number, &value) || number.n > 0 || !(value > 1))
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "MESHCOLL_EXPLAIN: expected a number above 1 after factor:, got \"%.*s\"",
                       (int)given.n, given.at);
    *factor = value;
    return MESHCOLL_OK;
}

/* Reads words separated by commas; anything else is a path, to the end of the text. */
static int parse(const char *text, mc_explain_t *e, bool *on)
{
    mc_word_t rest = mc_word_of(text);
    int status = MESHCOLL_OK;
    *on = true;
    while (!status && rest.n > 0 && !e->path) {
        const char *const path = rest.at;
        mc_word_t value = mc_word_cut(&rest, ',');
        const mc_word_t whole = value, name = mc_word_cut(&value, ':');
        if (mc_word_is(whole, "0") || mc_word_is(whole, "off"))
            *on = false;
        else if (mc_word_is(name, "factor") && name.n < whole.n)
            status = parse_factor(value, &e->factor);
        else if (!mc_word_is(whole, "1") && !mc_word_is(whole, "stderr") && whole.n > 0)
            status = (e->path = strdup(path)) ? MESHCOLL_OK : mc_fail_memory("a path");
    }
    return status;
}

static int copy(const char *text, char **copied)
{
    *copied = text ? strdup(text) : NULL;
    return text && !*copied ? mc_fail_memory("a text") : MESHCOLL_OK;
}

static int set_links(mc_explain_t *e, const char *links, const char *from)
{
    char *text = NULL, *source = NULL;
    int status = copy(links, &text);
    if (!status)
        status = copy(from, &source);
    if (status) {
        free(text);
        return status;
    }
    free(e->links);
    free(e->links_from);
    e->links = text;
    e->links_from = source;
    return MESHCOLL_OK;
}

int mc_explain_create(const mc_settings_t *settings, mc_explain_t **explain)
{
    bool on = false;
    if (!settings->explain)
        return MESHCOLL_OK;
    mc_explain_t *const e = calloc(1, sizeof *e);
    if (!e)
        return mc_fail_memory("the records of MESHCOLL_EXPLAIN");
    e->factor = FACTOR;
    int status = parse(settings->explain, e, &on);
    if (!status)
        status = set_links(e, settings->links, settings->links_from);
    if (status || !on)
        mc_explain_destroy(e);
    else
        *explain = e;
    return status;
}

void mc_explain_destroy(mc_explain_t *e)
{
    if (!e)
        return;
    for (uint32_t i = 0; i < e->n_calls; i++)
        free(e->call[i]);
    free(e->call);
    free(e->links_from);
    free(e->links);
    free(e->path);
    free(e);
}

int mc_explain_links(const meshcoll_t *h, const char *links, const char *from)
{
    return h->explain ? set_links(h->explain, links, from) : MESHCOLL_OK;
}

/* Calls ------------------------------------------------------------------------------------------ */

static mc_chooser_t chooser_of(const meshcoll_t *h, const meshcoll_args_t *a)
{
    if (a->in == &h->calls.arrived)
        return MC_BY_BARRIER;
    if (a->strategy)
        return MC_BY_CALL;
    if (a->counts_at_root || (a->in_counts && !h->choice.is_forced[a->collective]))
        return MC_BY_COUNTS;
    if (!h->choice.is_forced[a->collective])
        return MC_BY_PLANNER;
    return h->choice.by_environment[a->collective] ? MC_BY_ENVIRONMENT : MC_BY_MESH;
}

/* Of checked arguments. */
static mc_record_t head_of(const meshcoll_t *h, const meshcoll_args_t *a,
                           const mc_strategy_t *strategy)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    const mc_numbering_t *const aligned = mc_args_aligned(h, a);
    return (mc_record_t){.collective = a->collective,
                         .root = a->root,
                         .bytes = mc_args_bytes(h, a),
                         .strategy = *strategy,
                         .chooser = chooser_of(h, a),
                         .in_order = move->reduces && !aligned && !mc_op_commutes(a->op),
                         .aligned = aligned};
}

static bool same_gpu(const mc_on_gpu_t *a, const mc_on_gpu_t *b)
{
    return a->blocks == b->blocks && a->tracks == b->tracks && a->slots == b->slots &&
           a->slot_bytes == b->slot_bytes && a->passes == b->passes && a->sent == b->sent &&
           a->direct == b->direct && a->by_gpu == b->by_gpu && a->by_host == b->by_host &&
           a->why_host == b->why_host;
}

static bool same_call(const mc_record_t *a, const mc_record_t *b)
{
    return a->collective == b->collective && a->root == b->root && a->bytes == b->bytes &&
           a->chooser == b->chooser && a->in_order == b->in_order && a->aligned == b->aligned &&
           same_gpu(&a->gpu, &b->gpu) && mc_strategy_equal(&a->strategy, &b->strategy);
}

static int add_call(mc_explain_t *e, const mc_record_t *head, mc_record_t **call)
{
    const size_t samples = (size_t)MC_EXPLAINED_RUNS * mc_call_width(head);
    mc_record_t **const grown = mc_grown(e->call, e->n_calls, &e->capacity, sizeof *grown);
    if (!grown)
        return mc_fail_memory("the list of calls");
    e->call = grown;
    mc_record_t *const fresh = calloc(1, sizeof *fresh + samples * sizeof(double));
    if (!fresh)
        return mc_fail_memory("the times of a call");
    *fresh = *head;
    e->call[e->n_calls++] = fresh;
    *call = fresh;
    return MESHCOLL_OK;
}

/* *call is NULL where there are too many. */
static int find_call(mc_explain_t *e, const mc_record_t *head, mc_record_t **call)
{
    *call = NULL;
    for (uint32_t i = e->n_calls; i-- > 0;)
        if (same_call(e->call[i], head)) {
            *call = e->call[i];
            return MESHCOLL_OK;
        }
    return e->n_calls < MC_EXPLAINED_CALLS ? add_call(e, head, call) : MESHCOLL_OK;
}

int mc_explain_bound(mc_run_t *r, const meshcoll_args_t *args)
{
    const mc_record_t head = head_of(r->head.mesh, args, &r->choice.strategy);
    return find_call(r->head.mesh->explain, &head, &((mc_watch_t *)r->watch)->call);
}

int mc_explain_on_gpu(meshcoll_t *h, const meshcoll_args_t *args, const mc_strategy_t *strategy,
                      const mc_on_gpu_t *gpu, mc_record_t **call)
{
    mc_record_t head = head_of(h, args, strategy);
    head.gpu = *gpu;
    return find_call(h->explain, &head, call);
}

int mc_explain_made(mc_run_t *r)
{
    mc_watch_t *const watch = calloc(1, sizeof *watch);
    if (!watch)
        return mc_fail_memory("a timeline");
    const int status = mc_timeline_init(&watch->timeline, r->plan);
    if (status) {
        free(watch);
        return status;
    }
    r->watch = watch;
    r->executor.timeline = &watch->timeline;
    return MESHCOLL_OK;
}

void mc_explain_freed(mc_run_t *r)
{
    mc_watch_t *const watch = r->watch;
    r->watch = NULL;
    r->executor.timeline = NULL;
    mc_timeline_free(&watch->timeline);
    free(watch);
}

/* Runs ------------------------------------------------------------------------------------------- */

/* Returns when a step began. Moments that a step does not have are 0; the next best one is used
 * then. */
static double begin_of(const mc_step_t *s, const double *at, double earlier)
{
    const double ready = at[MC_READY];
    if (mc_op_receives((mc_op_t)s->op)) {
        const double posted = at[MC_POSTED] > 0 ? at[MC_POSTED] : ready;
        return posted > earlier ? posted : earlier;
    }
    const double begun = at[mc_op_sends((mc_op_t)s->op) ? MC_POSTED : MC_BEGUN];
    return begun > 0 ? begun : ready;
}

void mc_explain_phases(const mc_plan_t *plan, const mc_timeline_t *timeline, int32_t n_phases,
                       double *seconds)
{
    double begin[MC_MAX_SIDES * MC_MAX_PHASES] = {0}, end[MC_MAX_SIDES * MC_MAX_PHASES] = {0};
    double earlier = timeline->started, latest = timeline->started, last = timeline->started;
    int32_t phase = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        const double *const at = timeline->step[i].at;
        if (s->phase >= n_phases)
            continue;
        if (s->phase < phase) /* the next segment */
            latest = timeline->started;
        if (s->phase != phase)
            earlier = latest;
        phase = s->phase;
        const double from = begin_of(s, at, earlier);
        if (end[phase] == 0 || from < begin[phase])
            begin[phase] = from;
        if (at[MC_ENDED] > end[phase])
            end[phase] = at[MC_ENDED];
        latest = at[MC_ENDED] > latest ? at[MC_ENDED] : latest;
        last = latest > last ? latest : last;
    }
    for (int32_t i = 0; i < n_phases; i++)
        seconds[i] = end[i] > 0 && end[i] > begin[i] ? end[i] - begin[i] : 0;
    seconds[n_phases] = timeline->ended - last;
}

/* Stores a run's time; returns where those of its phases belong. */
static double *add_run(mc_record_t *call, double seconds)
{
    double *const sample =
        call->sample + call->n_runs % MC_EXPLAINED_RUNS * (size_t)mc_call_width(call);
    sample[0] = seconds;
    call->least = call->n_runs == 0 || seconds < call->least ? seconds : call->least;
    call->total += seconds;
    call->n_runs++;
    return sample + 1;
}

void mc_explain_ran(mc_run_t *r)
{
    mc_record_t *const call = ((const mc_watch_t *)r->watch)->call;
    /* the timeline of a benchmark, where it records the request too */
    const mc_timeline_t *const timeline = r->executor.timeline;
    if (!call) {
        r->head.mesh->explain->n_left_out++;
        return;
    }
    double *const phases = add_run(call, timeline->ended - timeline->started);
    mc_explain_phases(r->plan, timeline, call->strategy.n_phases, phases);
}

void mc_explain_took(const meshcoll_t *h, mc_record_t *call, double seconds)
{
    if (!call)
        h->explain->n_left_out++;
    else if (seconds < 0)
        call->n_untimed++;
    else
        (void)add_run(call, seconds);
}
