/* `meshcoll plan` prints what the library takes on the same mesh and links: over TCP between boxes, and over RDMA. */
#include "runtime/call/args.h"
#include "runtime/call/cache.h"
#include "support/inproc.h"
#include "tools/plan/plan_command.h"

#include <criterion/criterion.h>

/* As calibration leaves them (docs/links.md). */
static const char calibrated[] =
    "box=alpha:16us;gap:4us;beta:42ns/B;gamma:250ps/B;ports:1;pulled:no,"
    "gpu=alpha:1.19us;gap:297ns;beta:105ps/B;gamma:250ps/B;ports:2;pulled:yes";
static const char over_rdma[] =
    "box=alpha:2us;gap:500ns;beta:42ps/B;gamma:250ps/B;ports:1;pulled:no;streams:no,"
    "gpu=alpha:1.19us;gap:297ns;beta:105ps/B;gamma:250ps/B;ports:2;pulled:yes";
static const char *const meshes[] = {"box=4,gpu=4", "box=2,gpu=8", "box=8,gpu=2", "box=4,gpu=1",
                                     "box=4+3+1",   "box=2,gpu=2", "box=1,gpu=8"};
enum { MOST_RANKS = 16, LEAST = 64, MOST = 64 << 20 };

static void open_mesh(const char *text, const char *links, bool tcp, meshcoll_t **rank)
{
    const meshcoll_params_t params = {.size = sizeof params, .links = links};
    cr_assert_eq(mc_inproc_create(text, &params, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    for (int32_t r = 0; r < rank[0]->mesh.size; r++)
        if (rank[r]->transport[0])
            rank[r]->transport[0]->streams = tcp;
}

static mc_ranked_t taken(meshcoll_t *h, meshcoll_collective_t collective, size_t bytes)
{
    static float in[1], out[1]; /* nothing runs */
    const bool has_blocks = mc_move_has_blocks(&mc_moves[collective]);
    mc_call_t call = {
        .args = {.collective = collective,
                 .in = in,
                 .out = out,
                 .count = bytes / sizeof(float) / (has_blocks ? (size_t)h->mesh.size : 1),
                 .datatype = MESHCOLL_FLOAT32,
                 .op = MESHCOLL_SUM}};
    mc_cache_key(h, &call);
    cr_assert_eq(mc_cache_look(h, &call), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(call.key.bytes, bytes);
    return call.best;
}

static mc_ranked_t planned(const char *mesh, const char *links, meshcoll_collective_t collective,
                           size_t bytes)
{
    static mc_plan_request_t r;
    mc_ranked_t best = {0};
    r = (mc_plan_request_t){.collective = collective, .max_segments = MC_MAX_SEGMENTS};
    cr_assert_eq(mc_mesh_parse(mesh, &r.mesh), MESHCOLL_OK);
    cr_assert_eq(mc_plan_set_links(&r, links), MESHCOLL_OK, "%s", meshcoll_last_error());
    const mc_planner_query_t query = mc_plan_query(&r, (double)bytes, 1);
    cr_assert_eq(mc_planner_best(collective, &r.mesh, &r.links, &query, &best), MESHCOLL_OK);
    return best;
}

static void compare(meshcoll_t *h, const char *mesh, const char *links, size_t bytes)
{
    char text[2][MC_STRATEGY_TEXT];
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const mc_ranked_t both[] = {taken(h, (meshcoll_collective_t)c, bytes),
                                    planned(mesh, links, (meshcoll_collective_t)c, bytes)};
        for (int i = 0; i < 2; i++) {
            mc_text_t to = mc_text(text[i], sizeof text[i]);
            mc_strategy_print(&both[i].strategy, &h->mesh, &to);
        }
        cr_expect_str_eq(text[0], text[1], "%s of %zu bytes on %s, %s", mc_moves[c].name, bytes,
                         mesh, links);
        cr_expect_eq(both[0].seconds, both[1].seconds);
    }
}

static void compare_all(const char *links, bool tcp)
{
    meshcoll_t *rank[MOST_RANKS];
    for (size_t m = 0; m < MC_COUNT(meshes); m++) {
        open_mesh(meshes[m], links, tcp, rank);
        const size_t each = sizeof(float) * (size_t)rank[0]->mesh.size;
        for (size_t bytes = LEAST; bytes <= MOST; bytes *= 4)
            compare(rank[m % (size_t)rank[0]->mesh.size], meshes[m], links,
                    (bytes + each - 1) / each * each);
        for (int32_t r = rank[0]->mesh.size - 1; r >= 0; r--)
            meshcoll_destroy(rank[r]);
    }
}

Test(planned, is_what_the_library_takes_on_generic_links)
{
    compare_all("generic", true);
}

Test(planned, is_what_the_library_takes_on_a_cluster_with_rdma)
{
    compare_all("dgx-h100", false);
    compare_all("dgx-h100", true); /* over TCP pacing still bounds its messages, and cuts none */
}

Test(planned, is_what_the_library_takes_on_calibrated_links)
{
    compare_all(calibrated, true);
    compare_all(over_rdma, false);
}
