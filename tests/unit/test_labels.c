/* What the planner's search leaves out on paper: loads drawn at random that it says are cheaper are so, whatever is added
 * to both, and none costs less than its means. */
#include "compose/planner/search/labels.h"

#include "support/places.h"
#include "support/random.h"

static const char *const some_links[] = {
    "uniform",
    "uniform,x=gap:300ns,y=gap:300ns,z=gap:200ns;pulled:yes",
    "uniform,x=gap:300ns;wire:y,y=gap:200ns;pulled:yes",
};

static double part_drawn(mc_random_t *r)
{
    return mc_random_below(r, 4) ? (double)mc_random_below(r, 1000) * 1e-7 : 0;
}

static void draw(mc_random_t *r, const mc_load_kind_t *kind, double *load)
{
    for (int32_t k = 0; k < kind->n; k++)
        load[k] = part_drawn(r);
}

static void expect_bounds(mc_random_t *r, const mc_load_kind_t *kind)
{
    double load[MC_MOST_PARTS], mean[MC_MOST_MEANS];
    draw(r, kind, load);
    const double price = mc_load_price(kind, load);
    mc_load_means(kind, load, mean);
    for (int32_t m = 0; m < kind->n_means; m++)
        cr_expect_leq(mean[m], price * (1 + 1e-12), "mean %d", m);
}

static bool expect_cheaper(mc_random_t *r, const mc_load_kind_t *kind)
{
    double a[MC_MOST_PARTS], b[MC_MOST_PARTS];
    draw(r, kind, a);
    draw(r, kind, b);
    for (int32_t k = 0; k < kind->n; k++)
        a[k] = mc_random_below(r, 3) ? (a[k] < b[k] ? a[k] : b[k]) : a[k];
    const double margin = mc_random_below(r, 2) ? 1e-6 : 0;
    if (!mc_load_cheaper(kind, a, b, margin))
        return false;
    for (int i = 0; i < 20; i++) {
        double more[MC_MOST_PARTS], with_a[MC_MOST_PARTS], with_b[MC_MOST_PARTS];
        draw(r, kind, more);
        for (int32_t k = 0; k < kind->n; k++) {
            with_a[k] = a[k] + (i ? more[k] : 0);
            with_b[k] = b[k] + (i ? more[k] : 0);
        }
        cr_expect_leq(mc_load_price(kind, with_a) + margin, mc_load_price(kind, with_b) + 1e-15);
    }
    return true;
}

Test(labels, leave_out_nothing_that_may_be_cheaper)
{
    enum { CASES = 20000, LEAST = 100 };
    for (size_t l = 0; l < MC_COUNT(some_links); l++) {
        const place_t at = place_of("x=3,y=4,z=5", some_links[l]);
        const mc_planner_query_t query = {.bytes = 1e6};
        mc_random_t random = mc_random_of(5, l), *const r = &random;
        mc_priced_t graph;
        int n_cheaper = 0;
        cr_assert_eq(mc_priced_init(&graph, MESHCOLL_BCAST, &at.mesh, &at.links, &query), 0);
        const mc_load_kind_t kind = mc_load_kind(&graph);
        for (int k = 0; k < CASES; k++) {
            expect_bounds(r, &kind);
            n_cheaper += expect_cheaper(r, &kind);
        }
        cr_expect_gt(n_cheaper, LEAST, "%s: few are cheaper: %d", some_links[l], n_cheaper);
        mc_priced_free(&graph);
    }
}
