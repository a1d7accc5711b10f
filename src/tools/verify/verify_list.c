/* Meshes and strategies to verify. */
#include "tools/verify/verify_command.h"

#include <stdlib.h>

void mc_verify_meshes_free(mc_verify_meshes_t *meshes)
{
    free(meshes->mesh);
    *meshes = (mc_verify_meshes_t){0};
}

/* On three dimensions the full product is millions; segments there would treble hours. */
static mc_verify_mesh_t with_breadth(const mc_mesh_t *mesh)
{
    enum { EVERY_RANKS = 8, SEGMENT_RANKS = 16, COVER_RANKS = 512 };
    mc_verify_mesh_t m = {.mesh = *mesh, .breadth = MC_BREADTH_COVER};
    const bool flat = __builtin_popcount(mc_mesh_long(mesh)) <= 2;
    if (flat && mesh->size <= EVERY_RANKS)
        m.breadth = MC_BREADTH_EVERY;
    if (mesh->size > COVER_RANKS || __builtin_popcount(mc_mesh_long(mesh)) > 3)
        m.breadth = MC_BREADTH_SAMPLE;
    m.segments = flat && mesh->size <= SEGMENT_RANKS;
    return m;
}

int mc_verify_meshes_add(mc_verify_meshes_t *meshes, const mc_mesh_t *mesh)
{
    mc_verify_mesh_t *const more =
        mc_grown(meshes->mesh, meshes->n, &meshes->capacity, sizeof *more);
    if (!more)
        return mc_fail_memory("the meshes to verify");
    meshes->mesh = more;
    meshes->mesh[meshes->n++] = with_breadth(mesh);
    return MESHCOLL_OK;
}

static int add(mc_verify_meshes_t *meshes, int32_t ndims, int32_t x, int32_t y, int32_t z)
{
    const mc_mesh_t mesh = {
        .ndims = ndims, .size = x * y * z, .dim = {{"x", x}, {"y", y}, {"z", z}}};
    return mc_verify_meshes_add(meshes, &mesh);
}

static int add_three(mc_verify_meshes_t *meshes, int32_t max_ranks)
{
    /* extents of 1 in each place, primes, uneven ones, both ways round */
    static const int32_t extent[][3] = {{1, 1, 5}, {1, 7, 1}, {1, 3, 5}, {3, 1, 4}, {5, 3, 1},
                                        {2, 2, 2}, {2, 2, 3}, {3, 2, 2}, {2, 3, 2}, {2, 2, 5},
                                        {3, 2, 4}, {3, 3, 3}, {5, 2, 3}};
    int status = MESHCOLL_OK;
    for (size_t i = 0; i < MC_COUNT(extent) && !status; i++)
        if (extent[i][0] * extent[i][1] * extent[i][2] <= max_ranks)
            status = add(meshes, 3, extent[i][0], extent[i][1], extent[i][2]);
    return status;
}

/* Boxes of unequal sizes: a box with one rank, fold lines of one, two and three lengths, the smallest box
 * in each place. */
static int add_ragged(mc_verify_meshes_t *meshes, int32_t max_ranks)
{
    static const char *const boxes[] = {"box=2+1",       "box=1+2",     "box=3+1",   "box=1+1+2",
                                        "box=2+3",       "box=1+4",     "box=1+2+3", "box=3+1+2",
                                        "box=2+2+1+1",   "box=4+2",     "box=3+4",   "box=4+3+1",
                                        "box=2+5+2",     "box=4+3+2",   "box=7+3",   "box=5+2+4",
                                        "box=3+1+2+4+2", "box=4+4+4+2", "box=7+8",   "box=8+8+4"};
    int status = MESHCOLL_OK;
    for (size_t i = 0; i < MC_COUNT(boxes) && !status; i++) {
        mc_mesh_t mesh;
        status = mc_mesh_parse(boxes[i], &mesh);
        if (!status && mesh.size <= max_ranks)
            status = mc_verify_meshes_add(meshes, &mesh);
    }
    return status;
}

/* Small meshes first: out of time, only large ones are left out. */
int mc_verify_meshes_all(mc_verify_meshes_t *meshes, const bool dims[4], int32_t max_ranks)
{
    int status = MESHCOLL_OK;
    for (int32_t size = 1; size <= max_ranks && !status; size++) {
        if (dims[1])
            status = add(meshes, 1, size, 1, 1);
        for (int32_t x = 1; x <= size && dims[2] && !status; x++)
            if (size % x == 0)
                status = add(meshes, 2, x, size / x, 1);
    }
    if (!status && dims[3])
        status = add_three(meshes, max_ranks);
    return !status && dims[3] ? add_ragged(meshes, max_ranks) : status;
}

int32_t mc_verify_roots(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                        int32_t root[MC_ALL_ROOTS])
{
    int32_t n = 0;
    if (!mc_moves[collective].rooted) {
        root[n++] = 0;
    } else if (mesh->size <= MC_ALL_ROOTS) {
        for (; n < mesh->size; n++)
            root[n] = n;
    } else {
        root[n++] = 0;
        root[n++] = mesh->size / 2;
        root[n++] = mesh->size - 1;
    }
    return n;
}

/* Strategies ------------------------------------------------------------------------------------- */

typedef struct {
    bool (*each)(void *context, const mc_strategy_t *strategy);
    void *context;
    bool stopped;
    uint32_t number, every; /* a sample: each `every`-th */
    uint32_t passed;        /* paths, for pairs of them */
    mc_strategy_t previous; /* the last that was paired */
    const mc_mesh_t *mesh;
} sieve_t;

static bool pass(void *context, const mc_strategy_t *strategy)
{
    sieve_t *const s = context;
    if (s->number++ % s->every == 0 && !s->stopped)
        s->stopped = !s->each(s->context, strategy);
    return !s->stopped;
}

/* All pairs of paths are too many. Each `EVERY`-th is paired with the one before it that was, from
 * another one on for each size of mesh, so that every path has its turn on some. */
static bool pass_with_sides(void *context, const mc_strategy_t *strategy)
{
    enum { EVERY = 29 }; /* prime, as SAMPLE */
    sieve_t *const s = context;
    const bool chosen = s->passed++ % EVERY == 0;
    if (!pass(s, strategy) || !chosen)
        return !s->stopped;
    const mc_strategy_t first = s->previous, pair = mc_strategy_pair(&first, strategy);
    s->previous = *strategy;
    if (first.n_phases == 0)
        return true;
    /* between boxes of unequal sizes both sides go along one line of all, or neither */
    if (!s->mesh->ragged || !mc_strategy_check(&pair, s->mesh))
        s->stopped = !s->each(s->context, &pair);
    return !s->stopped;
}

/* One group of dimensions after the other: bit d of `cuts` ends a group behind dimension d. */
static void pass_groups(sieve_t *s, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                        int32_t algorithm, unsigned cuts, bool inward)
{
    mc_strategy_t strategy = {.collective = collective, .segments = 1};
    mc_dims_t group[MC_MAX_DIMS];
    int32_t n = 0, first = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (d == mesh->ndims - 1 || cuts & 1u << d) {
            group[n++] = (mc_dims_t){first, d - first + 1};
            first = d + 1;
        }
    for (int32_t i = 0; i < n; i++)
        strategy.phase[strategy.n_phases++] =
            (mc_phase_t){algorithm, group[inward ? i : n - 1 - i]};
    s->number = 0;
    if (!mesh->ragged || !mc_strategy_check(&strategy, mesh))
        pass(s, &strategy);
}

/* Composite algorithms are two phases each and not enumerated. Here each runs on all groups of
 * dimensions, in both orders. */
static void pass_composites(sieve_t *s, meshcoll_collective_t collective, const mc_mesh_t *mesh)
{
    for (int32_t a = 0; a < mc_n_algorithms; a++) {
        if (!mc_algorithms[a].parts || mc_algorithms[a].collective != collective)
            continue;
        for (unsigned cuts = 0; cuts < 1u << (mesh->ndims - 1); cuts++)
            for (int inward = cuts == 0; inward < 2; inward++)
                pass_groups(s, collective, mesh, a, cuts, inward);
    }
}

/* The named entries; only those of two sides, or all. */
static void pass_named(sieve_t *s, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                       bool all)
{
    mc_strategy_t strategy;
    for (int32_t i = 0; i < mc_named_count(); i++) {
        const mc_named_t *const named = mc_named_at(i);
        s->number = 0;
        if (named->collective == collective &&
            !mc_strategy_named(named->name, collective, mesh, &strategy) &&
            (all || mc_strategy_sides(&strategy) > 1))
            pass(s, &strategy);
    }
}

int mc_verify_each(meshcoll_collective_t collective, const mc_verify_mesh_t *mesh,
                   bool (*each)(void *context, const mc_strategy_t *strategy), void *context)
{
    enum { SAMPLE = 37 }; /* prime, so that no algorithm is left out for its place */
    sieve_t s = {.each = each, .context = context, .every = 1, .mesh = &mesh->mesh};
    const mc_paths_t which = mesh->breadth == MC_BREADTH_EVERY ? MC_PATHS_ALL : MC_PATHS_COVER;
    pass_composites(&s, collective, &mesh->mesh);
    const bool sample = mesh->breadth == MC_BREADTH_SAMPLE;
    pass_named(&s, collective, &mesh->mesh, sample);
    if (sample) {
        s.every = SAMPLE;
        s.number = 1; /* the first one is named */
    }
    s.passed = (uint32_t)mesh->mesh.size;
    /* an alltoall has one side */
    const bool sides = !sample && __builtin_popcount(mc_mesh_long(&mesh->mesh)) > 1 &&
                       collective != MESHCOLL_ALLTOALL;
    return mc_strategy_each(collective, &mesh->mesh, which, sides ? pass_with_sides : pass, &s);
}
