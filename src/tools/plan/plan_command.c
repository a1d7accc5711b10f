#include "runtime/choose/choice.h"
#include "tools/plan/plan.h"

#include <string.h>

static const char usage[] =
    "  meshcoll plan COLLECTIVE --mesh MESH --bytes SIZE [--links LINKS] [--root RANK] …\n"
    "  meshcoll plan COLLECTIVE --mesh MESH --bytes SIZE --strategy STRATEGY\n"
    "  meshcoll plan COLLECTIVE --mesh MESH --sweep FROM..TO\n"
    "  meshcoll plan [COLLECTIVE] --mesh MESH --scale EXTENTS --bytes SIZES [--links LINKS]\n";

static const char about[] = "Predicts the time of every strategy with the model of the links, α "
                            "seconds per message, β seconds\n"
                            "per byte and γ seconds per byte reduced, and prints the fastest ones "
                            "and a lower bound. The cost of\n"
                            "a phase is printed as terms: 3α + 7/8 nβ is three messages in "
                            "sequence that carry 7/8 of the n\n"
                            "bytes together. Nothing is measured and nothing runs.\n";

static const char examples[] =
    "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 64M\n"
    "  meshcoll plan allreduce --mesh box=4,gpu=8 --bytes 1G --links dgx-h100 --top 3 --phases\n"
    "  meshcoll plan bcast --mesh box=8,gpu=8 --sweep 1K..64M\n"
    "  meshcoll plan --mesh box=8,gpu=8 --scale 64,1024 --bytes 1M,256M --links dgx-h100\n"
    "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 1M --strategy option2\n"
    "  meshcoll plan allreduce --mesh box=4,gpu=8 --bytes 1M --in-order\n"
    "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 1M \\\n"
    "      --strategy \"scatter:mst(box) bcast:mst(gpu) allgather:ring(box) segments=8\"\n"
    "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 1M --links "
    "\"box=alpha:20us;beta:1GB/s,gpu=shm\"\n";

typedef struct {
    const char *mesh, *bytes, *links, *root, *strategy, *sweep, *scale;
} texts_t;

/* "1K..64M" */
static int read_sweep(const mc_command_t *command, const char *text, uint64_t *from, uint64_t *to)
{
    char first[64];
    const char *const dots = strstr(text, "..");
    if (!dots || (size_t)(dots - text) >= sizeof first)
        return mc_tool_refuse(command, "--sweep takes two sizes, as in 1K..64M; got '%s'", text);
    memcpy(first, text, (size_t)(dots - text));
    first[dots - text] = '\0';
    int exit = mc_read_bytes(command, "--sweep", first, from);
    if (exit == MC_GO_ON)
        exit = mc_read_bytes(command, "--sweep", dots + 2, to);
    if (exit == MC_GO_ON && (*from < 1 || *from >= *to))
        return mc_tool_refuse(command,
                              "--sweep goes from a size of at least 1 to a larger one; "
                              "got '%s'",
                              text);
    return exit;
}

/* What all forms of the command take. */
static int read_shared(const texts_t *texts, mc_plan_request_t *r)
{
    if (r->max_segments & (r->max_segments - 1))
        return mc_tool_refuse(r->command, "--max-segments takes a power of two, as in 64; got '%d'",
                              r->max_segments);
    return mc_read_mesh(r->command, texts->mesh, &r->mesh);
}

static int read_request(const texts_t *texts, const char *collective, mc_plan_request_t *r)
{
    int exit = mc_read_collective(r->command, collective, &r->collective);
    if (exit == MC_GO_ON)
        exit = read_shared(texts, r);
    if (exit == MC_GO_ON)
        exit = mc_read_root(r->command, texts->root, r->collective, &r->mesh, &r->root);
    if (exit != MC_GO_ON)
        return exit;
    const int status = mc_plan_set_links(r, texts->links);
    if (status)
        return mc_tool_fail(r->command, status);
    /* the setting leaves alone what does not reduce */
    r->reproducible = r->reproducible && mc_moves[r->collective].reduces;
    if (r->in_order && !mc_moves[r->collective].reduces)
        return mc_tool_refuse(r->command,
                              "--in-order is for what reduces: reduce, reduce_scatter, allreduce; "
                              "%s does not",
                              mc_moves[r->collective].name);
    return MC_GO_ON;
}

static int run_sweep(const texts_t *texts, const mc_plan_request_t *r)
{
    uint64_t from, to;
    if (texts->bytes || texts->strategy)
        return mc_tool_refuse(r->command, "--sweep goes without %s",
                              texts->bytes ? "--bytes" : "--strategy");
    const int exit = read_sweep(r->command, texts->sweep, &from, &to);
    return exit == MC_GO_ON ? mc_plan_sweep(r, from, to) : exit;
}

static int run_scale(const texts_t *texts, const char *collective, mc_plan_request_t *r)
{
    const mc_plan_scale_t scale = {texts->scale, texts->bytes, texts->links, collective};
    if (texts->root || texts->strategy || texts->sweep)
        return mc_tool_refuse(r->command, "--scale goes without %s",
                              texts->root       ? "--root"
                              : texts->strategy ? "--strategy"
                                                : "--sweep");
    const int exit = read_shared(texts, r);
    return exit == MC_GO_ON ? mc_plan_scale(r, &scale) : exit;
}

static int run_size(const texts_t *texts, mc_plan_request_t *r)
{
    mc_strategy_t strategy;
    int exit = MC_GO_ON;
    if (!texts->bytes)
        return mc_tool_refuse(r->command, "--bytes is missing; expected the size of the whole "
                                          "vector, as in --bytes 64M, or --sweep 1K..64M");
    exit = mc_read_bytes(r->command, "--bytes", texts->bytes, &r->bytes);
    if (exit == MC_GO_ON && texts->strategy) {
        exit = mc_read_strategy(r->command, texts->strategy, r->collective, &r->mesh, &strategy);
        r->strategy = &strategy;
        if (exit == MC_GO_ON && mc_plan_check(r, &strategy))
            exit = mc_tool_fail(r->command, MESHCOLL_ERR_STRATEGY);
    }
    if (exit == MC_GO_ON)
        exit = mc_plan_rank(r);
    r->strategy = NULL;
    return exit;
}

/* What the command line gives; a process runs one command. */
static struct {
    const char *collective;
    texts_t texts;
    mc_plan_request_t request;
} given = {.request = {.top = 10, .max_segments = MC_MAX_SEGMENTS}};

static const mc_option_t options[] = {
    {.name = "mesh",
     .value = "MESH",
     .help = "ranks by dimension, outermost first: box=8,gpu=8; boxes of unequal sizes: box=8+8+4",
     .text = &given.texts.mesh},
    {.name = "bytes",
     .value = "SIZE",
     .help = "bytes of the whole vector (of all blocks together): 512, 64K, 64M, 1G",
     .text = &given.texts.bytes},
    {.name = "links",
     .value = "LINKS",
     .help = "a preset or links by hand; see meshcoll list links",
     .text = &given.texts.links},
    {.name = "root",
     .value = "RANK",
     .help = "root of bcast, reduce, scatter, gather: 0",
     .text = &given.texts.root},
    {.name = "top",
     .value = "N",
     .help = "how many strategies are shown: 10",
     .number = &given.request.top,
     .least = 1,
     .most = 100000},
    {.name = "all",
     .help = "the cheapest strategies, not only the cheapest with each order of phases",
     .flag = &given.request.all},
    {.name = "in-order",
     .help = "only what reduces in the order of ranks, as for an operation that does not commute",
     .flag = &given.request.in_order},
    {.name = "phases",
     .help = "each shown strategy phase by phase, not only the best",
     .flag = &given.request.phases},
    {.name = "strategy",
     .value = "STRATEGY",
     .help = "price this one only: its text or its name",
     .text = &given.texts.strategy},
    {.name = "sweep",
     .value = "FROM..TO",
     .help = "where the best strategy changes between two sizes",
     .text = &given.texts.sweep},
    {.name = "scale",
     .value = "EXTENTS",
     .help = "a table of this mesh and of those with 64,1024 in its outermost dimension",
     .text = &given.texts.scale},
    {.name = "reproducible",
     .help = "only strategies that MESHCOLL_REPRODUCIBLE=1 may take",
     .flag = &given.request.reproducible},
    {.name = "max-segments",
     .value = "N",
     .help = "cut the vector into at most N segments (a power of two): 256, as the library does",
     .number = &given.request.max_segments,
     .least = 1,
     .most = MC_MOST_SEGMENTS},
    {.name = "json", .help = "as JSON", .flag = &given.request.json},
    {0},
};

static int run(const mc_command_t *self, int argc, char **argv)
{
    mc_arguments_t arguments = {.text = &given.collective, .most = 1};
    given.request.command = self;
    int exit = mc_options_parse(self, options, argc, argv, &arguments);
    if (exit == MC_GO_ON && given.texts.scale)
        return run_scale(&given.texts, given.collective, &given.request);
    if (exit == MC_GO_ON)
        exit = read_request(&given.texts, given.collective, &given.request);
    if (exit != MC_GO_ON)
        return exit;
    return given.texts.sweep ? run_sweep(&given.texts, &given.request)
                             : run_size(&given.texts, &given.request);
}

const mc_command_t mc_plan_command = {
    .name = "plan",
    .summary = "which strategy is the fastest for a size, and what each costs",
    .usage = usage,
    .about = about,
    .examples = examples,
    .run = run,
};
