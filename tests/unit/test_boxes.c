/* Boxes found and given, the order of their ranks, and their transports. */
#include "compose/planner/planner.h"
#include "mesh/rank_order.h"
#include "runtime/place/boxes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 16 };

/* Machines and nodes by letter, "aabb" and "xyxy"; nodes NULL: unbound. */
static void make_places(const char *machines, const char *nodes, mc_place_t *place)
{
    for (int32_t r = 0; machines[r]; r++) {
        cr_assert(r < MOST_PLACES);
        const int32_t first = (int32_t)(strchr(machines, machines[r]) - machines);
        const int32_t node = nodes && nodes[r] != '-' ? nodes[r] - 'a' : -1;
        place[r] = (mc_place_t){.machine = first, .node = node, .package = -1, .gpus = true};
    }
}

/* What comes of it with this order of ranks, and the communicator's ranks in the mesh's order as hexadecimal digits. */
static void check_ordered(const char *given, const char *by, const char *machines,
                          const char *nodes, const char *wanted, const char *order)
{
    char buffer[128];
    mc_place_t place[MOST_PLACES];
    mc_arranged_t a;
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const int32_t n = (int32_t)strlen(machines);
    make_places(machines, nodes, place);
    const int status = mc_arrange(given, by, place, n, &a);
    cr_assert(status == MESHCOLL_OK, "%s", meshcoll_last_error());
    mc_mesh_print(&a.mesh, &text);
    cr_expect_str_eq(buffer, wanted);
    cr_expect_eq(a.order.comm_rank == NULL, order == NULL, "%s", machines);
    for (int32_t m = 0; m < n; m++) {
        const int32_t r = mc_comm_rank_of(&a.order, m), first = a.machine[m];
        if (order)
            cr_expect_eq(r, (int32_t)strtol((char[]){order[m], '\0'}, NULL, 16), "%s: %d at %d",
                         machines, r, m);
        cr_expect_eq(mc_mesh_rank_of(&a.order, r), m);
        cr_expect(first <= m &&
                  place[mc_comm_rank_of(&a.order, first)].machine == place[r].machine);
        for (int32_t before = 0; before < first; before++)
            cr_expect_neq(place[mc_comm_rank_of(&a.order, before)].machine, place[r].machine);
    }
    mc_arranged_free(&a);
}

static void check_boxes(const char *given, const char *machines, const char *nodes,
                        const char *wanted, const char *order)
{
    check_ordered(given, NULL, machines, nodes, wanted, order);
}

Test(boxes, make_a_mesh)
{
    check_boxes(NULL, "aaaa", NULL, "gpu=4", NULL);
    check_boxes(NULL, "aabb", NULL, "box=2,gpu=2", NULL);
    check_boxes(NULL, "abc", NULL, "box=3", NULL);
    check_boxes(NULL, "a", NULL, "gpu=1", NULL);
    check_boxes(NULL, "aaabb", NULL, "box=3+2", NULL);
    check_boxes(NULL, "abbb", NULL, "box=1+3", NULL);
    check_boxes(NULL, "aaabbb", "aabaab", "box=2,gpu=3", NULL);
}

/* GPUs of any rank's machine count. */
static void check_inner(const char *machines, int32_t with_gpus, const char *wanted)
{
    mc_place_t place[MOST_PLACES];
    mc_arranged_t a;
    char buffer[MC_MESH_TEXT];
    const int32_t n = (int32_t)strlen(machines);
    make_places(machines, NULL, place);
    for (int32_t r = 0; r < n; r++)
        place[r].gpus = r == with_gpus;
    cr_assert_eq(mc_arrange(NULL, NULL, place, n, &a), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_str_eq(mc_mesh_text(&a.mesh, buffer), wanted);
    mc_arranged_free(&a);
}

Test(boxes, are_of_ranks_where_there_are_no_gpus)
{
    check_inner("aaaa", -1, "rank=4");
    check_inner("a", -1, "rank=1");
    check_inner("aabb", -1, "box=2,rank=2");
    check_inner("aabb", 3, "box=2,gpu=2");
    check_inner("abc", -1, "box=3");
    check_inner("aaabb", -1, "box=3+2");
}

/* 40000 boxes of one rank and one of 60000: more places than are numbered. */
Test(boxes, too_unequal_ones_are_refused)
{
    enum { SMALL = 40000, LARGE = 60000, RANKS = SMALL + LARGE };
    mc_place_t *const place = calloc(RANKS, sizeof *place);
    mc_arranged_t a;
    cr_assert_not_null(place);
    for (int32_t r = 0; r < RANKS; r++)
        place[r] = (mc_place_t){.machine = r < SMALL ? r : SMALL, .node = -1, .package = -1};
    cr_assert_eq(mc_arrange(NULL, NULL, place, RANKS, &a), MESHCOLL_ERR_MESH);
    cr_expect_not_null(strstr(meshcoll_last_error(), "MESHCOLL_MESH=line=100000"), "%s",
                       meshcoll_last_error());
    free(place);
}

Test(boxes, are_found_in_any_order)
{
    check_boxes(NULL, "abab", NULL, "box=2,gpu=2", "0213");
    check_boxes(NULL, "abcabc", NULL, "box=3,gpu=2", "031425");
    check_boxes(NULL, "abba", NULL, "box=2,gpu=2", "0312");
    check_boxes(NULL, "cbacbaa", NULL, "box=2+2+3", "0314256");
}

Test(boxes, are_split_by_node)
{
    check_boxes(NULL, "aaaabbbb", "aabbaabb", "box=2,numa=2,gpu=2", NULL);
    check_boxes(NULL, "aaaabbbb", "ababbaba", "box=2,numa=2,gpu=2", "02135746");
    check_boxes(NULL, "abababab", "aabbaabb", "box=2,numa=2,gpu=2", "04261537");
    check_boxes(NULL, "aaaa", "aabb", "numa=2,gpu=2", NULL);
    check_boxes(NULL, "aabb", "baca", "box=2,numa=2", "1032");
    /* one node, nodes of unequal size, boxes that differ, ranks without one */
    check_boxes(NULL, "aaaa", "bbbb", "gpu=4", NULL);
    check_boxes(NULL, "aaaa", "abbb", "gpu=4", NULL);
    check_boxes(NULL, "aaaabbbb", "aabbabab", "box=2,numa=2,gpu=2", "01234657");
    check_boxes(NULL, "aaaabbbb", "aabbaaaa", "box=2,gpu=4", NULL);
    check_boxes(NULL, "aaaabbbb", "aabbaab-", "box=2,gpu=4", NULL);
}

Test(boxes, are_split_by_socket_where_nodes_do_not_tell)
{
    mc_place_t place[4];
    mc_arranged_t a;
    char buffer[64];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    for (int32_t r = 0; r < 4; r++)
        place[r] = (mc_place_t){.machine = 0, .node = -1, .package = r % 2, .gpus = true};
    cr_assert(mc_arrange(NULL, NULL, place, 4, &a) == MESHCOLL_OK);
    mc_mesh_print(&a.mesh, &text);
    cr_expect_str_eq(buffer, "socket=2,gpu=2");
    cr_expect_eq(mc_comm_rank_of(&a.order, 1), 2);
    mc_arranged_free(&a);
}

/* As if the communicator had its ranks in that order: ranks of a box stay together. */
Test(boxes, follow_an_order)
{
    check_ordered(NULL, "0,1,2,3", "aabb", NULL, "box=2,gpu=2", NULL);
    check_ordered(NULL, "3,2,1,0", "aabb", NULL, "box=2,gpu=2", "3210");
    check_ordered(NULL, "2,0,1,3", "aabb", NULL, "box=2,gpu=2", "2301");
    check_ordered(NULL, "4-6,0-3", "aaaabbb", NULL, "box=3+4", "4560123");
    check_ordered("box=4+3", "4-6,0-3", "aaaabbb", NULL, "box=4+3", "4560123");
    check_ordered("box=2,gpu=2", "1,3,0,2", "abab", NULL, "box=2,gpu=2", "1302");
    check_ordered("x=2,y=2", "1,2,0,3", "abab", NULL, "x=2,y=2", "1203");
    check_ordered(NULL, "4-7,0-3", "aaaabbbb", "aabbabab", "box=2,numa=2,gpu=2", "46570123");
}

Test(boxes, need_every_rank_in_an_order)
{
    static const char *const wrong[] = {"0,1,2",   "0,1,2,3,4", "0,1,1,3", "0,1,2,-3", "0-4",
                                        "0,1-3-2", "0,1,2,x",   "0,1,,3",  "",         "0,1,2.5,3",
                                        "0-3,0-3", "0-",        "1e9,0-2", "0,1,2,3 "};
    mc_place_t place[4];
    mc_arranged_t a;
    make_places("aabb", NULL, place);
    for (size_t i = 0; i < MC_COUNT(wrong); i++) {
        cr_expect_eq(mc_arrange(NULL, wrong[i], place, 4, &a), MESHCOLL_ERR_INVALID_ARG, "%s",
                     wrong[i]);
        cr_expect_not_null(strstr(meshcoll_last_error(), "each of the 4 ranks once"), "%s",
                           meshcoll_last_error());
    }
}

Test(boxes, orders_round_trip)
{
    static const char *const texts[] = {"0", "1,0", "0-2", "8-15,7-0", "3,1,2,0", "0,1,3,2,4-6"};
    static const int32_t ranks[] = {1, 2, 3, 16, 4, 7};
    for (size_t i = 0; i < MC_COUNT(texts); i++) {
        int32_t *order;
        cr_assert_eq(mc_order_parse(texts[i], ranks[i], &order), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
        char *const text = mc_order_print(order, ranks[i]);
        cr_expect_str_eq(text, texts[i]);
        free(text);
        free(order);
    }
}

/* A mesh given takes the boxes' order where its box dimension is the boxes'. */
Test(boxes, of_a_mesh_given)
{
    check_boxes("box=2,gpu=2", "abab", NULL, "box=2,gpu=2", "0213");
    check_boxes("dp=2,tp=2", "abab", NULL, "dp=2,tp=2", NULL);
    check_boxes("rack=2,box=2,gpu=2", "abcdabcd", NULL, "rack=2,box=2,gpu=2", "04152637");
    check_boxes("box=2,gpu=4", "abcdabcd", NULL, "box=2,gpu=4", NULL);
    check_boxes("box=2,gpu=4", "aaaaaaaa", NULL, "box=2,gpu=4", NULL);
    check_boxes("box=2,gpu=2", "aaab", NULL, "box=2,gpu=2", NULL);
    check_boxes("box=1+2", "abb", NULL, "box=1+2", NULL);
    check_boxes("box=3+2", "ababa", NULL, "box=3+2", "02413");
    check_boxes("box=2+3", "ababa", NULL, "box=2+3", NULL);
    check_boxes("box=3+2", "aaaaa", NULL, "box=3+2", NULL);
    check_boxes("box=2,numa=2,gpu=1", "abab", "baab", "box=2,numa=2,gpu=1", "2013");
    check_boxes("box=2,gpu=2", "abab", "baab", "box=2,gpu=2", "0213");
    check_boxes("numa=2,gpu=2", "aaaa", "abab", "numa=2,gpu=2", "0213");
    check_boxes("gpu=2,x=2", "aaaa", "abab", "gpu=2,x=2", NULL);
}

Test(boxes, meshes_that_would_fit_are_named)
{
    mc_mesh_t mesh;
    cr_assert(mc_mesh_fit("box=3,gpu=4", 12, &mesh) == MESHCOLL_OK);
    cr_assert(mc_mesh_fit("box=3,gpu=3", 12, &mesh) == MESHCOLL_ERR_MESH);
    cr_expect_not_null(strstr(meshcoll_last_error(), "box=2,gpu=6 or box=3,gpu=4 or"), "%s",
                       meshcoll_last_error());
    cr_assert(mc_mesh_fit("box=3,gpu=3", 7, &mesh) == MESHCOLL_ERR_MESH);
    cr_expect_not_null(strstr(meshcoll_last_error(), "line=7 would fit"));
    cr_assert(mc_mesh_fit("box=3+5", 8, &mesh) == MESHCOLL_OK);
    cr_assert(mc_mesh_fit("box=3+5", 9, &mesh) == MESHCOLL_ERR_MESH);
    cr_expect_not_null(strstr(meshcoll_last_error(), "line=9 would fit"));
}

/* Boxes of 1 and 2 by turns, so that no run of them is written once. */
Test(boxes, that_change_sizes_each_time)
{
    enum { BOXES = 10000 };
    static mc_place_t place[2 * BOXES];
    mc_arranged_t a;
    mc_mesh_t again;
    char buffer[MC_MESH_TEXT];
    int32_t n = 0;
    for (int32_t b = 0; b < BOXES; b++)
        for (int32_t first = n, i = 0; i <= b % 2; i++)
            place[n++] = (mc_place_t){.machine = first, .node = -1, .package = -1};
    cr_assert_eq(mc_arrange(NULL, NULL, place, n, &a), MESHCOLL_OK, "%s", meshcoll_last_error());
    const char *const text = mc_mesh_text(&a.mesh, buffer);
    cr_expect_eq(strlen(text), strlen("box=") + 2 * BOXES - 1);
    cr_assert_eq(mc_mesh_parse(text, &again), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(again.ragged, a.mesh.ragged);
    mc_arranged_free(&a);
}

/* Boxes of 8, every 25th of 7, as a scheduler scatters them: found, printed and parsed, planned for, and what a mesh
 * given in that order is arranged as. */
static void expect_scattered(int32_t boxes)
{
    const int32_t size = boxes * 8 - boxes / 25;
    mc_place_t *const place = calloc((size_t)size, sizeof *place);
    mc_arranged_t a, given;
    mc_mesh_t again;
    char buffer[MC_MESH_TEXT];
    cr_assert_not_null(place);
    for (int32_t r = 0, b = 0, first = 0; r < size; r++) {
        if (r - first == (b % 25 == 13 ? 7 : 8)) {
            first = r;
            b++;
        }
        place[r] = (mc_place_t){first, -1, -1, false};
    }
    cr_assert_eq(mc_arrange(NULL, NULL, place, size, &a), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect(a.mesh.ragged && a.mesh.ragged->n == boxes && a.mesh.size == size);
    cr_assert_eq(mc_mesh_check(&a.mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
    const char *const text = mc_mesh_text(&a.mesh, buffer);
    cr_expect_eq(strncmp(text, "box=13x8+7+24x8+7+24x8+7", 24), 0, "%.40s", text);
    cr_assert_eq(mc_mesh_parse(text, &again), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(again.ragged, a.mesh.ragged);
    cr_assert_eq(mc_arrange(text, NULL, place, size, &given), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    cr_expect_eq(given.mesh.ragged, a.mesh.ragged);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const mc_planner_query_t query = {.root = 5, .bytes = 1e6, .max_segments = 64};
        mc_links_t links;
        mc_ranked_t best;
        cr_assert_eq(mc_links_parse("generic", &a.mesh, &links), MESHCOLL_OK);
        cr_expect_eq(mc_planner_best((meshcoll_collective_t)c, &a.mesh, &links, &query, &best),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
    }
    mc_arranged_free(&given);
    mc_arranged_free(&a);
    free(place);
}

Test(boxes, a_thousand_that_change_sizes_often)
{
    expect_scattered(1000);
}

Test(boxes, ten_thousand_that_change_sizes_often)
{
    expect_scattered(10000);
}

/* The boxes of a mesh given keep their order under another name too, and two names are two meshes. */
Test(boxes, of_unequal_sizes_by_another_name)
{
    mc_mesh_t box, node;
    check_boxes("node=3+2", "ababa", NULL, "node=3+2", "02413");
    cr_assert_eq(mc_mesh_parse("box=3+2", &box), MESHCOLL_OK);
    cr_assert_eq(mc_mesh_parse("node=3+2", &node), MESHCOLL_OK);
    cr_expect_neq(box.ragged, node.ragged);
    cr_expect_eq(mc_mesh_check(&node), MESHCOLL_OK, "%s", meshcoll_last_error());
}

/* The machines of 8 ranks: the first rank on each's. */
static const int32_t one[8] = {0}, two[8] = {0, 0, 0, 0, 4, 4, 4, 4},
                     four[8] = {0, 0, 2, 2, 4, 4, 6, 6}, uneven[8] = {0, 0, 0, 3, 3, 3, 3, 3};

static void check_transports(const char *mesh_text, const int32_t *machine, const char *text,
                             const char *kinds)
{
    char tls[MC_MAX_DIMS][MC_TLS_TEXT];
    mc_mesh_t mesh;
    cr_assert(mc_mesh_parse(mesh_text, &mesh) == MESHCOLL_OK);
    cr_assert(mc_boxes_transports(text, machine, &mesh, tls) == MESHCOLL_OK);
    for (int32_t d = 0; d < mesh.ndims; d++)
        cr_expect((strstr(tls[d], "shm") != NULL) == (kinds[d] == 's'), "%s, dimension %d: %s",
                  mesh_text, d, tls[d]);
}

Test(boxes, transports_follow_the_rule)
{
    check_transports("gpu=8", one, NULL, "s");
    check_transports("gpu=8", two, NULL, "n");
    check_transports("box=2,gpu=4", one, NULL, "ns");
    check_transports("box=2,gpu=4", two, NULL, "ns");
    check_transports("box=2,gpu=4", four, NULL, "nn");
    check_transports("rack=2,box=2,gpu=2", one, NULL, "nss");
    check_transports("numa=2,gpu=4", one, NULL, "ss");
    check_transports("box=2,numa=2,gpu=2", two, NULL, "nss");
    check_transports("rack=2,box=2,gpu=2", four, NULL, "nns");
    check_transports("box=5+3", one, NULL, "nss");
    check_transports("box=3+5", uneven, NULL, "nss");
    check_transports("box=5+3", uneven, NULL, "nnn");
    check_transports("box=2,gpu=4", one, "gpu=tcp,self", "nn");
    check_transports("box=2,gpu=4", one, "box=shm;gpu=tcp,self", "sn");
}

static void check_outside(const char *mesh_text, const int32_t *machine, int32_t outside)
{
    mc_mesh_t mesh;
    cr_assert(mc_mesh_parse(mesh_text, &mesh) == MESHCOLL_OK);
    cr_expect_eq(mc_boxes_outside(machine, &mesh), outside, "%s: %d", mesh_text,
                 mc_boxes_outside(machine, &mesh));
}

/* Whose traffic leaves a machine: what shares its one NIC unless links say otherwise. */
Test(boxes, dimensions_outside_of_machines_are_counted)
{
    static const int32_t turns[8] = {0, 1, 0, 1, 0, 1, 0, 1};
    check_outside("gpu=8", one, 0);
    check_outside("box=2,gpu=4", one, 0);
    check_outside("gpu=8", two, 1);
    check_outside("box=2,gpu=4", two, 1);
    check_outside("rack=2,box=2,gpu=2", two, 1);
    check_outside("rack=2,box=2,gpu=2", four, 2);
    check_outside("box=2,gpu=4", four, 2);
    check_outside("box=2,gpu=4", turns, 2);
    check_outside("box=3+5", uneven, 1);
    check_outside("box=5+3", uneven, 3);
}

static void check_middle(const char *mesh_text, const int32_t *machine, int32_t middle)
{
    mc_mesh_t mesh;
    cr_assert(mc_mesh_parse(mesh_text, &mesh) == MESHCOLL_OK);
    cr_expect_eq(mc_boxes_middle(machine, &mesh), middle, "%s: %d", mesh_text,
                 mc_boxes_middle(machine, &mesh));
}

Test(boxes, what_has_no_root_keeps_off_the_first_machine)
{
    check_middle("gpu=8", NULL, 0);
    check_middle("box=2,gpu=4", one, 0);
    check_middle("box=2,gpu=4", two, 4);
    check_middle("rack=2,box=2,gpu=2", four, 6);
    check_middle("box=3+5", uneven, 0); /* rank 0 leads a line along fold for certain */
}
