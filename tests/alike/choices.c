/* Prints what the planner chooses on links drawn at random, with all digits of what it costs: for tests/cli/test_alike.sh,
 * which compares what this prints from code for different processors. */
#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"

#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const meshes[] = {"x=64,y=8",           "box=4,gpu=8",    "x=32,y=32,z=32",
                                     "rack=2,box=2,gpu=4", "box=4+3+1",      "x=17",
                                     "a=2,b=3,c=2,d=2",    "a=4,b=4,c=2,d=4"};

/* Not of libm, which is what is looked at. */
static double drawn(mc_random_t *r, double least, double most)
{
    double value = least * (1 + (double)mc_random_below(r, 1000003) / 1000003);
    while (value < most && mc_random_below(r, 8))
        value *= 2.7182818;
    return value;
}

static void draw_link(mc_random_t *r, mc_links_t *links, int32_t d)
{
    mc_link_t link = {.alpha = drawn(r, 1e-7, 1e-4),
                      .beta = drawn(r, 1e-11, 1e-7),
                      .gamma = drawn(r, 1e-11, 1e-9),
                      .ports = mc_random_below(r, 2) ? 1 : MC_PORTS_ALL,
                      .pulled = mc_random_below(r, 3) == 0};
    link.gap = link.alpha * (double)mc_random_below(r, 3) / 2;
    links->dim[d] = link;
    links->correction[d] =
        (mc_correction_t){.cpu = mc_random_below(r, 2) ? drawn(r, 1e-8, 1e-5) : 0,
                          .burst = mc_random_below(r, 3) ? drawn(r, 1e3, 1e6) : 0};
}

static int print_choice(mc_random_t *r, meshcoll_collective_t which, const mc_mesh_t *mesh,
                        const mc_links_t *links)
{
    char buffer[MC_STRATEGY_TEXT];
    mc_ranked_t best;
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const mc_planner_query_t query = {.root = (int32_t)mc_random_below(r, (uint64_t)mesh->size),
                                      .bytes = mc_random_below(r, 10) ? drawn(r, 8, 1e9) : 0,
                                      .max_segments = 256};
    if (mc_planner_best(which, mesh, links, &query, &best)) {
        fprintf(stderr, "%s\n", meshcoll_last_error());
        return EXIT_FAILURE;
    }
    mc_strategy_print(&best.strategy, mesh, &text);
    printf("%s %a: %s %a\n", meshcoll_collective_name(which), query.bytes, buffer, best.seconds);
    return EXIT_SUCCESS;
}

int main(void)
{
    enum { CASES = 150 };
    int failed = EXIT_SUCCESS;
    for (uint64_t k = 0; k < CASES && !failed; k++) {
        mc_random_t random = mc_random_of(31, k), *const r = &random;
        mc_mesh_t mesh;
        mc_links_t links;
        if (mc_mesh_parse(meshes[mc_random_below(r, MC_COUNT(meshes))], &mesh) ||
            mc_links_parse("uniform", &mesh, &links))
            return EXIT_FAILURE;
        const bool alike = mc_random_below(r, 3) == 0;
        draw_link(r, &links, 0);
        for (int32_t d = 1; d < mesh.ndims; d++) {
            draw_link(r, &links, d);
            links.dim[d] = alike ? links.dim[0] : links.dim[d];
            links.correction[d] = alike ? links.correction[0] : links.correction[d];
        }
        for (int c = 0; c < MESHCOLL_COLLECTIVES && !failed; c++)
            failed = print_choice(r, (meshcoll_collective_t)c, &mesh, &links);
    }
    return failed;
}
