#include "mesh/tile.h"

#include <criterion/criterion.h>
#include <string.h>

static mc_mesh_t mesh_of(const char *text)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(text, &mesh), 0, "%s: %s", text, meshcoll_last_error());
    return mesh;
}

Test(mesh, text_round_trips)
{
    static const char *const texts[] = {"x=1", "box=4,gpu=8", "rack=2,box=3,gpu=5",
                                        "a=2,b=1,c=3,d=7", "a=2,b=2,c=2,d=2,e=2,f=2"};
    for (size_t i = 0; i < MC_COUNT(texts); i++) {
        char buffer[256];
        mc_text_t text = mc_text(buffer, sizeof buffer);
        const mc_mesh_t mesh = mesh_of(texts[i]);
        mc_mesh_print(&mesh, &text);
        cr_assert_str_eq(buffer, texts[i]);
        cr_assert_eq(mc_mesh_check(&mesh), 0);
    }
}

Test(mesh, extents_without_names_are_of_rack_box_and_gpu)
{
    static const char *const texts[][2] = {
        {"16", "gpu=16"}, {"4x8", "box=4,gpu=8"}, {"2x4x8", "rack=2,box=4,gpu=8"}};
    char buffer[MC_MESH_TEXT];
    for (size_t i = 0; i < MC_COUNT(texts); i++) {
        const mc_mesh_t mesh = mesh_of(texts[i][0]);
        cr_assert_str_eq(mc_mesh_text(&mesh, buffer), texts[i][1]);
    }
}

Test(mesh, wrong_texts_are_refused_with_what_was_expected)
{
    static const char *const texts[] = {"",
                                        "box",
                                        "box=",
                                        "box=0",
                                        "box=-1",
                                        "=4",
                                        "own=4",
                                        "box=2,measured=4",
                                        "box=4;gpu=2",
                                        "box=4,",
                                        "x=2,x=3",
                                        "box=4 ",
                                        "4x",
                                        "x4",
                                        "4y4",
                                        "0x4",
                                        "2x2x2x2",
                                        "4=box",
                                        "a=1,b=1,c=1,d=1,e=1,f=1,g=1",
                                        "averyverylongname=3"};
    for (size_t i = 0; i < MC_COUNT(texts); i++) {
        mc_mesh_t mesh = {.size = -7};
        cr_assert_eq(mc_mesh_parse(texts[i], &mesh), MESHCOLL_ERR_PARSE, "%s", texts[i]);
        cr_assert_eq(mesh.size, -7, "the output is set on failure");
        cr_assert(strstr(meshcoll_last_error(), "box=4,gpu=8"), "%s", meshcoll_last_error());
    }
}

Test(mesh, more_ranks_than_there_may_be_are_refused)
{
    static const char *const texts[] = {"a=4194305",           "a=2147483647",
                                        "x=65536,y=65536",     "gpu=1000,x=3,y=4,numa=65536",
                                        "box=2097152+2097153", "box=3+2147483647x2147483647"};
    const int32_t sizes[] = {MC_MESH_RANKS, 1};
    mc_mesh_t mesh = {.size = -7};
    for (size_t i = 0; i < MC_COUNT(texts); i++) {
        cr_assert_eq(mc_mesh_parse(texts[i], &mesh), MESHCOLL_ERR_PARSE, "%s", texts[i]);
        cr_assert(strstr(meshcoll_last_error(), "at most 2^22 = 4194304 ranks"), "%s",
                  meshcoll_last_error());
    }
    cr_expect_eq(mc_mesh_of_boxes("box", sizes, 2, &mesh), MESHCOLL_ERR_MESH);
    cr_expect_eq(mesh.size, -7, "the output is set on failure");
    cr_expect_eq(mesh_of("a=2048,b=2048").size, MC_MESH_RANKS);
    cr_expect_eq(mesh_of("box=1+4194303").size, MC_MESH_RANKS);
}

Test(mesh, gpu_and_rank_find_each_other)
{
    const mc_mesh_t ranks = mesh_of("box=2,rank=4"), gpus = mesh_of("box=2,gpu=4"),
                    both = mesh_of("rank=2,gpu=4"), none = mesh_of("box=2,x=4");
    cr_expect_eq(mc_mesh_find(&ranks, "gpu", 3), 1);
    cr_expect_eq(mc_mesh_find(&ranks, "rank", 4), 1);
    cr_expect_eq(mc_mesh_find(&gpus, "rank", 4), 1);
    cr_expect_eq(mc_mesh_find(&both, "rank", 4), 0);
    cr_expect_eq(mc_mesh_find(&both, "gpu", 3), 1);
    cr_expect_eq(mc_mesh_find(&none, "gpu", 3), -1);
    cr_expect_eq(mc_mesh_find(&ranks, "gp", 2), -1);
    cr_expect(mc_dim_is_inside(&ranks.dim[1]) && !mc_dim_is_inside(&none.dim[1]));
}

Test(mesh, a_mesh_that_contradicts_itself_is_found)
{
    mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    mesh.size = 31;
    cr_assert_eq(mc_mesh_check(&mesh), MESHCOLL_ERR_MESH);
    mesh = mesh_of("box=4,gpu=8");
    mesh.ndims = 0;
    cr_assert_eq(mc_mesh_check(&mesh), MESHCOLL_ERR_MESH);
}

Test(mesh, ranks_and_coordinates_are_inverse)
{
    const mc_mesh_t mesh = mesh_of("rack=3,box=2,gpu=5");
    for (int32_t rank = 0; rank < mesh.size; rank++) {
        int32_t coord[MC_MAX_DIMS];
        mc_mesh_coords(&mesh, rank, coord);
        cr_assert_eq(coord[0] * 10 + coord[1] * 5 + coord[2], rank);
        cr_assert_eq(mc_mesh_rank(&mesh, coord), rank);
    }
}

Test(mesh, level_is_the_outermost_dimension_that_differs)
{
    const mc_mesh_t mesh = mesh_of("rack=3,box=2,gpu=5");
    cr_assert_eq(mc_mesh_level(&mesh, 7, 7), -1);
    cr_assert_eq(mc_mesh_level(&mesh, 0, 4), 2);
    cr_assert_eq(mc_mesh_level(&mesh, 4, 5), 1);
    cr_assert_eq(mc_mesh_level(&mesh, 9, 10), 0);
    cr_assert_eq(mc_mesh_level(&mesh, 0, 20), 0);
}

Test(mesh, lines_are_the_ranks_that_differ_in_their_dimensions)
{
    const mc_mesh_t mesh = mesh_of("rack=3,box=2,gpu=5");
    const mc_line_t box = mc_mesh_line(&mesh, (mc_dims_t){1, 1}, 17, 8);
    cr_assert_eq(box.len, 2);
    cr_assert_eq(mc_line_rank(box, 0), 12);
    cr_assert_eq(mc_line_rank(box, 1), 17);
    cr_assert_eq(box.me, 1);
    cr_assert_eq(box.root, 1, "the root's coordinate, also of a root on another line");
    const mc_line_t merged = mc_mesh_line(&mesh, (mc_dims_t){0, 2}, 17, 0);
    cr_assert_eq(merged.len, 6);
    for (int32_t i = 0; i < 6; i++)
        cr_assert_eq(mc_line_rank(merged, i), 2 + 5 * i);
    cr_assert_eq(merged.me, 3);
    cr_assert_eq(mc_right(merged), 22);
    cr_assert_eq(mc_left(merged), 12);
    const mc_line_t last = mc_mesh_line(&mesh, (mc_dims_t){0, 3}, 29, 0);
    cr_assert_eq(mc_right(last), 0, "a line is a ring");
}

/* The chunks of a tile, marked by walking its ranges; fails where one comes twice. */
typedef struct {
    uint32_t seen[512], ranges;
} seen_t;

static void mark(void *context, mc_range_t r)
{
    seen_t *const seen = context;
    uint32_t n = 0;
    seen->ranges++;
    for (uint32_t i = 0; i < mc_range_runs(r); i++)
        for (uint32_t c = 0; c < mc_range_run(r, i).n; c++, n++) {
            const uint32_t chunk = mc_range_run(r, i).first + c;
            cr_assert_eq(mc_range_chunk(r, n), chunk, "the runs are in the order of the chunks");
            cr_assert(mc_range_has(r, chunk));
            cr_assert(chunk >= mc_range_begin(r) && chunk < mc_range_end(r));
            cr_assert_eq(seen->seen[chunk]++, 0);
        }
    cr_assert_eq(n, mc_range_chunks(r));
}

/* Is the rank's chunk in the tile, by its coordinates alone? */
static bool inside(const mc_mesh_t *mesh, const mc_tile_t *v, int32_t rank)
{
    int32_t coord[MC_MAX_DIMS], index = 0;
    mc_mesh_coords(mesh, rank, coord);
    for (int32_t d = 0; d < mesh->ndims; d++) {
        if (mc_dims_has(v->cut, d))
            index = index * mesh->dim[d].extent + coord[d];
        else if (v->at[d] != MC_FREE && v->at[d] != coord[d])
            return false;
    }
    const int32_t line = mc_dims_extent(mesh, v->cut);
    return v->cut.count == 0 || (index - v->lo + line) % line < v->len;
}

static void check_tile(const mc_layout_t *layout, const mc_tile_t *v)
{
    seen_t seen = {0};
    mc_tile_ranges(layout, v, mark, &seen);
    for (int32_t rank = 0; rank < layout->mesh.size; rank++)
        cr_assert_eq(seen.seen[mc_layout_home(layout, rank, v->segment)],
                     inside(&layout->mesh, v, rank), "rank %d", rank);
}

Test(tile, ranges_are_the_chunks_of_the_ranks_inside)
{
    static const int32_t orders[][MC_MAX_DIMS] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}};
    static const bool all[MC_MAX_DIMS] = {true, true, true, true};
    const mc_mesh_t mesh = mesh_of("w=2,x=3,y=4,z=5");
    for (size_t o = 0; o < MC_COUNT(orders); o++) {
        mc_layout_t layout;
        cr_assert_eq(mc_layout_init(&mesh, all, orders[o], 2, &layout), 0);
        cr_assert_eq(mc_layout_chunks(&layout), 240);
        for (unsigned fixed = 0; fixed < 16; fixed++) {
            mc_tile_t v = mc_tile_whole(1);
            for (int32_t d = 0; d < 4; d++)
                v.at[d] = fixed >> d & 1 ? mesh.dim[d].extent - 1 : MC_FREE;
            check_tile(&layout, &v);
            for (int32_t d = 0; d < 4; d++) {
                const mc_line_t l = mc_mesh_line(&mesh, (mc_dims_t){d, 1}, 7, 0);
                for (int32_t lo = 0; lo < l.len; lo++)
                    for (int32_t hi = lo + 1; hi <= lo + l.len; hi++) {
                        const mc_tile_t slices = mc_slices(v, l, lo, hi);
                        check_tile(&layout, &slices);
                    }
            }
        }
    }
}

/* Two sides: each numbers its segments in its own order, and finds its way back. */
Test(tile, each_side_nests_in_its_own_order)
{
    static const int32_t orders[][MC_MAX_DIMS] = {{0, 1, 2}, {2, 0, 1}};
    static const bool all[MC_MAX_DIMS] = {true, true, true};
    const mc_mesh_t mesh = mesh_of("x=3,y=2,z=5");
    mc_layout_t layout;
    cr_assert_eq(mc_layout_init(&mesh, all, orders[0], 4, &layout), 0);
    mc_layout_add_side(&layout, orders[1]);
    for (uint32_t segment = 0; segment < 4; segment++) {
        mc_tile_t v = mc_tile_whole(segment);
        const int32_t outermost = orders[segment % 2][0];
        for (int32_t rank = 0; rank < mesh.size; rank++) {
            const uint32_t home = mc_layout_home(&layout, rank, segment);
            cr_assert_eq(mc_layout_rank(&layout, home), rank);
            cr_assert_eq(home / layout.per_segment, segment);
        }
        v.at[outermost] = 1;
        check_tile(&layout, &v);
        seen_t seen = {0};
        mc_tile_ranges(&layout, &v, mark, &seen);
        cr_assert_eq(seen.ranges, 1);
        v.at[outermost] = MC_FREE;
        v.at[1] = 1;
        check_tile(&layout, &v);
    }
}

Test(tile, merged_lines_slice_across_their_dimensions)
{
    static const int32_t order[MC_MAX_DIMS] = {0, 1, 2};
    static const bool all[MC_MAX_DIMS] = {true, true, true};
    const mc_mesh_t mesh = mesh_of("x=3,y=1,z=5");
    mc_layout_t layout;
    cr_assert_eq(mc_layout_init(&mesh, all, order, 1, &layout), 0);
    const mc_line_t l = mc_mesh_line(&mesh, (mc_dims_t){0, 3}, 0, 0);
    for (int32_t lo = 0; lo < 15; lo++)
        for (int32_t hi = lo + 1; hi <= lo + 15; hi++) {
            const mc_tile_t slices = mc_slices(mc_tile_whole(0), l, lo, hi);
            check_tile(&layout, &slices);
        }
}

/* Slices past the end of a line are as many ranges as slices before it. */
Test(tile, an_interval_past_the_end_of_a_line_is_on_a_ring)
{
    static const int32_t orders[][MC_MAX_DIMS] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 1, 0}};
    static const bool all[MC_MAX_DIMS] = {true, true, true};
    const mc_mesh_t mesh = mesh_of("x=3,y=5,z=2");
    for (size_t o = 0; o < MC_COUNT(orders); o++)
        for (int fixed = 0; fixed < 2; fixed++) {
            mc_layout_t layout;
            cr_assert_eq(mc_layout_init(&mesh, all, orders[o], 2, &layout), 0);
            const mc_line_t l = mc_mesh_line(&mesh, (mc_dims_t){1, 1}, 7, 0);
            mc_tile_t v = mc_tile_whole(1);
            v.at[0] = fixed ? 1 : MC_FREE;
            for (int32_t lo = 1; lo < 5; lo++) {
                const mc_tile_t slices = mc_slices(v, l, lo, lo + 4),
                                before = mc_slices(v, l, 0, 4);
                seen_t seen = {0}, wanted = {0};
                mc_tile_ranges(&layout, &slices, mark, &seen);
                mc_tile_ranges(&layout, &before, mark, &wanted);
                cr_expect_eq(seen.ranges, wanted.ranges);
                check_tile(&layout, &slices);
            }
        }
}

Test(layout, dimensions_that_are_not_cut_share_their_chunk)
{
    static const int32_t order[MC_MAX_DIMS] = {0, 1};
    static const bool cut[MC_MAX_DIMS] = {true, false};
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    mc_layout_t layout;
    cr_assert_eq(mc_layout_init(&mesh, cut, order, 3, &layout), 0);
    cr_assert_eq(mc_layout_chunks(&layout), 12);
    for (int32_t rank = 0; rank < mesh.size; rank++)
        cr_assert_eq(mc_layout_home(&layout, rank, 2), 8u + (uint32_t)rank / 8);
    cr_assert_eq(mc_layout_rank(&layout, 9), 8);
}

Test(base, sizes_parse_and_print)
{
    uint64_t bytes = 0;
    cr_assert_eq(mc_parse_bytes("64M", &bytes), 0);
    cr_assert_eq(bytes, 64u << 20);
    cr_assert_eq(mc_parse_bytes("64KB", &bytes), 0); /* as in links */
    cr_expect_eq(bytes, 64000);
    cr_assert_eq(mc_parse_bytes("64k", &bytes), 0);
    cr_expect_eq(bytes, 65536);
    cr_assert_eq(mc_parse_bytes("1.5KiB", &bytes), 0);
    cr_assert_eq(bytes, 1536);
    cr_assert_eq(mc_parse_bytes("1.001KB", &bytes), 0, "%s", meshcoll_last_error());
    cr_assert_eq(bytes, 1001);
    cr_assert_str_eq(mc_print_bytes(1536).text, "1.5 KiB");
    cr_expect_str_eq(mc_print_bytes(8e6).text, "8 MB");
    cr_expect_str_eq(mc_print_bytes(1.2e9).text, "1.2 GB");
    cr_expect_str_eq(mc_print_bytes(1000 * 1024).text, "1000 KiB");
    static const char *const wrong[] = {"",    "M",    "-1",   "64X",   "1e99",     "12 M",
                                        "1.5", "0.3K", "0x10", "0X1p4", "1.0001KiB"};
    for (size_t i = 0; i < MC_COUNT(wrong); i++)
        cr_assert_eq(mc_parse_bytes(wrong[i], &bytes), MESHCOLL_ERR_PARSE, "%s", wrong[i]);
}

/* Sizes of 1 to 4 in 2 to 4 boxes: texts round-trip; ranks are the places taken, in order; only fold
 * lines differ in length; whoever leads stands at fold 0. */
Test(mesh, boxes_of_unequal_sizes)
{
    for (int32_t code = 0; code < 4 * 4 * 4 * 4; code++) {
        const int32_t sizes[] = {code % 4 + 1, code / 4 % 4 + 1, code / 16 % 4 + 1, code / 64 + 1};
        for (int32_t n = 2; n <= 4; n++) {
            char buffer[MC_MESH_TEXT];
            mc_mesh_t mesh, again;
            mc_text_t text = mc_text(buffer, sizeof buffer);
            cr_assert_eq(mc_mesh_of_boxes("box", sizes, n, &mesh), 0);
            cr_assert_eq(mc_mesh_check(&mesh), 0, "%s", meshcoll_last_error());
            mc_mesh_print(&mesh, &text);
            cr_assert_eq(mc_mesh_parse(buffer, &again), 0, "%s", meshcoll_last_error());
            cr_assert(again.ragged == mesh.ragged && again.size == mesh.size);
            for (int32_t leader = 0; leader < mesh.size && mesh.ragged; leader++) {
                const mc_mesh_t led = mc_mesh_led_by(&mesh, leader);
                int32_t coord[MC_MAX_DIMS], seen = 0;
                for (int32_t place = 0; place < mc_mesh_places(&led); place++) {
                    const int32_t rank = mc_mesh_rank_at(&led, place);
                    if (rank < 0)
                        continue;
                    cr_assert_eq(mc_mesh_place(&led, rank), place);
                    cr_assert(leader > 0 || rank == seen);
                    seen++;
                }
                cr_assert_eq(seen, led.size);
                mc_mesh_coords(&led, leader, coord);
                cr_assert_eq(coord[MC_RAGGED_FOLD], 0);
            }
        }
    }
}

/* The grid of few boxes that are large and many that are small has more places than have numbers. */
Test(mesh, too_unequal_boxes)
{
    mc_mesh_t mesh = {.size = 7};
    cr_assert_eq(mc_mesh_parse("box=46340+46339x1", &mesh), 0, "%s", meshcoll_last_error());
    cr_expect_eq(mc_mesh_places(&mesh), 46340 * 46340);
    cr_expect_eq(mc_mesh_place(&mesh, mesh.size - 1), 46339 * 46340);
    mesh.size = 7;
    cr_expect_eq(mc_mesh_parse("box=46341+46340x1", &mesh), MESHCOLL_ERR_MESH);
    cr_expect_eq(mesh.size, 7);
    cr_expect(strstr(meshcoll_last_error(), "too unequal, 1 to 46341 ranks"), "%s",
              meshcoll_last_error());
}
