/* Five ways to allreduce, counted from their plans, beside the usual estimates. */
#include "tools/show.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] = "  meshcoll count [--ranks P] [--bytes D]\n";

static const char about[] =
    "Counts what five ways to allreduce ask of the network: bytes in all, time steps, and what "
    "the\n"
    "busiest rank handles in one step. The counts are taken from the plans that would run; beside "
    "them\n"
    "stands the estimate that is usually given, and below why the two differ.\n";

static const char examples[] = "  meshcoll count --ranks 8\n"
                               "  meshcoll count --ranks 40 --bytes 1.2G\n"
                               "  meshcoll count --ranks 4 --json\n";

typedef double (*estimate_t)(double p);

typedef struct {
    const char *name, *strategy;
    const char *total_text; /* with what is counted in it */
    estimate_t total;       /* in D, as the next two */
    bool both_ends;         /* the estimate counts sent and received */
    const char *steps_text;
    estimate_t steps;
    const char *step_text;
    estimate_t step;
    const char *note;
} way_t;

static double one(double p)
{
    (void)p;
    return 1;
}

static double two(double p)
{
    return 2 * one(p);
}

static double three(double p)
{
    return 3 * one(p);
}

static double others(double p)
{
    return p - 1;
}

static double twice_others(double p)
{
    return 2 * (p - 1);
}

static double pairs(double p)
{
    return p * (p - 1);
}

static double four_p(double p)
{
    return 4 * p;
}

static double six_p(double p)
{
    return 6 * p;
}

static double two_p(double p)
{
    return 2 * p;
}

static double two_over_p(double p)
{
    return 2 / p;
}

static double twice_log(double p)
{
    double rounds = 0;
    for (double reached = 1; reached < p; reached *= 2)
        rounds++;
    return 2 * rounds;
}

static const way_t ways[] = {
    {"full mesh", "allreduce:fullmesh(x)", "D p(p-1)", pairs, false, "1", one, "2D(p-1)",
     twice_others,
     "The estimate lets every rank send to all others and receive from all at once. Here a rank "
     "sends\n"
     "one message and receives one at a time, adds what comes in rank order so that all ranks get "
     "the\n"
     "same bits, and may overwrite its input only when that is sent: more steps, with less in "
     "each."},
    {"star", "reduce:star(x) bcast:star(x)", "2D(p-1)", twice_others, false, "2", two,
     "root: D(p-1)", others,
     "As above: the root takes p-1 vectors one after the other, then sends p-1."},
    {"binary tree", "reduce:mst(x) bcast:mst(x)", "< 6Dp", six_p, true, "2 log p", twice_log,
     "<= 3D", three,
     "The estimate is an upper bound, with two children and a parent served in one step. The "
     "minimum\n"
     "spanning tree used here serves one neighbour a step: each of its p-1 edges carries D up and "
     "D\n"
     "down, which is 4D(p-1) counted at both ends."},
    {"naive ring", "reduce:chain(x) bcast:chain(x)", "~ 4Dp", four_p, true, "2p", two_p, "2D", two,
     "The vector goes round in p-1 hops, not p. The estimate's 2D is one vector in and one out; "
     "here\n"
     "these are two steps, as nothing is cut into segments: what comes in one is sent on in the "
     "next."},
    {"ring", "allreduce:ring(x)", "~ 4Dp", four_p, true, "2p", two_p, "2D/p", two_over_p,
     "p-1 steps each way, not p, since every rank has its own slice already."},
};

typedef struct {
    mc_ratio_t sent, received, step; /* in D */
    uint32_t steps;
} counts_t;

/* Chunks that each rank sends and receives, in all and time step by time step. */
static int count_world(const mc_world_t *world, const mc_times_t *times, counts_t *counts)
{
    const int64_t n_chunks = world->plan[0]->n_chunks;
    int64_t sent = 0, received = 0, most = 0;
    int64_t *const handled = calloc((size_t)times->n_times + 1, sizeof *handled);
    if (!handled)
        return mc_fail_memory("the counts of a plan");
    for (int32_t r = 0; r < world->n_ranks; r++) {
        const mc_plan_t *const plan = world->plan[r];
        for (uint32_t t = 0; t < times->n_times; t++)
            handled[t] = 0;
        for (uint32_t i = 0; i < plan->n_steps; i++) {
            const mc_step_t *const s = &plan->step[i];
            const int64_t chunks = (int64_t)s->run * s->nrun;
            const bool sends = mc_op_sends((mc_op_t)s->op);
            const bool receives = mc_op_receives((mc_op_t)s->op);
            sent += sends ? chunks : 0;
            received += receives ? chunks : 0;
            if (!sends && !receives)
                continue;
            int64_t *const now = &handled[times->time[r][i]];
            *now += chunks;
            most = *now > most ? *now : most;
        }
    }
    free(handled);
    *counts = (counts_t){mc_ratio(sent, n_chunks), mc_ratio(received, n_chunks),
                         mc_ratio(most, n_chunks), times->n_times};
    return MESHCOLL_OK;
}

static int count_way(const way_t *way, const mc_mesh_t *mesh, counts_t *counts)
{
    mc_strategy_t strategy;
    mc_plans_t plans;
    mc_times_t times;
    int status = mc_strategy_parse(way->strategy, MESHCOLL_ALLREDUCE, mesh, &strategy);
    if (!status)
        status = mc_plans_create(&strategy, mesh, 0, &plans);
    if (status)
        return status;
    const mc_world_t world = mc_plans_world(&plans);
    status = mc_world_times(&world, &times);
    if (!status) {
        status = count_world(&world, &times, counts);
        mc_times_free(&times, world.n_ranks);
    }
    mc_plans_free(&plans);
    return status;
}

/* "56 D", "D", "1/4 D" */
static void add_in_d(mc_table_t *table, mc_ratio_t ratio)
{
    char number[MC_NUMBER_TEXT];
    if (ratio.num == 1 && ratio.den == 1)
        mc_table_add(table, "D");
    else
        mc_table_add(table, "%s D", mc_show_ratio(ratio, number));
}

/* "2D(p-1) = 14 D" */
static void add_estimate(mc_table_t *table, const char *text, double value, const char *unit)
{
    char number[MC_NUMBER_TEXT];
    snprintf(number, sizeof number, "%.4g%s", value, unit);
    if (strcmp(text, number) == 0)
        mc_table_add(table, "%s", text);
    else
        mc_table_add(table, "%s = %s", text, number);
}

static void add_head(mc_table_t *table)
{
    static const char *const head[2][8] = {
        {"", "bytes in all", "", "", "time steps", "", "bytes a step", ""},
        {"way", "sent", "both ends", "estimate", "counted", "estimate", "busiest rank", "estimate"},
    };
    for (int row = 0; row < 2; row++)
        for (size_t i = 0; i < MC_COUNT(head[row]); i++)
            mc_table_add(table, "%s", head[row][i]);
}

static void add_way(mc_table_t *table, const way_t *way, const counts_t *c, double p)
{
    mc_table_add(table, "%s", way->name);
    add_in_d(table, c->sent);
    add_in_d(table, mc_ratio_add(c->sent, c->received));
    add_estimate(table, way->total_text, way->total(p),
                 way->both_ends ? " D, both ends" : " D, sent");
    mc_table_add(table, "%u", c->steps);
    add_estimate(table, way->steps_text, way->steps(p), "");
    add_in_d(table, c->step);
    add_estimate(table, way->step_text, way->step(p), " D");
}

static void print_note(const way_t *way, const counts_t *c, double bytes)
{
    char size[MC_NUMBER_TEXT];
    printf("\n%s, %s, %s sent in all\n  ", way->name, way->strategy,
           mc_print_bytes(mc_ratio_value(c->sent) * bytes, size, sizeof size));
    for (const char *at = way->note; *at; at++) {
        putchar(*at);
        if (*at == '\n')
            printf("  ");
    }
    putchar('\n');
}

static int print_text(const counts_t counts[MC_COUNT(ways)], int32_t ranks, uint64_t bytes)
{
    char size[MC_NUMBER_TEXT];
    mc_table_t table = mc_table("lrrlrlrl");
    printf("five ways to allreduce on p = %d ranks, each with a vector of D = %s\n\n", ranks,
           mc_print_bytes((double)bytes, size, sizeof size));
    add_head(&table);
    for (size_t i = 0; i < MC_COUNT(ways); i++)
        add_way(&table, &ways[i], &counts[i], ranks);
    const int status = mc_table_print(&table, 2, stdout);
    printf("\nboth ends: counted where it is sent and where it is received; busiest rank: the most "
           "that one\nrank sends and receives in one time step; estimate: what is usually said of "
           "this way\n");
    for (size_t i = 0; i < MC_COUNT(ways); i++)
        print_note(&ways[i], &counts[i], (double)bytes);
    return status;
}

static json_t *json_way(const way_t *way, const counts_t *c, double p, double bytes)
{
    char sent[MC_NUMBER_TEXT], received[MC_NUMBER_TEXT], step[MC_NUMBER_TEXT];
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:i, s:s, s:f}, s:{s:f, s:s, s:f, s:f}, s:s}", "way",
                     way->name, "strategy", way->strategy, "counted", "sent",
                     mc_show_ratio(c->sent, sent), "received", mc_show_ratio(c->received, received),
                     "time_steps", (int)c->steps, "step_most", mc_show_ratio(c->step, step),
                     "sent_bytes", mc_ratio_value(c->sent) * bytes, "estimate", "total",
                     way->total(p), "total_counts", way->both_ends ? "sent and received" : "sent",
                     "time_steps", way->steps(p), "step_most", way->step(p), "note", way->note);
}

static int print_json(const counts_t counts[MC_COUNT(ways)], int32_t ranks, uint64_t bytes)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < MC_COUNT(ways); i++)
        json_array_append_new(list, json_way(&ways[i], &counts[i], ranks, (double)bytes));
    return mc_json_print(json_pack("{s:s, s:i, s:I, s:s, s:o}", "command", "count", "ranks",
                                   (int)ranks, "bytes", (json_int_t)bytes, "unit",
                                   "multiples of the vector's bytes D", "ways", list));
}

static int run(const mc_command_t *self, int argc, char **argv)
{
    const char *bytes_text = "1M";
    int32_t ranks = 8;
    bool json = false;
    uint64_t bytes;
    counts_t counts[MC_COUNT(ways)];
    mc_arguments_t arguments = {0};
    const mc_option_t options[] = {
        {.name = "ranks",
         .value = "P",
         .help = "how many ranks, 2 to 512: 8",
         .number = &ranks,
         .least = 2,
         .most = 512},
        {.name = "bytes", .value = "D", .help = "size of the vector: 1M", .text = &bytes_text},
        {.name = "json", .help = "as JSON", .flag = &json},
        {0},
    };
    int exit = mc_options_parse(self, options, argc, argv, &arguments);
    if (exit == MC_GO_ON)
        exit = mc_read_bytes(self, "--bytes", bytes_text, &bytes);
    if (exit != MC_GO_ON)
        return exit;
    const mc_mesh_t mesh = {.ndims = 1, .size = ranks, .dim = {{"x", ranks}}};
    int status = MESHCOLL_OK;
    for (size_t i = 0; i < MC_COUNT(ways) && !status; i++)
        status = count_way(&ways[i], &mesh, &counts[i]);
    if (!status && json)
        return print_json(counts, ranks, bytes);
    if (!status)
        status = print_text(counts, ranks, bytes);
    return status ? mc_tool_fail(self, status) : MC_EXIT_OK;
}

const mc_command_t mc_count_command = {
    .name = "count",
    .summary = "five ways to allreduce: bytes, steps and the busiest rank, counted",
    .usage = usage,
    .about = about,
    .examples = examples,
    .run = run,
};
