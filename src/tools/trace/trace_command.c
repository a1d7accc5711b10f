#include "tools/trace/trace.h"

#include "plan/explain.h"
#include "tools/common/show.h"
#include "tools/common/strategy_request.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LABEL_GAP = 2, CELL_GAP = 1, COLUMN_GAP = 3, MOST_CELLS = 4096, PIPE_WIDTH = 120 };

typedef struct {
    mc_request_t call;
    int32_t width; /* 0: the terminal's */
    const char *svg, *ranks, *timeline, *during;
    bool messages, explain, json;
} request_t;

static int terminal_width(void)
{
    struct winsize size;
    const char *const columns = getenv("COLUMNS");
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const int width = columns ? atoi(columns) : 0;
    return width > 0 ? width : PIPE_WIDTH;
}

/* A state as a column of the page: its title, then a row for each rank. */
typedef struct {
    uint32_t state;
    int *cell; /* by chunk: of its longest text */
    int width;
} column_t;

static int put_title(uint32_t state, char title[32])
{
    return snprintf(title, 32, state ? "step %u" : "start", state - 1);
}

static void measure(const mc_trace_t *trace, column_t *column)
{
    char *const *const cell = trace->state[column->state].cell;
    const uint32_t n = trace->n_chunks;
    char title[32];
    int rows = -CELL_GAP;
    for (size_t i = 0; i < (size_t)trace->n_ranks * n; i++) {
        const int width = (int)strlen(cell[i]);
        column->cell[i % n] = width > column->cell[i % n] ? width : column->cell[i % n];
    }
    for (uint32_t c = 0; c < n; c++)
        rows += column->cell[c] + CELL_GAP;
    column->width = put_title(column->state, title);
    column->width = rows > column->width ? rows : column->width;
}

/* `pad`: behind the column. */
static void print_row(const mc_trace_t *trace, const column_t *column, int32_t rank, int pad)
{
    char *const *const cell = &trace->state[column->state].cell[(size_t)rank * trace->n_chunks];
    int left = column->width;
    for (uint32_t c = 0; c + 1 < trace->n_chunks; c++)
        left -= printf("%-*s", column->cell[c] + CELL_GAP, cell[c]);
    printf("%-*s", pad ? left + pad : 0, cell[trace->n_chunks - 1]);
}

static int label_width(const mc_trace_t *trace)
{
    return snprintf(NULL, 0, "rank %d", trace->n_ranks - 1) + LABEL_GAP;
}

static void print_columns(const mc_trace_t *trace, const column_t *column, uint32_t n)
{
    char title[32];
    printf("\n%*s", label_width(trace), "");
    for (uint32_t s = 0; s < n; s++) {
        put_title(column[s].state, title);
        printf("%-*s", s + 1 < n ? column[s].width + COLUMN_GAP : 0, title);
    }
    for (int32_t r = 0; r < trace->n_ranks; r++) {
        snprintf(title, sizeof title, "rank %d", r);
        printf("\n%-*s", label_width(trace), title);
        for (uint32_t s = 0; s < n; s++)
            print_row(trace, &column[s], r, s + 1 < n ? COLUMN_GAP : 0);
    }
    putchar('\n');
}

/* Prints as many states beside each other as fit. */
static int print_states(const mc_trace_t *trace, int width)
{
    mc_arena_t arena = {0};
    const uint32_t n = trace->n_states;
    column_t *const column = mc_arena_take(&arena, n, sizeof *column);
    for (uint32_t s = 0; s < n && !arena.failed; s++) {
        column[s].state = s;
        column[s].cell = mc_arena_take(&arena, trace->n_chunks, sizeof *column->cell);
        if (!arena.failed)
            measure(trace, &column[s]);
    }
    const int status = arena.failed ? mc_fail_memory("a trace") : MESHCOLL_OK;
    for (uint32_t first = 0, end; first < n && !status; first = end) {
        int used = label_width(trace) + column[first].width;
        for (end = first + 1; end < n && used + COLUMN_GAP + column[end].width <= width; end++)
            used += COLUMN_GAP + column[end].width;
        print_columns(trace, &column[first], end - first);
    }
    mc_arena_free(&arena);
    return status;
}

/* "a", "a..d" or "a, c": the chunks of a message. */
static void add_chunks(const mc_trace_t *trace, mc_range_t range, mc_text_t *text)
{
    char name[MC_CHUNK_TEXT];
    for (uint32_t i = 0; i < mc_range_runs(range); i++) {
        const mc_chunks_t run = mc_range_run(range, i);
        const uint32_t first = run.first % trace->n_chunks;
        mc_text_add(text, "%s%s", i > 0 ? "," : "", mc_chunk_name(first, name));
        if (run.n > 1)
            mc_text_add(text, "..%s", mc_chunk_name(first + run.n - 1, name));
    }
}

static void print_messages(const mc_trace_t *trace)
{
    char chunks[256];
    printf("\nmessages, from rank > to rank: chunks\n");
    for (uint32_t s = 1; s < trace->n_states; s++) {
        printf("step %u ", s - 1);
        for (uint32_t i = 0; i < trace->state[s].n_messages; i++) {
            const mc_trace_message_t *const m = &trace->state[s].message[i];
            mc_text_t text = mc_text(chunks, sizeof chunks);
            add_chunks(trace, m->chunks, &text);
            printf("  %d>%d: %s", m->from, m->to, chunks);
        }
        putchar('\n');
    }
}

/* Does chunk k of each segment belong to rank k? */
static bool in_rank_order(const mc_layout_t *layout)
{
    for (uint32_t c = 0; c < layout->sides * layout->per_segment; c++)
        if (mc_layout_rank(layout, c) != (int32_t)(c % layout->per_segment))
            return false;
    return true;
}

static void print_homes(const mc_layout_t *layout)
{
    char name[MC_CHUNK_TEXT];
    if (layout->per_segment != (uint32_t)layout->mesh.size || in_rank_order(layout))
        return;
    const uint32_t shown =
        layout->sides * layout->per_segment; /* further segments have the same homes */
    printf("chunks and the ranks they are at home on:");
    for (uint32_t c = 0; c < shown; c++)
        printf(" %s %d%s", mc_chunk_name(c, name), mc_layout_rank(layout, c),
               c + 1 < shown ? "," : "\n");
}

static void print_head(const request_t *r, const mc_trace_t *trace)
{
    printf("%s: %s\n", mc_show_call(r->call.collective, &r->call.mesh, r->call.root),
           mc_show_strategy(&r->call.strategy, &r->call.mesh));
    printf("rows are ranks, columns chunks; %s; %u time steps\n",
           mc_moves[r->call.collective].reduces ? "a1a0 is chunk a summed over ranks 1 and 0"
                                                : "a0 is chunk a of rank 0",
           trace->n_states - 1);
}

/* `last`: that of the state before, whose texts it shares; NULL: there is none. */
static json_t *json_state(const mc_trace_t *trace, uint32_t state, const json_t *last)
{
    json_t *const rows = json_array();
    for (int32_t r = 0; r < trace->n_ranks; r++) {
        json_t *const row = json_array();
        char *const *const cell = &trace->state[state].cell[(size_t)r * trace->n_chunks];
        for (uint32_t c = 0; c < trace->n_chunks; c++)
            if (last && cell[c] == trace->state[state - 1].cell[(size_t)r * trace->n_chunks + c])
                json_array_append(row, json_array_get(json_array_get(last, (size_t)r), c));
            else
                json_array_append_new(row, json_string(cell[c]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *json_messages(const mc_trace_t *trace, const mc_trace_state_t *state)
{
    char chunks[256];
    json_t *const list = json_array();
    for (uint32_t i = 0; i < state->n_messages; i++) {
        const mc_trace_message_t *const m = &state->message[i];
        mc_text_t text = mc_text(chunks, sizeof chunks);
        add_chunks(trace, m->chunks, &text);
        json_array_append_new(list,
                              json_pack("{s:i, s:i, s:i, s:s}", "from", (int)m->from, "to",
                                        (int)m->to, "phase", (int)m->phase, "chunks", chunks));
    }
    return list;
}

static json_t *json_head(const request_t *r)
{
    json_t *const json = mc_json_call("trace", r->call.collective, &r->call.mesh, r->call.root);
    json_object_set_new(json, "strategy",
                        json_string(mc_show_strategy(&r->call.strategy, &r->call.mesh)));
    return json;
}

static int print_json(const request_t *r, const mc_trace_t *trace)
{
    json_t *const json = json_head(r), *const steps = json_array();
    json_t *state = json_state(trace, 0, NULL);
    json_object_set_new(json, "start", state);
    for (uint32_t s = 1; s < trace->n_states; s++) {
        state = json_state(trace, s, state);
        json_array_append_new(steps,
                              json_pack("{s:i, s:o, s:o}", "step", (int)s - 1, "messages",
                                        json_messages(trace, &trace->state[s]), "state", state));
    }
    json_object_set_new(json, "steps", steps);
    return mc_json_print(json);
}

/* Costs are those of the textbook, with a port for each rank. */
static int draw(const request_t *r, const mc_trace_t *trace)
{
    mc_picture_t picture = {.trace = trace,
                            .mesh = &r->call.mesh,
                            .strategy = &r->call.strategy,
                            .root = r->call.root,
                            .sums = mc_moves[r->call.collective].reduces};
    const int status = mc_links_parse("uniform", &r->call.mesh, &picture.links);
    return status ? status : mc_trace_draw(&picture, r->svg);
}

static int show_text(const request_t *r, const mc_trace_t *trace, const mc_layout_t *layout)
{
    print_head(r, trace);
    print_homes(layout);
    const int status = print_states(trace, r->width ? r->width : terminal_width());
    if (!status && r->messages)
        print_messages(trace);
    return status;
}

static int show(const request_t *r, const mc_plans_t *plans)
{
    const mc_world_t world = mc_plans_world(plans);
    mc_trace_t trace;
    int status = mc_trace_create(&world, &trace);
    if (status)
        return status;
    if (r->svg)
        status = draw(r, &trace);
    if (!status && r->json)
        status = print_json(r, &trace);
    else if (!status && r->svg)
        printf("drawn in %s\n", r->svg);
    else if (!status)
        status = show_text(r, &trace, &plans->plan[0]->layout);
    mc_arena_free(&trace.arena);
    return status;
}

static int trace(const request_t *r)
{
    mc_layout_t layout;
    mc_plans_t plans;
    int status = mc_strategy_layout(&r->call.strategy, &r->call.mesh, &layout);
    if (status)
        return status;
    const uint64_t cells = (uint64_t)mc_layout_chunks(&layout) * (uint64_t)r->call.mesh.size;
    if (cells > MOST_CELLS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%d ranks with %u chunks each are too many to show, %d in all fit; take a "
                       "smaller mesh or fewer segments, or --explain --rank N",
                       r->call.mesh.size, mc_layout_chunks(&layout), MOST_CELLS);
    status = mc_plans_create(&r->call.strategy, &r->call.mesh, r->call.root, &plans);
    if (status)
        return status;
    status = show(r, &plans);
    mc_plans_free(&plans);
    return status;
}

static json_t *json_plan(const mc_plan_t *plan)
{
    char line[512];
    json_t *const steps = json_array();
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        mc_text_t text = mc_text(line, sizeof line);
        mc_explain_brief(&plan->step[i], &text);
        json_array_append_new(steps, json_string(line));
    }
    return json_pack("{s:i, s:i, s:o}", "rank", (int)plan->rank, "chunks", (int)plan->n_chunks,
                     "steps", steps);
}

/* Rank by rank, so that only one plan is in memory. */
static int explain(const request_t *r)
{
    json_t *const plans = json_array(), *json = NULL;
    bool *chosen = NULL, first = true;
    int status = mc_read_ranks(r->ranks, r->call.mesh.size, &chosen);
    for (int32_t rank = 0; rank < r->call.mesh.size && !status; rank++) {
        mc_plan_t *plan = NULL;
        if (!chosen[rank])
            continue;
        status = mc_strategy_plan(&r->call.strategy, &r->call.mesh, rank, r->call.root, &plan);
        if (!status && r->json)
            json_array_append_new(plans, json_plan(plan));
        else if (!status) {
            fputs(first ? "" : "\n", stdout);
            status = mc_explain_plan(plan, stdout);
        }
        first = false;
        mc_plan_free(plan);
    }
    free(chosen);
    if (!status && r->json)
        json = json_head(r);
    json_object_set_new(json, "plans", plans);
    return json ? mc_json_print(json) : status;
}

/* What the command line gives; a process runs one command. */
static struct {
    mc_request_text_t text;
    request_t request;
} given;

static int check_request(const request_t *r)
{
    if (r->ranks && !r->explain)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--rank goes with --explain or --timeline");
    if (r->during)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--during goes with --timeline");
    if (r->svg && r->explain)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--svg goes without --explain");
    return MESHCOLL_OK;
}

static int read_request(request_t *r)
{
    const bool best = given.text.strategy && strcmp(given.text.strategy, "best") == 0;
    const bool for_best = r->call.bytes > 0 || given.text.links;
    int status = mc_request_read(&given.text, &r->call);
    if (!status && !given.text.strategy)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "--strategy is missing; expected a text, a name (see meshcoll list "
                         "strategies), or best");
    if (!status && for_best && !best)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "--bytes and --links go with --strategy best: others are the same at "
                         "every size, on all links");
    if (status)
        return status;
    if (best)
        given.text.strategy = NULL;
    if (r->call.bytes == 0)
        r->call.bytes = 1 << 20;
    status = mc_request_choose(&given.text, &r->call);
    if (!status && best) /* each segment takes the same way */
        r->call.strategy.segments = (uint32_t)mc_strategy_sides(&r->call.strategy);
    return status ? status : check_request(r);
}

static const mc_option_t options[] = {
    MC_OPTION_TEXT("mesh", "MESH", "ranks by dimension, outermost first: box=2,gpu=4, or box=4+3",
                   &given.text.mesh),
    MC_OPTION_TEXT("strategy", "STRATEGY",
                   "its text, a name from meshcoll list strategies, or best: what plan puts first",
                   &given.text.strategy),
    {.name = "bytes",
     .value = "SIZE",
     .help = "of the vector that best is for: 1M; shown in one segment",
     .bytes = &given.request.call.bytes},
    MC_OPTION_TEXT("links", "LINKS", "that best is for; see meshcoll list links",
                   &given.text.links),
    MC_OPTION_TEXT("root", "RANK", "root of bcast, reduce, scatter, gather: 0", &given.text.root),
    MC_OPTION_FLAG("messages", "also who sends what to whom in each time step",
                   &given.request.messages),
    MC_OPTION_NUMBER("width", "COLUMNS", "of the page: the terminal's, else 120",
                     &given.request.width, 20, 1000000),
    MC_OPTION_FLAG("explain", "each rank's steps and what they wait for, instead of states",
                   &given.request.explain),
    MC_OPTION_TEXT("rank", "RANKS", "explain or draw these only: 3, or 0-3,8",
                   &given.request.ranks),
    MC_OPTION_TEXT("svg", "FILE",
                   "draw the messages of each phase on the mesh there, instead of states",
                   &given.request.svg),
    MC_OPTION_TEXT("timeline", "FILE",
                   "what --svg draws: a run that meshcoll-bench --timeline recorded",
                   &given.request.timeline),
    MC_OPTION_TEXT("during", "FROM-TO", "draw this part of its time: 60ms-120ms",
                   &given.request.during),
    MC_OPTION_FLAG("json", "as JSON", &given.request.json),
    {0},
};

static int draw_timeline(const request_t *r)
{
    const mc_request_text_t *const t = &given.text;
    if (!r->svg || t->collective || t->mesh || t->strategy || t->links || t->root ||
        r->call.bytes || r->width || r->explain || r->messages || r->json)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--timeline takes a run's file, --svg where to draw it, and perhaps --rank "
                       "and --during; nothing else goes with it");
    const int status = mc_trace_timeline(r->timeline, r->ranks, r->during, r->svg);
    if (!status)
        printf("drawn in %s\n", r->svg);
    return status;
}

static int run(void)
{
    if (given.request.timeline)
        return draw_timeline(&given.request);
    const int status = read_request(&given.request);
    return status ? status : (given.request.explain ? explain : trace)(&given.request);
}

const mc_command_t mc_trace_command = {
    .name = "trace",
    .summary = "what every rank has after each step of a strategy",
    .usage =
        "  meshcoll trace COLLECTIVE --mesh MESH --strategy STRATEGY [--root RANK] [--messages]\n"
        "  meshcoll trace COLLECTIVE --mesh MESH --strategy STRATEGY --svg FILE\n"
        "  meshcoll trace COLLECTIVE --mesh MESH --strategy STRATEGY --explain [--rank RANKS]\n"
        "  meshcoll trace --timeline FILE --svg FILE [--rank RANKS] [--during FROM-TO]\n",
    .about =
        "Shows what every rank has after each time step, computed from the plans that would run.\n"
        "A row is a rank, a column a chunk of the vector: a, b, c, … \"a1a0\" is chunk a with the\n"
        "contributions of ranks 1 and 0 added up, in this order; \"-\" is a chunk the rank does "
        "not\n"
        "have. In a time step a rank sends at most one message and receives at most one. --svg\n"
        "draws the messages on the mesh. --timeline draws a run that meshcoll-bench recorded "
        "instead.\n",
    .examples =
        "  meshcoll trace allreduce --mesh x=4 --strategy \"allreduce:ring(x)\"\n"
        "  meshcoll trace bcast --mesh box=2,gpu=4 --strategy option3 --root 5 --messages\n"
        "  meshcoll trace bcast --mesh box=2,gpu=4 --strategy best --bytes 8M --links lab\n"
        "  meshcoll trace reduce_scatter --mesh x=5 --strategy reduce_scatter:ring --width 80\n"
        "  meshcoll trace allreduce --mesh box=2,gpu=2 --strategy hierarchical --explain --rank 3\n"
        "  meshcoll trace bcast --mesh box=4,gpu=4 --strategy option2 --svg option2.svg\n"
        "  meshcoll trace --timeline run.json --svg run.svg --rank 0-7 --during 60ms-120ms\n",
    .options = options,
    .arguments = {.text = &given.text.collective},
    .run = run,
};
