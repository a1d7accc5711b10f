/* The lower bound against the price of every strategy, on links of all kinds: gaps below, at and above alpha. */
#include "compose/planner/planner.h"

#include "support/places.h"
#include "support/random.h"

#include <math.h>

static const double gaps[] = {0, 0.01, 0.3, 0.5, 1, 3}; /* times alpha */

static double power_of_ten(mc_random_t *r, int least, int most)
{
    return pow(10, least + (double)mc_random_below(r, (size_t)(10 * (most - least))) / 10);
}

static void draw_links(mc_random_t *r, place_t *at)
{
    static const int32_t ports[] = {1, 2, 3, MC_PORTS_ALL};
    for (int32_t d = 0; d < at->links.ndims; d++) {
        const double alpha = power_of_ten(r, -7, -4);
        at->links.dim[d] = (mc_link_t){.alpha = alpha,
                                       .gap = alpha * gaps[mc_random_below(r, MC_COUNT(gaps))],
                                       .beta = power_of_ten(r, -12, -8),
                                       .gamma = power_of_ten(r, -13, -8),
                                       .ports = ports[mc_random_below(r, MC_COUNT(ports))],
                                       .pulled = mc_random_below(r, 4) == 0};
        at->links.correction[d] = (mc_correction_t){.burst = mc_random_below(r, 4) ? 0 : 1e5,
                                                    .cpu = mc_random_below(r, 2) ? 0 : 1e-7};
    }
    if (at->mesh.ndims > 1 && mc_random_below(r, 3) == 0)
        mc_links_share_wire(&at->links, 1);
    cr_assert_eq(mc_links_check(&at->links, &at->mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
}

typedef struct {
    const place_t *at;
    mc_random_t *random;
    int32_t root;
    mc_strategy_t before; /* the path of the other side, if it has phases */
} trial_t;

/* For a number of bytes that is drawn. */
static void expect_above(trial_t *t, const mc_strategy_t *strategy)
{
    static const double sizes[] = {1, 1000, 1e6, 1e9};
    const mc_mesh_t *const mesh = &t->at->mesh;
    const double bytes = sizes[mc_random_below(t->random, MC_COUNT(sizes))];
    const double bound = mc_lower_bound(strategy->collective, mesh, &t->at->links, bytes);
    const double seconds = mc_strategy_modelled(strategy, mesh, &t->at->links, t->root, bytes);
    char text[MC_STRATEGY_TEXT], links[MC_LINKS_TEXT];
    mc_text_t printed = mc_text(text, sizeof text), of = mc_text(links, sizeof links);
    if (seconds >= bound * (1 - 1e-9))
        return;
    mc_strategy_print(strategy, mesh, &printed);
    mc_links_print(&t->at->links, mesh, &of);
    cr_assert_fail("%s takes %g s for %g bytes, below the bound of %g; root %d, links %s", text,
                   seconds, bytes, bound, t->root, links);
}

/* Alone, in one segment or many, and as a side, with the path before it as the other one. */
static bool see(void *context, const mc_strategy_t *path)
{
    trial_t *const t = context;
    mc_strategy_t s = *path;
    s.segments = 1u << mc_random_below(t->random, 9);
    expect_above(t, &s);
    if (t->before.n_phases > 0) {
        s.segments = 16;
        s.second = s.n_phases;
        for (int32_t i = 0; i < t->before.n_phases; i++)
            s.phase[s.n_phases++] = t->before.phase[i];
        expect_above(t, &s);
    }
    t->before = *path;
    return true;
}

static void try_links(const char *mesh, uint64_t round)
{
    mc_random_t random = mc_random_of(2024, round);
    place_t at = place_of(mesh, "uniform");
    draw_links(&random, &at);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        trial_t t = {.at = &at, .random = &random};
        t.root = mc_moves[c].rooted ? (int32_t)mc_random_below(&random, (size_t)at.mesh.size) : 0;
        mc_strategy_each((meshcoll_collective_t)c, &at.mesh, MC_PATHS_COVER, see, &t);
    }
}

Test(bound, no_strategy_is_priced_below_it)
{
    static const struct {
        const char *mesh;
        uint64_t rounds; /* there are more strategies in more dimensions */
    } row[] = {{"box=2", 200},     {"box=9", 200},     {"box=64", 200},
               {"box=4,gpu=4", 4}, {"box=5,gpu=3", 4}, {"box=2,gpu=16", 4},
               {"box=9,gpu=2", 4}, {"box=4+3+1", 4},   {"rack=2,box=2,gpu=2", 1}};
    for (size_t m = 0; m < MC_COUNT(row); m++)
        for (uint64_t round = 0; round < row[m].rounds; round++)
            try_links(row[m].mesh, 1000 * m + round);
}

/* A rank that waits for nothing starts a message each gap, so P(t) = P(t - gap) + P(t - alpha) ranks are
 * reached (Karp et al. 1993). */
Test(bound, a_tree_may_start_a_message_each_gap)
{
    static const struct {
        const char *mesh;
        double us;
    } row[] = {{"x=2", 5},  {"x=3", 7},  {"x=4", 9},   {"x=5", 10},
               {"x=6", 11}, {"x=8", 12}, {"x=10", 14}, {"x=13", 15}};
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        const place_t at = place_of(row[i].mesh, "x=alpha:5us;gap:2us;beta:1GB/s");
        cr_expect_float_eq(mc_lower_bound(MESHCOLL_BCAST, &at.mesh, &at.links, 1), row[i].us * 1e-6,
                           1e-15, "%s: %g", row[i].mesh,
                           mc_lower_bound(MESHCOLL_BCAST, &at.mesh, &at.links, 1));
    }
}

/* Where sums take longest and occupy the wires, those of two dimensions overlap. */
Test(bound, sums_of_dimensions_overlap)
{
    static const char *const links[] = {
        "x=alpha:1us;beta:100GB/s;gamma:1GB/s,y=alpha:1us;beta:100GB/s;gamma:1GB/s",
        "x=alpha:1us;beta:100GB/s;gamma:1GB/s,y=alpha:1us;gap:300ns;beta:100GB/s;gamma:1GB/s"};
    for (size_t i = 0; i < MC_COUNT(links); i++) {
        mc_random_t random = mc_random_of(2025, i);
        const place_t at = place_of("x=5,y=3", links[i]);
        trial_t t = {.at = &at, .random = &random};
        mc_strategy_each(MESHCOLL_REDUCE, &at.mesh, MC_PATHS_ALL, see, &t);
    }
}
