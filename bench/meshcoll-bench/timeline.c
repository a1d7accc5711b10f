/* --timeline: records one run of each strategy and gathers the steps of all ranks on rank 0. */
#include "trace_file.h"

#include "runtime/call/request.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 10 };

/* Clocks ---------------------------------------------------------------------------------------- */

/* What to add to this rank's clock to have rank 0's, to half the time there and back. */
typedef struct {
    double offset, error;
} clock_offset_t;

static void check(int status)
{
    if (status != MESHCOLL_OK)
        die("%s", meshcoll_last_error());
}

static void answer(meshcoll_t *mesh, int rank)
{
    for (int i = 0; i < TRIES; i++) {
        check(meshcoll_recv(mesh, NULL, 0, MESHCOLL_FLOAT64, rank, 0, NULL));
        const double now = mc_now();
        check(meshcoll_send(mesh, &now, 1, MESHCOLL_FLOAT64, rank, 0));
    }
}

static clock_offset_t ask(meshcoll_t *mesh)
{
    clock_offset_t best = {0, INFINITY};
    for (int i = 0; i < TRIES; i++) {
        double there;
        const double before = mc_now();
        check(meshcoll_send(mesh, NULL, 0, MESHCOLL_FLOAT64, 0, 0));
        check(meshcoll_recv(mesh, &there, 1, MESHCOLL_FLOAT64, 0, 0, NULL));
        const double after = mc_now();
        if ((after - before) / 2 < best.error)
            best = (clock_offset_t){there - (before + after) / 2, (after - before) / 2};
    }
    /* the same machine's clock: nothing to correct, and no error */
    return fabs(best.offset) <= best.error ? (clock_offset_t){0} : best;
}

static clock_offset_t align_clocks(const bench_t *bench)
{
    clock_offset_t mine = {0};
    for (int rank = 1; rank < bench->size; rank++) {
        if (bench->rank == 0)
            answer(bench->handle, rank);
        else if (bench->rank == rank)
            mine = ask(bench->handle);
        check(meshcoll_barrier(bench->handle));
    }
    return mine;
}

/* One rank's steps ------------------------------------------------------------------------------ */

/* The phase of the segment's side whose dimensions have `level`, if it is the only one. */
static int32_t phase_of(const mc_strategy_t *strategy, uint32_t segment, int32_t level)
{
    int32_t found = -1;
    const int32_t side = (int32_t)(segment % (uint32_t)mc_strategy_sides(strategy));
    for (int32_t i = mc_side_first(strategy, side); i < mc_side_end(strategy, side); i++)
        if (mc_dims_has(strategy->phase[i].dims, level)) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

static event_t make_event(const mc_run_t *r, const mc_timeline_t *timeline, uint32_t t)
{
    const meshcoll_t *const h = r->head.mesh;
    const mc_plan_t *const plan = r->plan;
    const mc_step_t *const s = &plan->step[t];
    event_t e = {.rank = h->rank,
                 .peer = mc_run_rank_of(r, s->peer),
                 .level = -1,
                 .phase = -1,
                 .step = t,
                 .op = s->op,
                 .seq = s->seq,
                 .chunks = s->op == MC_OP_RECV ? mc_step_to(s) : mc_step_from(s),
                 .bytes = r->binding.step[t].bytes};
    e.segment = e.chunks.first % plan->n_chunks / plan->layout.per_segment;
    if (e.peer >= 0) {
        e.level = mc_mesh_level(&h->mesh, e.rank, e.peer);
        e.phase = phase_of(&r->choice.strategy, e.segment, e.level);
    }
    memcpy(e.at, timeline->step[t].at, sizeof e.at);
    return e;
}

static event_t *make_events(const mc_run_t *r, const mc_timeline_t *timeline)
{
    event_t *const event = malloc(((size_t)timeline->n_steps + 1) * sizeof *event);
    if (!event)
        die("out of memory for %u steps", timeline->n_steps);
    for (uint32_t t = 0; t < timeline->n_steps; t++)
        event[t] = make_event(r, timeline, t);
    return event;
}

static void shift(event_t *event, size_t n, double by)
{
    for (size_t i = 0; i < n; i++)
        for (int m = 0; m < MC_MOMENTS; m++)
            if (event[i].at[m] != 0)
                event[i].at[m] += by;
}

/* All ranks' steps ------------------------------------------------------------------------------ */

static int compare_steps(const void *a, const void *b)
{
    const event_t *const x = a, *const y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/* By mesh rank, which is what events have; on rank 0 the count of all. */
static size_t gather_events(const bench_t *bench, const event_t *mine, uint32_t n, event_t **all)
{
    const bool root = bench->rank == 0;
    const size_t bytes = n * sizeof *mine;
    size_t *const counts = calloc(2 * (size_t)bench->size, sizeof *counts);
    if (!counts)
        die("out of memory for the timeline");
    ranks_gather(bench, &bytes, counts, sizeof bytes);
    size_t total = 0, *const first = counts + bench->size;
    for (int r = 0; r < bench->size; r++) {
        first[r] = total;
        total += counts[r];
    }
    *all = root ? malloc(total + sizeof **all) : NULL;
    if (root && !*all)
        die("out of memory for %zu bytes of steps", total);
    check(meshcoll_gatherv(bench->handle, mine, bytes, *all, counts, first, MESHCOLL_INT8, 0));
    total /= sizeof **all;
    free(counts);
    if (root)
        qsort(*all, total, sizeof **all, compare_steps);
    return total;
}

/* Records one run, after one that does not count; the trace is whole on rank 0 only. */
static void record(const bench_t *bench, meshcoll_request_t *request, const contender_t *who,
                   trace_t *trace)
{
    mc_timeline_t timeline;
    if (mc_timeline_init(&timeline, mc_run_of(request)->plan) != MESHCOLL_OK)
        die("%s", meshcoll_last_error());
    request_run(request, who);
    const clock_offset_t clock = align_clocks(bench);
    mc_run_record(request, &timeline);
    check(meshcoll_barrier(bench->handle));
    request_run(request, who);
    mc_run_record(request, NULL);

    const double begin = -ranks_most(bench, -(timeline.started + clock.offset));
    const double end = ranks_most(bench, timeline.ended + clock.offset);
    trace->clock_error = ranks_most(bench, clock.error);
    event_t *const mine = make_events(mc_run_of(request), &timeline);
    shift(mine, timeline.n_steps, clock.offset - begin);
    trace->seconds = end - begin;
    trace->n = gather_events(bench, mine, timeline.n_steps, &trace->event);
    free(mine);
    mc_timeline_free(&timeline);
}

/* What comes out -------------------------------------------------------------------------------- */

/* FILE.json; of several strategies FILE-2-bcast-mst-box-….json. */
static void name_file(const bench_t *bench, int index, char *path, size_t capacity)
{
    mc_text_t text = mc_text(path, capacity);
    mc_text_add(&text, "%s", bench->options.timeline);
    if (bench->contenders.n > 1) {
        char name[64];
        size_t n = 0;
        for (const char *at = bench->contenders.at[index].label; *at && n < sizeof name - 1; at++)
            if (isalnum((unsigned char)*at))
                name[n++] = *at;
            else if (n > 0 && name[n - 1] != '-')
                name[n++] = '-';
        while (n > 0 && name[n - 1] == '-')
            n--;
        mc_text_add(&text, "-%d-%.*s", index + 1, (int)n, name);
    }
    mc_text_add(&text, ".json");
    if (text.length >= capacity)
        die("--timeline: the name is too long");
}

static void print_summary(const bench_t *bench, const trace_t *trace, const char *path)
{
    printf("# timeline %s\n#   %.3f ms; in the average box", trace->label, trace->seconds * 1e3);
    for (int32_t d = 0; d < bench->mesh.ndims; d++)
        printf(" %s busy %.1f %%,", bench->mesh.dim[d].name, 100 * trace->busy[d]);
    printf(" two at once %.1f %% (by box:", 100 * trace->both);
    for (int b = 0; b < trace->n_boxes; b++)
        printf(" %.1f", 100 * trace->box_both[b]);
    printf(")\n#   %s\n", path);
}

static void timeline_one(const bench_t *bench, const meta_t *meta, const view_t *view, int index)
{
    const contender_t *const who = &bench->contenders.at[index];
    meshcoll_request_t *const request = request_open(bench, view, who);
    trace_t trace = {.label = who->label,
                     .strategy = meshcoll_request_strategy(request),
                     .bytes = view->whole * meshcoll_datatype_size(bench->options.datatype)};
    record(bench, request, who, &trace);
    if (bench->rank == 0) {
        char path[4096];
        name_file(bench, index, path, sizeof path);
        trace_finish(bench, &trace);
        trace_write(bench, meta, &trace, path);
        print_summary(bench, &trace, path);
        fflush(stdout);
    }
    trace_free(&trace);
    meshcoll_free(request);
}

void timeline_all(bench_t *bench, const meta_t *meta)
{
    const options_t *const o = &bench->options;
    const size_t whole = o->timeline_bytes ? data_whole(bench, o->timeline_bytes) : bench->whole;
    if (whole == 0) /* nothing was measured */
        return;
    const view_t view = data_view(bench, whole);
    data_clear(bench, &view);
    for (int i = 0; i < bench->contenders.n; i++)
        if (bench->contenders.at[i].kind != MPI_OWN)
            timeline_one(bench, meta, &view, i);
    if (bench->rank == 0)
        printf("# draw one with meshcoll trace --timeline FILE.json --svg FILE.svg\n");
}
