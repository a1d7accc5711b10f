/* Rings laid over networks: what they load, counted anew, and orders that must not be worse than what they began as. */
#include "network/overlay.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOUR "graph=" MC_SOURCE_DIR "/examples/four.graph:1GB/s"

enum { MOST_BOXES = 64, DRAWN = 6 };

typedef struct {
    mc_network_t network;
    mc_ring_t ring;
} laid_out_t;

static laid_out_t *lay_out(const char *text, int32_t boxes, int32_t per_box)
{
    laid_out_t *const l = calloc(1, sizeof *l);
    cr_assert_eq(mc_network_parse(text, &l->network), 0, "%s: %s", text, meshcoll_last_error());
    cr_assert_eq(mc_network_fit(&l->network, boxes * per_box, per_box), 0, "%s: %s", text,
                 meshcoll_last_error());
    l->ring.network = &l->network;
    l->ring.n_boxes = boxes;
    l->ring.box = calloc((size_t)boxes, sizeof *l->ring.box);
    for (int32_t b = 0; b < boxes; b++) {
        l->ring.box[b].first = b * per_box;
        l->ring.box[b].n = per_box;
    }
    return l;
}

static void clear(laid_out_t *l)
{
    mc_network_free(&l->network);
    free(l->ring.box);
    free(l);
}

static mc_overlay_t measured(const laid_out_t *l, const int32_t *order)
{
    mc_overlay_t o;
    cr_assert_eq(mc_overlay_measure(&l->ring, order, &o), 0);
    return o;
}

/* The same, counted link by link. */
static void check_measured(laid_out_t *l, const int32_t *order)
{
    const mc_overlay_t o = measured(l, order);
    const int32_t n = l->ring.n_boxes, each = l->ring.box[0].n;
    uint32_t *const messages = calloc(l->network.n_links, sizeof *messages);
    double load = 0;
    uint64_t links = 0;
    for (int32_t p = 0; p < n; p++)
        for (int32_t i = 0; i < each; i++) {
            mc_network_route_t route = {0};
            cr_assert_eq(mc_network_route(&l->network, l->ring.box[order[p]].first + i,
                                          l->ring.box[order[(p + 1) % n]].first + i, &route),
                         0);
            for (uint32_t k = 0; k < route.n; k++) {
                const uint32_t link = route.link[k];
                load = fmax(load, ++messages[link] * mc_network_beta(&l->network, link));
            }
            links += route.n + (l->network.kind == MC_NETWORK_TREE ? 2 : 0);
            free(route.link);
        }
    cr_expect_float_eq(o.stretch, (double)links / n / each, 1e-12);
    cr_expect_eq(o.load, load);
    for (int32_t i = 0; i < o.n_busiest; i++)
        cr_expect_eq(o.busiest[i].messages, messages[o.busiest[i].link]);
    cr_expect(o.n_busiest == 0 ||
              load == o.busiest[0].messages * mc_network_beta(&l->network, o.busiest[0].link));
    free(messages);
}

Test(overlay, four_nodes)
{
    static const int32_t best[] = {0, 2, 3, 1};
    laid_out_t *const l = lay_out(FOUR, 4, 1);
    int32_t order[] = {0, 1, 2, 3};
    mc_overlay_t o = measured(l, order);
    cr_expect_eq(o.stretch, 3.5);
    cr_expect_eq(o.busiest[0].messages, 2);
    cr_assert_eq(mc_overlay_improve(&l->ring, order), 0);
    o = measured(l, order);
    cr_expect_eq(o.stretch, 2.5);
    cr_expect_eq(o.busiest[0].messages, 1);
    cr_expect_arr_eq(order, best, sizeof best);
    clear(l);
}

static void shuffle(int32_t *order, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        order[i] = i;
    for (int32_t i = n - 1; i > 0; i--) {
        const int32_t k = rand() % (i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

static const struct {
    const char *text;
    int32_t boxes, per_box;
} networks[] = {{"tree=4:2:50GB/s/4", 16, 1},
                {"tree=4:2:50GB/s/4:1:100GB/s;ecmp", 32, 1},
                {"tree=8:4:50GB/s/8;ecmp", 8, 8},
                {"tree=4:2:50GB/s;rails;ecmp:3", 12, 4},
                {"torus=4x4x4:50GB/s", 64, 1},
                {"torus=5x7:50GB/s;ecmp", 35, 1},
                {"torus=4x2:50GB/s", 16, 2},
                {FOUR, 4, 1},
                {FOUR, 2, 2},
                {"torus=3:1GB/s", 3, 1},
                {"torus=2:1GB/s", 2, 1},
                {"torus=1:1GB/s", 1, 1}};

Test(overlay, no_order_gets_worse)
{
    srand(1);
    for (size_t i = 0; i < MC_COUNT(networks); i++) {
        laid_out_t *const l = lay_out(networks[i].text, networks[i].boxes, networks[i].per_box);
        const int32_t n = l->ring.n_boxes;
        for (int k = 0; k < DRAWN; k++) {
            int32_t order[MOST_BOXES], first;
            bool seen[MOST_BOXES] = {false};
            shuffle(order, n);
            first = order[0];
            if (n > 1)
                check_measured(l, order);
            const mc_overlay_t before = measured(l, order);
            cr_assert_eq(mc_overlay_improve(&l->ring, order), 0);
            const mc_overlay_t after = measured(l, order);
            cr_expect_leq(after.load, before.load, "%s", networks[i].text);
            cr_expect(after.load < before.load || after.stretch <= before.stretch, "%s",
                      networks[i].text);
            cr_expect_eq(order[0], first);
            for (int32_t p = 0; p < n; p++) {
                cr_assert(order[p] >= 0 && order[p] < n && !seen[order[p]]);
                seen[order[p]] = true;
            }
        }
        clear(l);
    }
}

/* A torus with an even number of nodes has a ring over links of its own, and none is shorter; leaves of a tree are left
 * once each. */
Test(overlay, the_best_is_found_where_it_is_known)
{
    static const struct {
        const char *text;
        int32_t boxes;
        double stretch;
    } known[] = {{"torus=4x4x4:50GB/s", 64, 1},
                 {"torus=2x3x6:50GB/s", 36, 1},
                 {"torus=64:50GB/s", 64, 1},
                 {"tree=8:1:50GB/s", 64, (56 * 2 + 8 * 4) / 64.0},
                 {"tree=4:4:50GB/s/4", 16, (12 * 2 + 4 * 4) / 16.0}};
    srand(2);
    for (size_t i = 0; i < MC_COUNT(known); i++) {
        laid_out_t *const l = lay_out(known[i].text, known[i].boxes, 1);
        int32_t order[MOST_BOXES];
        shuffle(order, known[i].boxes);
        cr_assert_eq(mc_overlay_improve(&l->ring, order), 0);
        const mc_overlay_t o = measured(l, order);
        cr_expect_float_eq(o.stretch, known[i].stretch, 1e-12, "%s: %g", known[i].text, o.stretch);
        cr_expect_eq(o.busiest[0].messages, 1);
        clear(l);
    }
}

static void permute(laid_out_t *l, int32_t *order, int32_t at, mc_overlay_t *best)
{
    if (at == l->ring.n_boxes) {
        const mc_overlay_t o = measured(l, order);
        if (o.load < best->load || (o.load == best->load && o.stretch < best->stretch))
            *best = o;
    }
    for (int32_t i = at; i < l->ring.n_boxes; i++) {
        const int32_t kept = order[at];
        order[at] = order[i];
        order[i] = kept;
        permute(l, order, at + 1, best);
        order[i] = order[at];
        order[at] = kept;
    }
}

/* Six boxes: all 120 rings, on leaves of two with one hashed link of two, and others. */
Test(overlay, small_rings_are_the_best_of_all)
{
    static const char *const texts[] = {"tree=2:2:1GB/s;ecmp", "tree=2:2:1GB/s;ecmp:1",
                                        "tree=2:1:1GB/s/2:1:3GB/s", "torus=2x3:1GB/s",
                                        "torus=6:1GB/s;ecmp:5"};
    for (size_t i = 0; i < MC_COUNT(texts); i++) {
        laid_out_t *const l = lay_out(texts[i], 6, 1);
        int32_t order[] = {0, 3, 1, 4, 2, 5};
        mc_overlay_t best = measured(l, order);
        permute(l, order, 1, &best);
        cr_assert_eq(mc_overlay_improve(&l->ring, order), 0);
        const mc_overlay_t found = measured(l, order);
        cr_expect(found.load == best.load && found.stretch == best.stretch,
                  "%s: %g and %g, the best is %g and %g", texts[i], found.load, found.stretch,
                  best.load, best.stretch);
        clear(l);
    }
}
