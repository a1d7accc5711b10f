#include "mesh/link/link_text.h"
#include "simulate/simulate.h"
#include "tools/common/show.h"
#include "tools/common/strategy_request.h"
#include "tools/simulate/motion.h"
#include "tools/simulate/step_command.h"

#include <stdlib.h>
#include <string.h>

/* What the command line gives; a process runs one command. */
static struct {
    mc_request_text_t text;
    const char *bytes, *network, *order, *trace, *svg, *step;
    mc_texts_t late, slow;
    int32_t top;
    bool whole, json;
    mc_request_t call;
    mc_between_t between;
    mc_simulation_t query;
    int32_t *place;
    int64_t *delay;
    mc_slow_t *slowed;
    mc_output_t traced;
    bool follows; /* a message is in the trace already */
    mc_motion_t motion;
} given;

/* A strategy, its price, and what the simulation says. */
typedef struct {
    mc_strategy_t strategy;
    double price;
    mc_simulated_t simulated;
} run_t;

static double seconds_of(const run_t *run)
{
    return (double)run->simulated.ps / 1e12;
}

/* "5:1ms": rank 5 starts 1 ms later. */
static int read_late(const char *text, int32_t n)
{
    mc_word_t rest = mc_word_of(text);
    mc_word_t rank = mc_word_cut(&rest, ':');
    double number, seconds;
    if (!mc_read_number(&rank, &number) || rank.n > 0 || number >= n || number != (int32_t)number ||
        !mc_link_times.read(rest, &seconds) || seconds > 1e6)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--late takes a rank below %d and its delay, as in 5:1ms; got '%s'", n,
                       text);
    if (given.delay[(int32_t)number] > 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "rank %d is late twice", (int)number);
    given.delay[(int32_t)number] = (int64_t)(seconds * 1e12 + 0.5);
    return MESHCOLL_OK;
}

static int read_all_late(int32_t n)
{
    int status = MESHCOLL_OK;
    given.delay = calloc((size_t)n, sizeof *given.delay);
    if (!given.delay)
        return mc_fail_memory("the delays of ranks");
    for (uint32_t i = 0; i < given.late.n && !status; i++)
        status = read_late(given.late.at[i], n);
    given.query.late = given.delay;
    return status;
}

/* "leaf0.0 up1:4": messages on that link take 4 times as long. */
static int read_slow(char *text, mc_slow_t *slow)
{
    char *const colon = strrchr(text, ':');
    mc_word_t factor = mc_word_of(colon ? colon + 1 : "");
    if (!mc_read_number(&factor, &slow->factor) || factor.n > 0 || slow->factor < 1)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "--slow takes a link and a factor of at least 1, as in \"leaf0.0 up1:4\"; got '%s'",
            text);
    *colon = '\0';
    slow->link = text;
    for (const mc_slow_t *other = given.slowed; other < slow; other++)
        if (strcmp(other->link, text) == 0)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "the link '%s' is slow twice", text);
    return MESHCOLL_OK;
}

static int read_all_slow(void)
{
    int status = MESHCOLL_OK;
    given.slowed = calloc(given.slow.n, sizeof *given.slowed);
    if (!given.slowed)
        return mc_fail_memory("the slow links");
    for (uint32_t i = 0; i < given.slow.n && !status; i++)
        status = read_slow((char *)given.slow.at[i], &given.slowed[i]);
    given.query.slow = given.slowed;
    given.query.n_slow = given.slow.n;
    return status;
}

static int read_request(void)
{
    mc_simulation_t *const q = &given.query;
    int status = mc_request_read(&given.text, &given.call);
    if (!status && (given.bytes || !given.step))
        status = mc_read_bytes("--bytes", given.bytes, &given.call.bytes);
    if (!status && given.order)
        status = mc_read_order(given.order, given.call.mesh.size, &given.place);
    q->order = given.place;
    if (!status)
        status = mc_between_open(given.network, &given.call.mesh, q->order, &given.call.links,
                                 &given.between);
    q->network = given.between.fitted;
    if (!status && given.late.n > 0)
        status = read_all_late(given.call.mesh.size);
    if (!status && given.slow.n > 0)
        status = read_all_slow();
    if (!status && given.text.strategy && given.top)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG, "--top goes without --strategy");
    if (!status && given.svg && given.top > 1)
        status = mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "--svg goes without --top: it draws the cheapest strategy, or that of --strategy");
    if (!status && given.step &&
        (given.bytes || given.top || given.late.n > 0 || given.trace || given.svg ||
         given.call.collective == MESHCOLL_ALLTOALL))
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "--step goes without --bytes, --top, --late, --trace and --svg, and not "
                         "with alltoall");
    q->mesh = &given.call.mesh;
    q->links = &given.call.links;
    q->root = given.call.root;
    q->bytes = (double)given.call.bytes;
    q->whole = given.whole || given.trace || (given.svg && mc_motion_moves(&given.call.mesh));
    return status;
}

/* The strategy asked for, or the cheapest ones. */
static int choose(run_t **runs, uint32_t *n)
{
    const uint32_t most = given.top ? (uint32_t)given.top : 1;
    mc_ranking_t ranking = {0};
    run_t *const all = calloc(most, sizeof *all);
    if (!all)
        return mc_fail_memory("the simulations");
    *runs = all;
    *n = 1;
    int status = given.top ? mc_request_rank(&given.call, most, &ranking)
                           : mc_request_choose(&given.text, &given.call);
    all->strategy = given.call.strategy;
    for (uint32_t i = 0; i < ranking.n && i < most && !status; i++) {
        all[i].strategy = ranking.list[i].strategy;
        *n = i + 1;
    }
    free(ranking.list);
    for (uint32_t i = 0; i < *n && !status; i++)
        all[i].price = mc_strategy_seconds(&all[i].strategy, &given.call.mesh, &given.call.links,
                                           given.query.root, (double)given.call.bytes);
    return status;
}

/* Chrome's trace events: a row for each sender, a box a message. */
static void trace_message(FILE *out, const mc_sent_t *m)
{
    char line[256];
    mc_number_print(line, sizeof line,
                    "%s\n{\"name\":\"%d to %d\",\"cat\":\"phase "
                    "%d\",\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"ts\":%.6f,\"dur\":%.6f,"
                    "\"args\":{\"bytes\":%.0f}}",
                    given.follows ? "," : "", m->from, m->to, m->phase, m->from,
                    (double)m->start / 1e6, (double)(m->arrival - m->start) / 1e6, m->bytes);
    fputs(line, out);
    given.follows = true;
}

static void record(void *motion, const mc_sent_t *m)
{
    if (given.trace)
        trace_message(given.traced.stream, m);
    if (given.svg)
        mc_motion_sent(motion, m);
}

static int simulate(run_t *run)
{
    given.query.strategy = &run->strategy;
    return mc_simulate(&given.query, &run->simulated);
}

static int draw(const run_t *run, double bound)
{
    char line[512];
    mc_text_t text = mc_text(line, sizeof line);
    mc_text_add(&text, "%s", mc_print_seconds(seconds_of(run)).text);
    if (bound > 0)
        mc_text_add(&text, ", %.2f times the bound of %s", seconds_of(run) / bound,
                    mc_print_seconds(bound).text);
    mc_text_add(&text, "; links %s", given.text.links);
    if (given.network)
        mc_text_add(&text, "; network %s", mc_show_network(given.query.network));
    return mc_motion_draw(&given.motion, &run->simulated, bound, line, given.svg);
}

/* What is recorded is of this run. */
static int simulate_recorded(run_t *run)
{
    int status = given.trace ? mc_output_open(given.trace, &given.traced) : MESHCOLL_OK;
    if (status)
        return status;
    if (given.trace)
        fprintf(given.traced.stream, "{\"traceEvents\":[");
    given.query.record = record;
    given.query.load = given.svg ? mc_motion_load : NULL;
    given.query.context = &given.motion;
    given.motion.q = &given.query;
    status = simulate(run);
    given.query.record = NULL;
    given.query.load = NULL;
    if (!given.trace)
        return status;
    fprintf(given.traced.stream, "\n]}\n");
    return mc_output_close(&given.traced, status);
}

/* Output ------------------------------------------------------------------------------------------ */

static int print_runs(const run_t *runs, uint32_t n, double bound)
{
    mc_table_t table = mc_table("rrrrl");
    mc_table_add(&table, "simulated\tprice\t/ price\t/ bound\tstrategy");
    for (uint32_t i = 0; i < n; i++) {
        const double seconds = seconds_of(&runs[i]);
        mc_table_add(&table, "%s\t%s\t%.2f\t%.2f\t%s", mc_print_seconds(seconds).text,
                     mc_print_seconds(runs[i].price).text,
                     runs[i].price > 0 ? seconds / runs[i].price : 1.0,
                     bound > 0 ? seconds / bound : 1.0,
                     mc_show_strategy(&runs[i].strategy, &given.call.mesh));
    }
    return mc_table_print(&table, 2, stdout);
}

static int print_phases(const run_t *run)
{
    mc_table_t table = mc_table("lrrr");
    mc_table_add(&table, "phase\tbegins\tends\tspan");
    for (int32_t i = 0; i < run->strategy.n_phases; i++) {
        const double first = (double)run->simulated.phase[i].first / 1e12,
                     last = (double)run->simulated.phase[i].last / 1e12;
        if (first > last)
            continue;
        mc_table_add(&table, "%s\t%s\t%s\t%s", mc_show_phase(&run->strategy, &given.call.mesh, i),
                     mc_print_seconds(first).text, mc_print_seconds(last).text,
                     mc_print_seconds(last - first).text);
    }
    return mc_table_print(&table, 2, stdout);
}

static int print_links(const mc_simulated_t *s)
{
    mc_table_t table = mc_table("lrrr");
    if (s->n_busiest == 0)
        return MESHCOLL_OK;
    printf("\nthe busiest links between ports, and how much of the time they carry messages:\n\n");
    mc_table_add(&table, "link\tbusy\tload\tlinks alike");
    for (int32_t i = 0; i < s->n_busiest; i++) {
        const double busy = (double)s->busiest[i].busy;
        mc_table_add(&table, "%s\t%s\t%.1f %%\t%u", s->busiest[i].name,
                     mc_print_seconds(busy / 1e12).text, 100.0 * busy / (double)s->ps,
                     s->busiest[i].alike);
    }
    return mc_table_print(&table, 2, stdout);
}

static void print_head(const char *title)
{
    printf("%s on %s, %d ranks\n\nnetwork: %s\nlinks: %s\n", title, mc_show_mesh(&given.call.mesh),
           given.call.mesh.size,
           given.network ? mc_show_network(given.query.network)
                         : "none: boxes are joined without sharing",
           given.text.links);
    mc_show_links(&given.call.mesh, &given.call.links);
    putchar('\n');
}

static int print_text(const run_t *runs, uint32_t n, double bound)
{
    char title[128];
    const mc_simulated_t *const s = &runs->simulated;
    snprintf(title, sizeof title, "%s of %s", mc_moves[given.call.collective].name,
             mc_print_bytes((double)given.call.bytes).text);
    print_head(title);
    int status = print_runs(runs, n, bound);
    printf("\nno strategy is faster than %s (lower bound, without the network)\n\n",
           mc_print_seconds(bound).text);
    if (n > 1)
        printf("%s\n", mc_show_strategy(&runs->strategy, &given.call.mesh));
    if (!status)
        status = print_phases(runs);
    if (!status)
        status = print_links(s);
    printf("\n%s messages were simulated", mc_print_count(s->messages).text);
    if (s->classes < given.call.mesh.size)
        printf(": the %d ranks are %d that differ, and the others do the same at the same time",
               given.call.mesh.size, s->classes);
    putchar('\n');
    return status;
}

static json_t *json_run(const run_t *run)
{
    const mc_simulated_t *const s = &run->simulated;
    json_t *const phases = json_array(), *const links = json_array();
    for (int32_t i = 0; i < run->strategy.n_phases; i++)
        if (s->phase[i].first <= s->phase[i].last)
            json_array_append_new(phases,
                                  json_pack("{s:s, s:I, s:I}", "phase",
                                            mc_show_phase(&run->strategy, &given.call.mesh, i),
                                            "begins_ps", (json_int_t)s->phase[i].first, "ends_ps",
                                            (json_int_t)s->phase[i].last));
    for (int32_t i = 0; i < s->n_busiest; i++)
        json_array_append_new(
            links, json_pack("{s:o, s:I, s:i}", "link", mc_json_text(s->busiest[i].name), "busy_ps",
                             (json_int_t)s->busiest[i].busy, "alike", (int)s->busiest[i].alike));
    return json_pack("{s:s, s:I, s:f, s:f, s:o, s:o, s:I, s:I, s:i, s:i}", "strategy",
                     mc_show_strategy(&run->strategy, &given.call.mesh), "simulated_ps",
                     (json_int_t)s->ps, "seconds", seconds_of(run), "price_seconds", run->price,
                     "phases", phases, "busiest", links, "messages", (json_int_t)s->messages,
                     "events", (json_int_t)s->events, "plans", (int)s->plans, "classes",
                     (int)s->classes);
}

static json_t *json_head(double bytes)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:I}", "command", "simulate", "collective",
                     mc_moves[given.call.collective].name, "mesh", mc_json_mesh(&given.call.mesh),
                     "links", mc_json_links(&given.call.mesh, &given.call.links), "network",
                     mc_json_text(mc_show_network(given.query.network)), "bytes",
                     (json_int_t)bytes);
}

static int print_json(const run_t *runs, uint32_t n, double bound)
{
    json_t *const list = json_array(), *const head = json_head((double)given.call.bytes);
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, json_run(&runs[i]));
    json_object_set_new(head, "lower_bound_seconds", json_real(bound));
    json_object_set_new(head, "strategies", list);
    return mc_json_print(head);
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = ((const run_t *)a)->simulated.ps, y = ((const run_t *)b)->simulated.ps;
    return (x > y) - (x < y);
}

static const mc_option_t options[] = {
    MC_OPTION_TEXT("mesh", "MESH", "ranks by dimension, outermost first: box=8,gpu=8",
                   &given.text.mesh),
    MC_OPTION_TEXT("bytes", "SIZE", "bytes of the whole vector: 512, 64K, 64M, 1G", &given.bytes),
    MC_OPTION_TEXT("links", "LINKS", "a preset or links by hand; see meshcoll list links",
                   &given.text.links),
    MC_OPTION_TEXT("network", "NETWORK",
                   "between boxes, as above; left out: as many links as ports need",
                   &given.network),
    MC_OPTION_TEXT("strategy", "STRATEGY", "its text or its name; left out: what plan puts first",
                   &given.text.strategy),
    MC_OPTION_NUMBER("top", "N", "the N cheapest by the model, the fastest first", &given.top, 1,
                     10000),
    MC_OPTION_TEXT("root", "RANK", "root of bcast, reduce, scatter, gather: 0", &given.text.root),
    MC_OPTION_TEXT("order", "ORDER", MC_ORDER_HELP, &given.order),
    MC_OPTION_TEXTS("late", "RANK:TIME", "a rank that starts later, as in 5:1ms; again for another",
                    &given.late),
    MC_OPTION_TEXTS("slow", "LINK:FACTOR",
                    "a link that takes longer, as in \"leaf0.0 up1:4\"; again for another",
                    &given.slow),
    MC_OPTION_FLAG("whole", "simulate every rank, not one of those that do the same", &given.whole),
    MC_OPTION_TEXT("trace", "FILE",
                   "every message as trace events, for chrome://tracing or Perfetto", &given.trace),
    MC_OPTION_TEXT("svg", "FILE",
                   "a picture that moves: messages, loads, a time line; of more than 64 ranks the "
                   "load of every link",
                   &given.svg),
    MC_OPTION_TEXT("step", "FILE",
                   "a training step: a line for each bucket of gradients, \"25MB 130ms\", its "
                   "bytes and when it is ready; without --bytes",
                   &given.step),
    MC_OPTION_FLAG("json", "as JSON", &given.json),
    {0},
};

static int simulate_step(void)
{
    const mc_step_query_t query = {.simulation = given.query,
                                   .what = given.call.collective,
                                   .path = given.step,
                                   .strategy = given.text.strategy,
                                   .print_head = print_head,
                                   .json_head = json_head,
                                   .json = given.json};
    return mc_step_simulate(&query);
}

static int run(void)
{
    run_t *runs = NULL;
    uint32_t n = 0;
    int status = read_request();
    if (!status && given.step)
        status = simulate_step();
    else if (!status)
        status = choose(&runs, &n);
    for (uint32_t i = 0; i < n && !status; i++)
        status = i == 0 ? simulate_recorded(&runs[i]) : simulate(&runs[i]);
    const double bound = status ? 0
                                : mc_lower_bound(given.call.collective, &given.call.mesh,
                                                 &given.call.links, (double)given.call.bytes);
    if (!status && given.svg)
        status = draw(runs, bound);
    if (!status && !given.step) {
        qsort(runs, n, sizeof *runs, by_time);
        status = (given.json ? print_json : print_text)(runs, n, bound);
    }
    free(runs);
    free(given.place);
    free(given.delay);
    free(given.slowed);
    free(given.late.at);
    free(given.slow.at);
    status = mc_between_close(&given.between, status);
    mc_motion_free(&given.motion);
    return status;
}

const mc_command_t mc_simulate_command = {
    .name = "simulate",
    .summary = "a collective on a described network, message by message",
    .usage =
        "  meshcoll simulate COLLECTIVE --mesh MESH --bytes SIZE [--network NETWORK] [--links "
        "LINKS] [--strategy STRATEGY] …\n"
        "  meshcoll simulate COLLECTIVE --mesh MESH --bytes SIZE [--network NETWORK] --top N\n",
    .about =
        "Runs the plans of all ranks, event by event, on the links of the mesh and on a network\n"
        "between its boxes, where messages share links, and prints the time beside the price of\n"
        "the model. Nothing is measured. A network is\n"
        "  tree=DOWN:UP:RATE/…[;rails][;ecmp]  switches with DOWN links down and UP links up,\n"
        "                                      leaves first\n"
        "  torus=16x16x40:RATE[;ecmp]          a node for each port of a box\n"
        "  graph=FILE:RATE[;ecmp]              lines \"A B [RATE]\"; 0, 1, 2, … are ports, other\n"
        "                                      names switches\n",
    .examples = "  meshcoll simulate allreduce --mesh box=16,gpu=8 --links dgx-h100 --bytes 256M "
                "--network \"tree=32:16:50GB/s;rails\"\n"
                "  meshcoll simulate allreduce --mesh pod=8,box=160,gpu=8 --links dgx-h100 --bytes "
                "1G --strategy flat-ring\n"
                "  meshcoll simulate bcast --mesh box=8,gpu=8 --bytes 64M --network "
                "tree=4:1:25Gbit/s --top 5\n"
                "  meshcoll simulate allgather --mesh x=4 --bytes 4M --links uniform --network "
                "tree=2:1:1GB/s --order 0,2,1,3\n",
    .options = options,
    .arguments = {.text = &given.text.collective},
    .run = run,
};
