/*
 * Five ways to allreduce, and one along the dimensions of the mesh, counted from their plans, next
 * to the usual estimates.
 */
#include "tools/common/show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 512 };

/* A usual estimate on p ranks, in D or in steps: `text`, which is `times` the product of these powers of p, p - 1 and
 * log p; NULL: there is none. */
typedef struct {
    const char *text;
    double times;
    int p, others, log;
} estimate_t;

typedef struct {
    const char *name;
    const char *strategy; /* "(": along all dimensions */
    bool both_ends;       /* the first estimate counts sent and received */
    estimate_t total, steps, step;
    const char *note;
} way_t;

static double value_of(const estimate_t *e, double p)
{
    return e->times * pow(p, e->p) * pow(p - 1, e->others) * pow(ceil(log2(p)), e->log);
}

static const way_t ways[] = {
    {"full mesh",
     "allreduce:fullmesh()",
     false,
     {"D p(p-1)", 1, .p = 1, .others = 1},
     {.text = "1", .times = 1},
     {"2D(p-1)", 2, .others = 1},
     "The estimate lets every rank send to all others and receive from all at once. Here a rank "
     "sends\n"
     "one message and receives one at a time, adds what comes in rank order so that all ranks get "
     "the\n"
     "same bits, and may overwrite its input only when that is sent: more steps, with less in "
     "each."},
    {"star",
     "reduce:star() bcast:star()",
     false,
     {"2D(p-1)", 2, .others = 1},
     {.text = "2", .times = 2},
     {"root: D(p-1)", 1, .others = 1},
     "As above: the root takes p-1 vectors one after the other, then sends p-1."},
    {"binary tree",
     "reduce:mst() bcast:mst()",
     true,
     {"< 6Dp", 6, .p = 1},
     {"2 log p", 2, .log = 1},
     {.text = "<= 3D", .times = 3},
     "The estimate is an upper bound, with two children and a parent served in one step. The "
     "minimum\n"
     "spanning tree used here serves one neighbour a step: each of its p-1 edges carries D up and "
     "D\n"
     "down, which is 4D(p-1) counted at both ends."},
    {"naive ring",
     "reduce:chain() bcast:chain()",
     true,
     {"~ 4Dp", 4, .p = 1},
     {"2p", 2, .p = 1},
     {.text = "2D", .times = 2},
     "The vector goes round in p-1 hops, not p. The estimate's 2D is one vector in and one out; "
     "here\n"
     "these are two steps, as nothing is cut into segments: what comes in one is sent on in the "
     "next."},
    {"ring",
     "allreduce:ring()",
     true,
     {"~ 4Dp", 4, .p = 1},
     {"2p", 2, .p = 1},
     {"2D/p", 2, .p = -1},
     "p-1 steps each way, not p, since every rank has its own slice already."},
    {"hierarchical",
     "hierarchical",
     false,
     {0},
     {0},
     {0},
     "Rings inside of each box first, then between boxes, and the same way back: the outermost "
     "dimension\n"
     "has to carry what one box has, not what its ranks have."},
};
enum { LAST_FLAT = MC_COUNT(ways) - 1 }; /* the rows behind it need a mesh */

typedef struct {
    mc_strategy_t strategy;
    mc_ratio_t sent, received, step; /* in D */
    mc_ratio_t over[MC_MAX_DIMS];    /* bytes sent, by the outermost dimension crossed */
    uint32_t steps;
} counts_t;

/* What is counted, and on which mesh: the first `n` ways. */
typedef struct {
    mc_mesh_t mesh;
    uint64_t bytes;
    size_t n;
    int32_t top; /* the outermost dimension longer than 1 where there are several, or -1 */
    counts_t counts[MC_COUNT(ways)];
} tally_t;

/* Chunks that messages carry, as they are counted. */
typedef struct {
    int64_t sent, received, most, over[MC_MAX_DIMS];
    int64_t *handled; /* by one rank in each time step */
} chunks_t;

static void count_step(const mc_mesh_t *mesh, int32_t rank, const mc_step_t *s, uint32_t time,
                       chunks_t *sum)
{
    const int64_t chunks = (int64_t)s->run * s->nrun;
    const bool sends = mc_op_sends((mc_op_t)s->op);
    const bool receives = mc_op_receives((mc_op_t)s->op);
    if (sends) {
        sum->sent += chunks;
        sum->over[mc_mesh_level(mesh, rank, s->peer)] += chunks;
    }
    if (receives)
        sum->received += chunks;
    if (!sends && !receives)
        return;
    int64_t *const now = &sum->handled[time];
    *now += chunks;
    sum->most = *now > sum->most ? *now : sum->most;
}

/* Chunks that all ranks send and receive, and the most that one rank handles in a time step. */
static int count_world(const mc_mesh_t *mesh, const mc_world_t *world, const mc_times_t *times,
                       counts_t *counts)
{
    const int64_t n_chunks = world->plan[0]->n_chunks;
    const size_t handled_bytes = ((size_t)times->n_times + 1) * sizeof(int64_t);
    chunks_t sum = {.handled = malloc(handled_bytes)};
    if (!sum.handled)
        return mc_fail_memory("the counts of a plan");
    for (int32_t r = 0; r < world->n_ranks; r++) {
        const mc_plan_t *const plan = world->plan[r];
        memset(sum.handled, 0, handled_bytes);
        for (uint32_t i = 0; i < plan->n_steps; i++)
            count_step(mesh, r, &plan->step[i], times->time[r][i], &sum);
    }
    free(sum.handled);
    counts->sent = mc_ratio(sum.sent, n_chunks);
    counts->received = mc_ratio(sum.received, n_chunks);
    counts->step = mc_ratio(sum.most, n_chunks);
    counts->steps = times->n_times;
    for (int32_t d = 0; d < mesh->ndims; d++)
        counts->over[d] = mc_ratio(sum.over[d], n_chunks);
    return MESHCOLL_OK;
}

/* The way's strategy on this mesh. */
static int parse_way(const way_t *way, const mc_mesh_t *mesh, mc_strategy_t *strategy)
{
    char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    for (const char *at = way->strategy; *at; at++) {
        mc_text_add(&text, "%c", *at);
        if (*at == '(')
            mc_dims_print(mesh, (mc_dims_t){0, mesh->ndims}, &text);
    }
    return mc_strategy_parse(buffer, MESHCOLL_ALLREDUCE, mesh, strategy);
}

static int count_way(const way_t *way, const mc_mesh_t *mesh, counts_t *counts)
{
    mc_plans_t plans;
    mc_times_t times;
    int status = parse_way(way, mesh, &counts->strategy);
    if (!status)
        status = mc_plans_create(&counts->strategy, mesh, 0, &plans);
    if (status)
        return status;
    const mc_world_t world = mc_plans_world(&plans);
    status = mc_world_times(&world, &times);
    if (!status) {
        status = count_world(mesh, &world, &times, counts);
        mc_arena_free(&times.arena);
    }
    mc_plans_free(&plans);
    return status;
}

/* "56 D", "D", "1/4 D" */
static void add_in_d(mc_table_t *table, mc_ratio_t ratio)
{
    const bool one = ratio.num == 1 && ratio.den == 1;
    mc_table_add(table, one ? "D" : "%s D", mc_show_ratio(ratio).text);
}

/* "2D(p-1) = 14 D" */
static void add_estimate(mc_table_t *table, const estimate_t *e, double p, const char *unit)
{
    char number[32];
    mc_number_print(number, sizeof number, "%.4g%s", value_of(e, p), unit);
    if (!e->text)
        mc_table_add(table, "-");
    else if (strcmp(e->text, number) == 0)
        mc_table_add(table, "%s", number);
    else
        mc_table_add(table, "%s = %s", e->text, number);
}

static void add_head(mc_table_t *table, const tally_t *t)
{
    mc_table_add(table, "\tbytes in all%s\t\t\ttime steps\t\tbytes a step\t\tway\tsent",
                 t->top >= 0 ? "\t" : "");
    if (t->top >= 0)
        mc_table_add(table, "over %s", t->mesh.dim[t->top].name);
    mc_table_add(table, "both ends\testimate\tcounted\testimate\tbusiest rank\testimate");
}

static void add_way(mc_table_t *table, const tally_t *t, size_t i)
{
    const way_t *const way = &ways[i];
    const counts_t *const c = &t->counts[i];
    const double p = t->mesh.size;
    mc_table_add(table, "%s", way->name);
    add_in_d(table, c->sent);
    if (t->top >= 0)
        add_in_d(table, c->over[t->top]);
    add_in_d(table, mc_ratio_add(c->sent, c->received));
    add_estimate(table, &way->total, p, way->both_ends ? " D, both ends" : " D, sent");
    mc_table_add(table, "%u", c->steps);
    add_estimate(table, &way->steps, p, "");
    add_in_d(table, c->step);
    add_estimate(table, &way->step, p, " D");
}

static void print_note(const tally_t *t, size_t i)
{
    const counts_t *const c = &t->counts[i];
    printf("\n%s, %s, %s sent in all\n  ", ways[i].name, mc_show_strategy(&c->strategy, &t->mesh),
           mc_print_bytes(mc_ratio_value(c->sent) * (double)t->bytes).text);
    for (const char *at = ways[i].note; *at; at++) {
        putchar(*at);
        if (*at == '\n')
            printf("  ");
    }
    putchar('\n');
}

static int print_text(const tally_t *t)
{
    mc_table_t table = mc_table(t->top < 0 ? "lrrlrlrl" : "lrrrlrlrl");
    printf("%s ways to allreduce on p = %d ranks%s%s, each with a vector of D = %s\n\n",
           t->top < 0 ? "five" : "six", t->mesh.size, t->top < 0 ? "" : ", ",
           t->top < 0 ? "" : mc_show_mesh(&t->mesh), mc_print_bytes((double)t->bytes).text);
    add_head(&table, t);
    for (size_t i = 0; i < t->n; i++)
        add_way(&table, t, i);
    const int status = mc_table_print(&table, 2, stdout);
    printf("\nboth ends: counted where it is sent and where it is received; busiest rank: the most "
           "that one\nrank sends and receives in one time step; estimate: what is usually said of "
           "this way\n");
    if (t->top >= 0)
        printf("over %s: of what is sent, from one %s to another\n", t->mesh.dim[t->top].name,
               t->mesh.dim[t->top].name);
    for (size_t i = 0; i < t->n; i++)
        print_note(t, i);
    return status;
}

static json_t *json_over(const tally_t *t, const counts_t *c)
{
    json_t *const over = json_object();
    for (int32_t d = 0; d < t->mesh.ndims; d++)
        json_object_set_new(over, t->mesh.dim[d].name, json_string(mc_show_ratio(c->over[d]).text));
    return over;
}

static json_t *json_estimate(const way_t *way, double p)
{
    if (!way->total.text)
        return json_null();
    return json_pack("{s:f, s:s, s:f, s:f}", "total", value_of(&way->total, p), "total_counts",
                     way->both_ends ? "sent and received" : "sent", "time_steps",
                     value_of(&way->steps, p), "step_most", value_of(&way->step, p));
}

static json_t *json_way(const tally_t *t, size_t i)
{
    const counts_t *const c = &t->counts[i];
    return json_pack("{s:s, s:s, s:{s:s, s:o, s:s, s:i, s:s, s:f}, s:o, s:s}", "way", ways[i].name,
                     "strategy", mc_show_strategy(&c->strategy, &t->mesh), "counted", "sent",
                     mc_show_ratio(c->sent).text, "sent_over", json_over(t, c), "received",
                     mc_show_ratio(c->received).text, "time_steps", (int)c->steps, "step_most",
                     mc_show_ratio(c->step).text, "sent_bytes",
                     mc_ratio_value(c->sent) * (double)t->bytes, "estimate",
                     json_estimate(&ways[i], t->mesh.size), "note", ways[i].note);
}

static int print_json(const tally_t *t)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(list, json_way(t, i));
    return mc_json_print(json_pack("{s:s, s:i, s:o, s:I, s:s, s:o}", "command", "count", "ranks",
                                   (int)t->mesh.size, "mesh", mc_json_mesh(&t->mesh), "bytes",
                                   (json_int_t)t->bytes, "unit",
                                   "multiples of the vector's bytes D", "ways", list));
}

/* One dimension is one line: nothing crosses an outer one, and no way goes through it. */
static int read_mesh(const char *text, int32_t ranks, tally_t *t)
{
    if (text && ranks)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--ranks and --mesh both say how many ranks there are; leave one of them "
                       "out");
    ranks = ranks ? ranks : 8;
    t->mesh = (mc_mesh_t){.ndims = 1, .size = ranks, .dim = {{"x", ranks}}};
    const int status = text ? mc_read_mesh(text, &t->mesh) : MESHCOLL_OK;
    if (status)
        return status;
    if (t->mesh.size < 2 || t->mesh.size > MOST_RANKS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--mesh takes one of 2 to %d ranks; %s has %d",
                       MOST_RANKS, text, t->mesh.size);
    const unsigned longer = mc_mesh_long(&t->mesh);
    const bool several = longer & (longer - 1);
    t->top = several ? __builtin_ctz(longer) : -1;
    t->n = several ? MC_COUNT(ways) : LAST_FLAT;
    return MESHCOLL_OK;
}

/* What the command line gives; a process runs one command. */
static struct {
    const char *bytes, *mesh;
    int32_t ranks;
    bool json;
} given = {.bytes = "1M"};

static const mc_option_t options[] = {
    MC_OPTION_NUMBER("ranks", "P", "how many ranks, 2 to 512: 8", &given.ranks, 2, MOST_RANKS),
    MC_OPTION_TEXT("mesh", "MESH", "or the mesh they form, as in box=4,gpu=8 or box=8+8+4",
                   &given.mesh),
    MC_OPTION_TEXT("bytes", "D", "size of the vector: 1M", &given.bytes),
    MC_OPTION_FLAG("json", "as JSON", &given.json),
    {0},
};

static int run(void)
{
    static tally_t tally;
    int status = read_mesh(given.mesh, given.ranks, &tally);
    if (!status)
        status = mc_read_bytes("--bytes", given.bytes, &tally.bytes);
    for (size_t i = 0; i < tally.n && !status; i++)
        status = count_way(&ways[i], &tally.mesh, &tally.counts[i]);
    if (status)
        return status;
    return given.json ? print_json(&tally) : print_text(&tally);
}

const mc_command_t mc_count_command = {
    .name = "count",
    .summary = "five ways to allreduce: bytes, steps and the busiest rank, counted",
    .usage = "  meshcoll count [--ranks P | --mesh MESH] [--bytes D]\n",
    .about =
        "Counts what five ways to allreduce need from the network: bytes in all, time steps, and\n"
        "the bytes of the busiest rank in one step. The counts come from the plans that would\n"
        "run. The usual estimates are printed next to them, and below the reasons for the\n"
        "differences. On a mesh the five ways run over all ranks as one line, bytes that cross\n"
        "the outermost dimension are counted separately, and a sixth way runs dimension by\n"
        "dimension.\n",
    .examples = "  meshcoll count --ranks 8\n"
                "  meshcoll count --ranks 40 --bytes 1.2G\n"
                "  meshcoll count --mesh box=5,gpu=8\n"
                "  meshcoll count --mesh box=8+8+4\n"
                "  meshcoll count --ranks 4 --json\n",
    .options = options,
    .run = run,
};
