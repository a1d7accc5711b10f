#include "tools/verify/verify_command.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the command line gives; a process runs one command. */
static struct {
    const char *collective, *mesh, *strategy, *root, *dims, *large;
    bool all, large_all, json;
    int32_t max_ranks, jobs, seconds, orders, seed;
} given = {.dims = "1,2,3", .large = "32x32", .max_ranks = 64, .orders = 1, .seed = 1};

typedef struct {
    meshcoll_collective_t collective; /* where one is given */
    mc_verify_meshes_t meshes;
    mc_strategy_t strategy; /* where one is given */
    int32_t *root, n_roots;
    mc_verify_item_t *item;
    size_t n_items;
} request_t;

/* "1,2" */
static int read_dims(const char *text, bool dims[4])
{
    for (const char *c = text; *c; c += c[1] == ',' ? 2 : 1) {
        if (*c < '1' || *c > '3' || (c[1] != '\0' && (c[1] != ',' || c[2] == '\0')))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--dims takes 1, 2 and 3, as in 1,2; got '%s'",
                           text);
        dims[*c - '0'] = true;
    }
    return MESHCOLL_OK;
}

/* "32x32", or a mesh's usual text. */
static int read_large(const char *text, mc_mesh_t *mesh)
{
    static const char names[] = "xyzuvw";
    char full[MC_MESH_TEXT];
    mc_text_t out = mc_text(full, sizeof full);
    const char *at = text;
    for (size_t d = 0; isdigit((unsigned char)*at) && d + 1 < sizeof names; d++) {
        const int n = (int)strspn(at, "0123456789");
        mc_text_add(&out, "%s%c=%.*s", d > 0 ? "," : "", names[d], n, at);
        at += n;
        at += *at == 'x' && isdigit((unsigned char)at[1]) ? 1 : 0;
    }
    return mc_read_mesh(*at || out.length >= sizeof full ? text : full, mesh);
}

static int add_large(request_t *r)
{
    mc_mesh_t mesh;
    if (strcmp(given.large, "none") == 0)
        return MESHCOLL_OK;
    int status = read_large(given.large, &mesh);
    if (!status)
        status = mc_verify_meshes_add(&r->meshes, &mesh);
    if (!status)
        r->meshes.mesh[r->meshes.n - 1].breadth =
            given.large_all ? MC_BREADTH_COVER : MC_BREADTH_SAMPLE;
    return status;
}

static int read_meshes(request_t *r)
{
    bool dims[4] = {false};
    mc_mesh_t mesh;
    int status;
    if (given.all == (given.mesh != NULL))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s; expected either --mesh MESH, as in --mesh box=4,gpu=8, or --all",
                       given.all ? "--all goes without --mesh"
                                 : "nothing says what is to be verified");
    if (!given.all) {
        status = mc_read_mesh(given.mesh, &mesh);
        return status ? status : mc_verify_meshes_add(&r->meshes, &mesh);
    }
    status = read_dims(given.dims, dims);
    if (!status)
        status = mc_verify_meshes_all(&r->meshes, dims, given.max_ranks);
    return status ? status : add_large(r);
}

/* Options that say something of one collective on one mesh. */
static int check_one(const char *option)
{
    if (given.collective && !given.all)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s goes with a collective and --mesh", option);
}

static int read_strategy(request_t *r)
{
    if (!given.strategy)
        return MESHCOLL_OK;
    const int status = check_one("--strategy");
    return status ? status
                  : mc_strategy_parse(given.strategy, r->collective, &r->meshes.mesh[0].mesh,
                                      &r->strategy);
}

/* A world has chunks of all its ranks: as many as ranks, in segments, unless its strategy has fewer. */
static const uint64_t MOST_CHUNKS = INT32_MAX;
enum { MOST_RANKS = 23170, MOST_SEGMENTS = 4 };
_Static_assert((uint64_t)MOST_RANKS *MOST_RANKS *MOST_SEGMENTS <= INT32_MAX, "worlds fit");

static int check_chunks(const request_t *r)
{
    mc_layout_t layout;
    const mc_mesh_t *const mesh = &r->meshes.mesh[0].mesh;
    const int status = mc_strategy_layout(&r->strategy, mesh, &layout);
    if (status)
        return status;
    if ((uint64_t)mc_layout_chunks(&layout) * (uint64_t)mesh->size > MOST_CHUNKS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%d ranks with %u chunks each are too many to follow, 2^31 in all fit; "
                       "take a smaller mesh, or fewer segments",
                       mesh->size, mc_layout_chunks(&layout));
    return MESHCOLL_OK;
}

static int check_size(const request_t *r)
{
    if (given.strategy)
        return check_chunks(r);
    for (uint32_t i = 0; i < r->meshes.n; i++)
        if (r->meshes.mesh[i].mesh.size > MOST_RANKS)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "%d ranks are too many to follow all their chunks, %d fit; take a "
                           "smaller mesh, or a --strategy that cuts less",
                           r->meshes.mesh[i].mesh.size, MOST_RANKS);
    return MESHCOLL_OK;
}

static int read_roots(request_t *r)
{
    if (!given.root)
        return MESHCOLL_OK;
    int32_t first = 0, n = 1;
    int status = check_one("--root");
    if (status)
        return status;
    const mc_mesh_t *const mesh = &r->meshes.mesh[0].mesh;
    if (strcmp(given.root, "all") == 0)
        n = mc_moves[r->collective].rooted ? mesh->size : 1;
    else
        status = mc_read_root(given.root, r->collective, mesh, &first);
    if (!status && !(r->root = malloc((size_t)n * sizeof *r->root)))
        status = mc_fail_memory("the roots");
    for (; !status && r->n_roots < n; r->n_roots++)
        r->root[r->n_roots] = first + r->n_roots;
    return status;
}

/* Work -------------------------------------------------------------------------------------------- */

static bool count_one(void *context, const mc_strategy_t *strategy)
{
    uint64_t *const n = context;
    (void)strategy;
    ++*n;
    return true;
}

/* The number of strategies depends on which dimensions are longer than 1, and on the breadth.
 * The enumeration in three dimensions is long, so the last count is cached. */
static uint64_t count_strategies(meshcoll_collective_t collective, const mc_verify_mesh_t *m)
{
    static uint64_t known[MESHCOLL_COLLECTIVES][MC_BREADTH_SAMPLE + 1][1 << MC_MAX_DIMS]
                         [MC_MAX_DIMS + 1];
    uint64_t *const n = &known[collective][m->breadth][mc_mesh_long(&m->mesh)][m->mesh.ndims];
    if (*n == 0)
        mc_verify_each(collective, m, count_one, n);
    return *n;
}

/* Items of a size that workers can share. */
static int add_items(request_t *r, meshcoll_collective_t collective, const mc_verify_mesh_t *m)
{
    const double most = 2e5; /* of an item's weight: well below a minute */
    int32_t few[MC_ALL_ROOTS];
    const uint64_t n = given.strategy ? 1 : count_strategies(collective, m);
    const int32_t roots = r->root ? r->n_roots : mc_verify_roots(collective, &m->mesh, few);
    /* a world's work grows somewhat faster than its ranks, and each has a fixed part */
    const double world = 10 + pow(m->mesh.size, 1.6);
    const double weight = world * (double)n * roots * (m->segments ? 2.5 : 1);
    const uint32_t stripes = (uint32_t)fmin((double)n, ceil(weight / most));
    mc_verify_item_t *const item = realloc(r->item, (r->n_items + stripes) * sizeof *item);
    if (!item)
        return mc_fail_memory("what is to be verified");
    r->item = item;
    for (uint32_t i = 0; i < stripes; i++)
        r->item[r->n_items++] =
            (mc_verify_item_t){.collective = collective,
                               .mesh = m,
                               .stripe = i,
                               .stripes = stripes,
                               .weight = weight / stripes,
                               .strategies = n * (m->segments ? 2 : 1) / stripes};
    return MESHCOLL_OK;
}

static int make_items(request_t *r)
{
    int status = MESHCOLL_OK;
    for (uint32_t m = 0; m < r->meshes.n; m++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES && !status; c++)
            if (!given.collective || c == (int)r->collective)
                status = add_items(r, (meshcoll_collective_t)c, &r->meshes.mesh[m]);
    return status;
}

static int verify(request_t *r)
{
    mc_verify_result_t *result;
    int status = make_items(r);
    if (status)
        return status;
    const mc_verify_job_t job = {
        .item = r->item,
        .n = r->n_items,
        .strategy = given.strategy ? &r->strategy : NULL,
        .root = r->root,
        .n_roots = r->n_roots,
        .jobs = given.jobs,
        .seconds = given.seconds,
        .options = {.random_orders = (uint32_t)given.orders, .seed = (uint64_t)given.seed}};
    status = mc_verify_run(&job, &result);
    return status ? status : mc_verify_report(&job, result, !given.collective, given.json);
}

static int read_and_verify(request_t *r)
{
    int status =
        given.collective ? mc_read_collective(given.collective, &r->collective) : MESHCOLL_OK;
    if (!status)
        status = read_meshes(r);
    if (!status)
        status = read_strategy(r);
    if (!status)
        status = check_size(r);
    if (!status)
        status = read_roots(r);
    return status ? status : verify(r);
}

static const mc_option_t options[] = {
    MC_OPTION_TEXT("mesh", "MESH", "verify on this mesh: box=4,gpu=8, or box=8+8+4", &given.mesh),
    MC_OPTION_TEXT("strategy", "STRATEGY", "this one only: its text or its name", &given.strategy),
    MC_OPTION_TEXT("root", "RANK", "this root only, or: all", &given.root),
    MC_OPTION_FLAG("all", "verify on many meshes, named x, y, z", &given.all),
    MC_OPTION_NUMBER("max-ranks", "N",
                     "with --all: every mesh of one and two dimensions up to N ranks: 64",
                     &given.max_ranks, 1, 4096),
    MC_OPTION_TEXT(
        "dims", "LIST",
        "with --all: meshes of so many dimensions (boxes of unequal sizes have 3): 1,2,3",
        &given.dims),
    MC_OPTION_TEXT("large", "MESH", "with --all: this mesh too, or none: 32x32", &given.large),
    MC_OPTION_FLAG("large-all", "every way through the large mesh, not a sample", &given.large_all),
    MC_OPTION_NUMBER("jobs", "N", "processes: as many as cores", &given.jobs, 1, MC_VERIFY_JOBS),
    MC_OPTION_NUMBER("seconds", "N", "stop after that time, and report what is left",
                     &given.seconds, 1, INT32_MAX),
    MC_OPTION_NUMBER("orders", "N", "random orders tried on each world: 1", &given.orders, 0,
                     1000000),
    MC_OPTION_NUMBER("seed", "N", "of the random orders: 1", &given.seed, 0, INT32_MAX),
    MC_OPTION_FLAG("json", "as JSON", &given.json),
    {0},
};

static int run(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    request_t r = {.n_items = 0};
    if (given.jobs == 0)
        given.jobs = cores > 0 && cores <= MC_VERIFY_JOBS ? (int32_t)cores : 1;
    const int status = read_and_verify(&r);
    free(r.item);
    free(r.root);
    mc_verify_meshes_free(&r.meshes);
    return status;
}

const mc_command_t mc_verify_command = {
    .name = "verify",
    .summary = "proof that strategies are right, one or all of them",
    .usage =
        "  meshcoll verify [COLLECTIVE] --mesh MESH [--strategy STRATEGY] [--root RANK|all]\n"
        "  meshcoll verify [COLLECTIVE] --all [--max-ranks N] [--dims 1,2,3] [--large MESH|none]\n",
    .about =
        "Proves strategies right from the plans of all ranks, without running them: every\n"
        "contribution arrives exactly once, each rank ends with what the collective promises,\n"
        "messages match, nothing waits for ever although no message is buffered, inputs stay as\n"
        "they are, in place too, and every order of steps that the plans allow gives the same.\n"
        "Nothing waits for ever either if each rank runs its steps strictly one after the other;\n"
        "'in flight' is how many messages from one rank to another must then be under way at\n"
        "most. A world is one strategy with one root.\n"
        "\n"
        "Without --strategy: every way through the mesh, dimension by dimension or merged; on 8\n"
        "ranks and fewer with every algorithm in every phase, above with each algorithm in each\n"
        "phase once, on more than 512 ranks named strategies and a sample. Up to 16 ranks every\n"
        "rank is root and the vector is also cut into three segments; above, the first, the\n"
        "middle and the last rank are roots. Of pairs of ways side by side, A | B, some are\n"
        "taken.\n"
        "\n"
        "Exit status: 0 all proved, 1 a strategy is wrong (the command that repeats it is\n"
        "printed), 2 a wrong command line, 3 out of time, all proved so far.\n",
    .examples =
        "  meshcoll verify allreduce --mesh box=4,gpu=8 --strategy hierarchical\n"
        "  meshcoll verify bcast --mesh box=3,gpu=5 --root all\n"
        "  meshcoll verify --mesh x=2,y=3,z=2\n"
        "  meshcoll verify --all\n"
        "  meshcoll verify reduce --all --max-ranks 24 --dims 1,2 --large none --seconds 60\n",
    .options = options,
    .arguments = {.text = &given.collective},
    .run = run,
};
