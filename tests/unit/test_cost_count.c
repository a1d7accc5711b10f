/* Costs that are not walked message by message, against a count of every message of every round. */
#include "mst/mst.h"
#include "support/costs.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { MOST_ROUNDS = 32, MOST_RANKS = 5000 };

typedef struct {
    int32_t from, to, slices;
} message_t;

typedef struct {
    message_t *message; /* MOST_RANKS a round: a rank sends at most one */
    int32_t n[MOST_ROUNDS];
} rounds_t;

static void add(rounds_t *r, int32_t depth, int32_t lo, int32_t hi, int32_t root)
{
    if (lo == hi)
        return;
    cr_assert_lt(depth, MOST_ROUNDS);
    const mc_halves_t h = mc_halve(lo, hi, root);
    const bool left = h.near <= h.mid;
    r->message[depth * MOST_RANKS + r->n[depth]++] =
        (message_t){h.near, h.far, left ? h.hi - h.mid : h.mid - h.lo + 1};
    add(r, depth + 1, h.lo, h.mid, left ? h.near : h.far);
    add(r, depth + 1, h.mid + 1, h.hi, left ? h.far : h.near);
}

static int32_t level(const mc_mesh_t *mesh, message_t m)
{
    return mc_mesh_level(mesh, m.from, m.to);
}

/* The most messages of dimension d that leave, or that enter, one box in a round. */
static int32_t crossings(const mc_mesh_t *mesh, const message_t *m, int32_t n, int32_t d)
{
    int32_t *const out = calloc(2 * MOST_RANKS, sizeof *out), *const in = out + MOST_RANKS;
    int32_t most = 0;
    cr_assert_not_null(out);
    for (int32_t i = 0; i < n; i++)
        if (level(mesh, m[i]) == d) {
            const int32_t left = ++out[m[i].from / mc_mesh_stride(mesh, d)];
            const int32_t entered = ++in[m[i].to / mc_mesh_stride(mesh, d)];
            most = left > most ? left : most;
            most = entered > most ? entered : most;
        }
    free(out);
    return most;
}

static mc_ratio_t slowed(const mc_line_shape_t *shape, int32_t d, int64_t messages)
{
    const int64_t wanted = messages * shape->sharers[d];
    return wanted > shape->ports[d] ? mc_ratio(wanted, shape->ports[d]) : mc_ratio(1, 1);
}

/* Messages and bytes by dimension; `whole`: each message is the vector. */
static mc_cost_t counted_mst(const mc_line_shape_t *shape, bool whole)
{
    const mc_mesh_t *const mesh = shape->mesh;
    rounds_t r = {.message = malloc(sizeof(message_t) * MOST_ROUNDS * MOST_RANKS)};
    mc_cost_t cost = mc_cost_zero();
    cr_assert_not_null(r.message);
    add(&r, 0, 0, shape->line.len - 1, shape->line.root);
    for (int32_t k = 0; k < MOST_ROUNDS && r.n[k]; k++) {
        const message_t *const m = r.message + k * MOST_RANKS;
        int32_t d = MC_MAX_DIMS;
        int64_t sent = 0;
        for (int32_t i = 0; i < r.n[k]; i++) {
            d = level(mesh, m[i]) < d ? level(mesh, m[i]) : d;
            sent = m[i].from == shape->line.root ? m[i].slices : sent;
        }
        const mc_ratio_t part = whole ? mc_ratio(1, 1) : mc_ratio(sent, shape->line.len);
        const mc_ratio_t slow = slowed(shape, d, crossings(mesh, m, r.n[k], d));
        cost.dim[d].alpha = mc_ratio_add(cost.dim[d].alpha, mc_ratio(1, 1));
        cost.dim[d].beta = mc_ratio_add(cost.dim[d].beta, mc_ratio_mul(part, slow));
    }
    free(r.message);
    return cost;
}

/* Round k of a full mesh: everybody's message to the k-th neighbour. */
static mc_ratio_t counted_fullmesh(const mc_line_shape_t *shape, int32_t d)
{
    const int32_t p = shape->line.len, s = mc_mesh_stride(shape->mesh, d);
    mc_ratio_t sum = {0, 1};
    for (int32_t k = 1; k < p; k++) {
        int64_t most = 0;
        for (int32_t box = 0; box < p / s; box++) {
            int64_t leave = 0;
            for (int32_t i = box * s; i < (box + 1) * s; i++)
                leave += (i + k) % p / s != box;
            most = leave > most ? leave : most;
        }
        sum = mc_ratio_add(sum, mc_ratio_mul(mc_ratio(1, p), slowed(shape, d, most)));
    }
    return sum;
}

static void expect_same(const mc_cost_t *got, const mc_cost_t *wanted, const char *what)
{
    for (int32_t d = 0; d < MC_MAX_DIMS; d++) {
        cr_expect(mc_ratio_equal(got->dim[d].alpha, wanted->dim[d].alpha), "%s: alpha of %d: %ld",
                  what, d, (long)got->dim[d].alpha.num);
        cr_expect(mc_ratio_equal(got->dim[d].beta, wanted->dim[d].beta), "%s: beta of %d: %ld/%ld",
                  what, d, (long)got->dim[d].beta.num, (long)got->dim[d].beta.den);
    }
}

static void each_shape(void (*see)(const mc_line_shape_t *shape, const char *text))
{
    static const char *const text[] = {"a=2,b=2",         "a=4,b=8",     "a=3,b=5",
                                       "a=7,b=4",         "a=8,b=1,c=8", "a=4,b=4,c=4",
                                       "a=3,b=4,c=5",     "a=5,b=2,c=6", "a=2,b=3,c=2,d=3",
                                       "a=4,b=4,c=4,d=4", "a=13,b=16",   "a=1,b=6,c=10"};
    static const struct {
        int32_t sharers, ports;
    } row[] = {{1, MC_PORTS_ALL}, {1, 1}, {8, 1}, {3, 2}, {8, 8}, {5, 16}};
    for (size_t t = 0; t < MC_COUNT(text); t++)
        for (size_t i = 0; i < MC_COUNT(row); i++) {
            mc_mesh_t mesh;
            mc_line_shape_t shape = {.mesh = &mesh, .share = {1, 1}};
            cr_assert_eq(mc_mesh_parse(text[t], &mesh), MESHCOLL_OK);
            for (int32_t d = 0; d < MC_MAX_DIMS; d++) {
                shape.sharers[d] = row[i].sharers;
                shape.ports[d] = row[i].ports;
            }
            for (int32_t root = 0; root < mesh.size; root += 1 + mesh.size / 7) {
                shape.line = mc_mesh_line(&mesh, (mc_dims_t){0, mesh.ndims}, root, root);
                see(&shape, text[t]);
            }
        }
}

static void see_mst(const mc_line_shape_t *shape, const char *text)
{
    const mc_phase_cost_t bcast = cost_of(MESHCOLL_BCAST, "mst", shape),
                          scatter = cost_of(MESHCOLL_SCATTER, "mst", shape);
    const mc_cost_t whole = counted_mst(shape, true), halves = counted_mst(shape, false);
    expect_same(&bcast.once, &whole, text);
    expect_same(&scatter.once, &halves, text);
}

Test(cost_count, merged_mst_is_what_a_walk_over_all_messages_says)
{
    each_shape(see_mst);
}

static void see_fullmesh(const mc_line_shape_t *shape, const char *text)
{
    int32_t top = 0;
    while (shape->mesh->dim[top].extent == 1)
        top++;
    const mc_phase_cost_t cost = cost_of(MESHCOLL_ALLGATHER, "fullmesh", shape);
    mc_cost_t wanted = mc_cost_zero();
    wanted.dim[top].alpha = mc_ratio(shape->line.len - 1, 1);
    wanted.dim[top].beta = counted_fullmesh(shape, top);
    expect_same(&cost.once, &wanted, text);
}

Test(cost_count, full_mesh_is_what_a_count_of_all_messages_says)
{
    each_shape(see_fullmesh);
}
