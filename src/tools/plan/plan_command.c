#include "tools/plan/plan_command.h"

#include "runtime/choose/choice.h"

#include <string.h>

/* What the command line gives; a process runs one command. */
static struct {
    const char *collective, *mesh, *bytes, *links, *root, *strategy, *sweep, *scale, *order;
    mc_plan_request_t request;
} given = {.request = {.top = 3, .max_segments = MC_MAX_SEGMENTS}};

/* "1K..64M" */
static int read_sweep(const char *text, uint64_t *from, uint64_t *to)
{
    char first[64];
    const char *const dots = strstr(text, "..");
    if (!dots || (size_t)(dots - text) >= sizeof first)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--sweep takes two sizes, as in 1K..64M; got '%s'",
                       text);
    snprintf(first, sizeof first, "%.*s", (int)(dots - text), text);
    int status = mc_read_bytes("--sweep", first, from);
    if (!status)
        status = mc_read_bytes("--sweep", dots + 2, to);
    if (!status && (*from < 1 || *from >= *to))
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "--sweep goes from a size of at least 1 to a larger one; got '%s'", text);
    return status;
}

/* What all forms of the command take. */
static int read_shared(mc_plan_request_t *r)
{
    if (r->max_segments & (r->max_segments - 1))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--max-segments takes a power of two, as in 64; got '%d'", r->max_segments);
    return mc_read_mesh(given.mesh, &r->mesh);
}

static int read_request(mc_plan_request_t *r)
{
    int status = mc_read_collective(given.collective, &r->collective);
    if (!status)
        status = read_shared(r);
    if (!status)
        status = mc_read_root(given.root, r->collective, &r->mesh, &r->root);
    if (!status)
        status = mc_plan_set_links(r, given.links);
    if (status)
        return status;
    if (given.order && !r->simulate && !r->reproducible && !r->network)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--order goes with --network, --simulate or --reproducible: without them "
                       "prices are the same in any order");
    status = given.order ? mc_read_order(given.order, r->mesh.size, &r->order) : MESHCOLL_OK;
    if (status)
        return status;
    status = mc_between_open(r->network, &r->mesh, r->order, &r->links, &r->between);
    if (status)
        return status;
    if (r->order)
        r->numbering = mc_numbering(&r->mesh, r->order);
    /* the setting leaves alone what does not reduce */
    r->reproducible = r->reproducible && mc_moves[r->collective].reduces;
    if (r->in_order && !mc_moves[r->collective].reduces)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--in-order is for what reduces: reduce, reduce_scatter, allreduce; %s "
                       "does not",
                       mc_moves[r->collective].name);
    return MESHCOLL_OK;
}

static int run_sweep(const mc_plan_request_t *r)
{
    uint64_t from, to;
    if (given.bytes || given.strategy)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--sweep goes without %s",
                       given.bytes ? "--bytes" : "--strategy");
    const int status = read_sweep(given.sweep, &from, &to);
    return status ? status : mc_plan_sweep(r, from, to);
}

static int run_scale(mc_plan_request_t *r)
{
    const mc_plan_scale_t scale = {given.scale, given.bytes, given.links, given.collective};
    if (given.root || given.strategy || given.sweep || given.request.network)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--scale goes without %s",
                       given.root       ? "--root"
                       : given.strategy ? "--strategy"
                       : given.sweep    ? "--sweep"
                                        : "--network");
    const int status = read_shared(r);
    return status ? status : mc_plan_scale(r, &scale);
}

static int run_size(mc_plan_request_t *r)
{
    static mc_strategy_t strategy;
    if (!given.bytes)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--bytes is missing; expected the size of the whole vector, as in --bytes "
                       "64M, or --sweep 1K..64M");
    int status = mc_read_bytes("--bytes", given.bytes, &r->bytes);
    if (!status && given.strategy) {
        r->strategy = &strategy;
        status = mc_strategy_parse(given.strategy, r->collective, &r->mesh, &strategy);
        if (!status)
            status = mc_plan_check(r, &strategy);
    }
    return status ? status : mc_plan_rank(r);
}

static const mc_option_t options[] = {
    MC_OPTION_TEXT(
        "mesh", "MESH",
        "ranks by dimension, outermost first: box=8,gpu=8; boxes of unequal sizes: box=8+8+4",
        &given.mesh),
    MC_OPTION_TEXT("bytes", "SIZE",
                   "bytes of the whole vector (of all blocks together): 512, 64K, 64M, 1G",
                   &given.bytes),
    MC_OPTION_TEXT("links", "LINKS", "a preset or links by hand; see meshcoll list links",
                   &given.links),
    MC_OPTION_TEXT("root", "RANK", "root of bcast, reduce, scatter, gather: 0", &given.root),
    MC_OPTION_NUMBER("top", "N", "how many strategies are shown: 3", &given.request.top, 1, 100000),
    MC_OPTION_FLAG("all",
                   "the cheapest strategies, not only the cheapest with each order of phases",
                   &given.request.all),
    MC_OPTION_FLAG(
        "in-order",
        "only what reduces in the order of ranks, as for an operation that does not commute",
        &given.request.in_order),
    MC_OPTION_FLAG("phases", "each shown strategy phase by phase, not only the best",
                   &given.request.phases),
    MC_OPTION_TEXT("strategy", "STRATEGY", "price this one only: its text or its name",
                   &given.strategy),
    MC_OPTION_TEXT("sweep", "FROM..TO", "where the best strategy changes between two sizes",
                   &given.sweep),
    MC_OPTION_TEXT("scale", "EXTENTS",
                   "a table of this mesh and of those with 64,1024 in its outermost dimension",
                   &given.scale),
    MC_OPTION_NUMBER("simulate", "N", "simulate the N cheapest too, and show which is the fastest",
                     &given.request.simulate, 1, 10000),
    MC_OPTION_TEXT("network", "NETWORK",
                   "between boxes, for prices and --simulate; see meshcoll simulate",
                   &given.request.network),
    MC_OPTION_TEXT("order", "ORDER", MC_ORDER_HELP, &given.order),
    MC_OPTION_FLAG("reproducible", "only strategies that MESHCOLL_REPRODUCIBLE=1 may take",
                   &given.request.reproducible),
    MC_OPTION_NUMBER(
        "max-segments", "N",
        "cut the vector into at most N segments (a power of two): 256, as the library does",
        &given.request.max_segments, 1, MC_MOST_SEGMENTS),
    MC_OPTION_FLAG("json", "as JSON", &given.request.json),
    {0},
};

static int run(void)
{
    mc_plan_request_t *const r = &given.request;
    if (given.scale)
        return run_scale(r);
    int status = read_request(r);
    if (!status)
        status = given.sweep ? run_sweep(r) : run_size(r);
    status = mc_between_close(&r->between, status);
    free(r->order);
    return status;
}

const mc_command_t mc_plan_command = {
    .name = "plan",
    .summary = "which strategy is the fastest for a size, and what each costs",
    .usage =
        "  meshcoll plan COLLECTIVE --mesh MESH --bytes SIZE [--links LINKS] [--root RANK] …\n"
        "  meshcoll plan COLLECTIVE --mesh MESH --bytes SIZE --strategy STRATEGY\n"
        "  meshcoll plan COLLECTIVE --mesh MESH --sweep FROM..TO\n"
        "  meshcoll plan [COLLECTIVE] --mesh MESH --scale EXTENTS --bytes SIZES [--links LINKS]\n",
    .about = "Predicts the time of every strategy with the model of the links, α seconds per "
             "message, β seconds\n"
             "per byte and γ seconds per byte reduced, and prints the fastest ones and a lower "
             "bound. The cost of\n"
             "a phase is printed as terms: 3α + 7/8 nβ is three messages in sequence that carry "
             "7/8 of the n\n"
             "bytes together. Nothing is measured and nothing runs.\n",
    .examples =
        "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 64M\n"
        "  meshcoll plan allreduce --mesh box=4,gpu=8 --bytes 1G --links dgx-h100 --top 3 "
        "--phases\n"
        "  meshcoll plan bcast --mesh box=8,gpu=8 --sweep 1K..64M\n"
        "  meshcoll plan --mesh box=8,gpu=8 --scale 64,1024 --bytes 1M,256M --links dgx-h100\n"
        "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 1M --strategy option2\n"
        "  meshcoll plan allreduce --mesh box=4,gpu=8 --bytes 1M --in-order\n"
        "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 1M \\\n"
        "      --strategy \"scatter:mst(box) bcast:mst(gpu) allgather:ring(box) segments=8\"\n"
        "  meshcoll plan bcast --mesh box=8,gpu=8 --bytes 1M --links "
        "\"box=alpha:20us;beta:1GB/s,gpu=shm\"\n",
    .options = options,
    .arguments = {.text = &given.collective},
    .run = run,
};
