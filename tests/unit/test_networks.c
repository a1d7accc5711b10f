/* Described networks: their texts, their links and routes over them. */
#include "network/network.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mc_network_t network_of(const char *text, int32_t ends, int32_t per_box)
{
    mc_network_t n;
    cr_assert_eq(mc_network_parse(text, &n), 0, "%s: %s", text, meshcoll_last_error());
    cr_assert_eq(mc_network_fit(&n, ends, per_box), 0, "%s: %s", text, meshcoll_last_error());
    return n;
}

/* The names of the links of a route, with commas. */
static const char *route(mc_network_t *n, int32_t from, int32_t to)
{
    static char buffer[1024];
    mc_network_route_t r = {0};
    mc_text_t text = mc_text(buffer, sizeof buffer);
    buffer[0] = '\0';
    cr_assert_eq(mc_network_route(n, from, to, &r), 0);
    for (uint32_t i = 0; i < r.n; i++) {
        cr_assert_lt(r.link[i], n->n_links);
        mc_text_add(&text, i ? ", " : "");
        mc_network_name(n, r.link[i], &text);
    }
    free(r.link);
    return buffer;
}

/* A file with this graph; its path is valid until the next one. */
static const char *file_of(const char *text)
{
    static char path[] = "/tmp/meshcoll-graph-XXXXXX";
    memcpy(path + strlen(path) - 6, "XXXXXX", 6);
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    return path;
}

Test(networks, text_round_trips)
{
    static const char *const texts[] = {"tree=32:16:50GB/s/32",
                                        "tree=32:16:50GB/s/32:16:100GB/s;rails;ecmp",
                                        "tree=8",
                                        "tree=2:1:40ns/KiB",
                                        "torus=16x16x40:50GB/s",
                                        "torus=8:1.5GB/s;ecmp:7"};
    for (size_t i = 0; i < MC_COUNT(texts); i++) {
        char buffer[MC_NETWORK_TEXT], again[MC_NETWORK_TEXT];
        mc_text_t text = mc_text(buffer, sizeof buffer), other = mc_text(again, sizeof again);
        mc_network_t n = network_of(texts[i], i == 4 ? 10240 : 8, 1), m;
        mc_network_print(&n, &text);
        cr_assert_eq(mc_network_parse(buffer, &m), 0, "%s: %s", buffer, meshcoll_last_error());
        mc_network_print(&m, &other);
        cr_assert_str_eq(buffer, again);
        cr_assert(m.kind == n.kind && m.rails == n.rails && m.ecmp == n.ecmp && m.seed == n.seed);
        cr_assert_eq(memcmp(m.level, n.level, sizeof m.level), 0, "%s", buffer);
        if (i != 3) /* a time is printed as the shorter of time and rate */
            cr_assert_str_eq(buffer, texts[i]);
        mc_network_free(&m);
        mc_network_free(&n);
    }
}

Test(networks, wrong_texts_are_refused_with_what_was_expected)
{
    static const char *const texts[][2] = {{"", "tree=, torus= or graph="},
                                           {"mesh=4:1GB/s", "tree=, torus= or graph="},
                                           {"tree=", "a level as in"},
                                           {"tree=4:2", "a level as in"},
                                           {"tree=4:0:1GB/s", "a level as in"},
                                           {"tree=0", "at least 1"},
                                           {"tree=4:", "a level as in"},
                                           {"tree=4/4:2:1GB/s", "a level as in"},
                                           {"tree=4:2:1GB", "a level as in"},
                                           {"tree=4:2:1GB/s/", "a level as in"},
                                           {"tree=1/1/1/1/1/1/1", "a level"},
                                           {"tree=4;rail", "rails (of a tree), ecmp"},
                                           {"torus=4x4", "a rate as in"},
                                           {"torus=4y4:1GB/s", "up to 6 extents"},
                                           {"torus=4:1GB/s;rails", "rails (of"},
                                           {"torus=2x2x2x2x2x2x2:1GB/s", "up to 6 extents"},
                                           {"torus=0x4:1GB/s", "at least 1"},
                                           {"tree=9999999999", "a level as in"},
                                           {"graph=:1GB/s", "a file"},
                                           {"graph=/no/such/file:1GB/s", "there is no file"},
                                           {"torus=4:1GB/s;ecmp:x", "ecmp:SEED"},
                                           {"tree=4:2:0", "a level as in"}};
    for (size_t i = 0; i < MC_COUNT(texts); i++) {
        mc_network_t n = {.n_levels = -7};
        cr_assert_neq(mc_network_parse(texts[i][0], &n), 0, "%s", texts[i][0]);
        cr_assert_eq(n.n_levels, -7, "the output is set on failure");
        cr_expect(strstr(meshcoll_last_error(), texts[i][1]), "%s: expected '%s' in: %s",
                  texts[i][0], texts[i][1], meshcoll_last_error());
    }
}

Test(networks, what_has_no_room_is_refused)
{
    static const struct {
        const char *text;
        int32_t ends, per_box;
        const char *wanted;
    } cases[] = {{"tree=4:2:1GB/s/2", 9, 1, "room for 8"},
                 {"tree=4:2:1GB/s/2;rails", 10, 5, "room for 8, by rails"},
                 {"tree=4:2:1GB/s;rails", 9, 2, "as many ports in each box"},
                 {"torus=3x3:1GB/s", 10, 1, "each of the 9 nodes"},
                 {"torus=1000x1000x1000:1GB/s", 8, 1, "more than"},
                 {"tree=1:1000000:1GB/s/1:1000000:1GB/s", 8, 1, "more than"}};
    for (size_t i = 0; i < MC_COUNT(cases); i++) {
        mc_network_t n;
        cr_assert_eq(mc_network_parse(cases[i].text, &n), 0, "%s", meshcoll_last_error());
        cr_assert_neq(mc_network_fit(&n, cases[i].ends, cases[i].per_box), 0, "%s", cases[i].text);
        cr_expect(strstr(meshcoll_last_error(), cases[i].wanted), "%s", meshcoll_last_error());
    }
}

Test(networks, trees_route_by_destination)
{
    mc_network_t n = network_of("tree=2:2:1GB/s/2:2:2GB/s", 16, 1);
    cr_assert_str_eq(route(&n, 0, 1), "");
    cr_assert_str_eq(route(&n, 0, 2), "leaf0.0 up0, leaf1.0 down0");
    cr_assert_str_eq(route(&n, 0, 3), "leaf0.0 up1, leaf1.0 down1");
    /* destination 7 takes 7 mod 2 at the leaf, then 7 / 2 mod 2 at its spine */
    cr_assert_str_eq(route(&n, 0, 7), "leaf0.0 up1, spine0.1 up1, spine1.1 down1, leaf3.0 down1");
    cr_assert_str_eq(route(&n, 15, 4), "leaf7.0 up0, spine3.0 up0, spine1.0 down0, leaf2.0 down0");
    cr_assert_float_eq(mc_network_beta(&n, 0), 1e-9, 1e-20);
    cr_assert_float_eq(mc_network_beta(&n, n.n_links - 1), 0.5e-9, 1e-20);
    mc_network_free(&n);
}

Test(networks, rails_join_the_same_ports_of_boxes)
{
    mc_network_t n = network_of("tree=4:2:1GB/s;rails", 16, 4);
    for (int32_t a = 0; a < 16; a++)
        for (int32_t b = 0; b < 16; b++)
            cr_assert_eq(route(&n, a, b)[0] == '\0', a % 4 == b % 4, "%d to %d: %s", a, b,
                         route(&n, a, b));
    mc_network_free(&n);
}

Test(networks, hashed_routes_spread_and_stay)
{
    mc_network_t n = network_of("tree=8:8:1GB/s;ecmp:3", 16, 1);
    int used[8] = {0}, differ = 0;
    for (int32_t a = 0; a < 8; a++)
        for (int32_t b = 8; b < 16; b++) {
            char kept[1024];
            snprintf(kept, sizeof kept, "%s", route(&n, a, b));
            cr_assert_str_eq(kept, route(&n, a, b));
            used[atoi(strstr(kept, "up") + 2)]++;
        }
    for (int i = 0; i < 8; i++)
        cr_assert(used[i] > 0 && used[i] < 20, "%d", used[i]);
    mc_network_t other = network_of("tree=8:8:1GB/s;ecmp:4", 16, 1);
    for (int32_t b = 8; b < 16; b++) {
        char kept[1024];
        snprintf(kept, sizeof kept, "%s", route(&n, 0, b));
        differ += strcmp(kept, route(&other, 0, b)) != 0;
    }
    cr_assert_gt(differ, 3);
}

Test(networks, tori_take_the_short_way)
{
    mc_network_t n = network_of("torus=4x5:1GB/s", 40, 1); /* two ends a node */
    cr_assert_str_eq(route(&n, 0, 1), "");
    cr_assert_str_eq(route(&n, 0, 2), "node0.0 +y");
    cr_assert_str_eq(route(&n, 0, 8), "node0.0 -y");
    cr_assert_str_eq(route(&n, 0, 20), "node0.0 +x, node1.0 +x");
    cr_assert_str_eq(route(&n, 0, 36), "node0.0 -x, node3.0 -y, node3.4 -y");
    mc_network_free(&n);
    n = network_of("torus=4x5:1GB/s;ecmp", 20, 1);
    for (int32_t a = 0; a < 20; a++)
        for (int32_t b = 0; b < 20; b++) {
            mc_network_route_t r = {0};
            const int x = abs(a / 5 - b / 5), y = abs(a % 5 - b % 5);
            cr_assert_eq(mc_network_route(&n, a, b, &r), 0);
            cr_assert_eq((int)r.n, (x > 2 ? 4 - x : x) + (y > 2 ? 5 - y : y), "%d to %d", a, b);
            free(r.link);
        }
}

Test(networks, graphs_are_read_and_routed)
{
    char text[MC_NETWORK_TEXT];
    const char *const path = file_of("# two switches, joined twice over\n0 s\n1 s 4GB/s\n2 t\n\n3 "
                                     "t # the last\ns u\nu t\ns v\nv t\n");
    snprintf(text, sizeof text, "graph=%s:1GB/s", path);
    mc_network_t n = network_of(text, 4, 1);
    cr_assert_str_eq(route(&n, 0, 1), "0>s, s>1");
    cr_assert_str_eq(route(&n, 1, 2), "1>s, s>u, u>t, t>2");
    cr_assert_str_eq(route(&n, 1, 3), "1>s, s>v, v>t, t>3");
    cr_assert_str_eq(route(&n, 3, 0), "3>t, t>u, u>s, s>0");
    mc_network_route_t r = {0};
    cr_assert_eq(mc_network_route(&n, 0, 1, &r), 0);
    cr_assert_float_eq(mc_network_beta(&n, r.link[0]), 1e-9, 1e-20);
    cr_assert_float_eq(mc_network_beta(&n, r.link[1]), 0.25e-9, 1e-20);
    free(r.link);
    cr_assert_neq(mc_network_fit(&n, 5, 1), 0);
    cr_assert(strstr(meshcoll_last_error(), "4 ends"), "%s", meshcoll_last_error());
    mc_network_free(&n);
    unlink(path);
}

Test(networks, wrong_graphs_are_refused_with_the_line)
{
    static const char *const files[][2] = {
        {"0 1\n0\n", "line 2"},        {"0 0\n", "line 1"},
        {"0 1 2 3\n", "line 1"},       {"0 1 fast\n", "line 1"},
        {"a b\n", "no link leads to"}, {"0 a\n1 b\n", "no links lead from end 0"},
        {"", "no link leads to end 0"}};
    for (size_t i = 0; i < MC_COUNT(files); i++) {
        char text[MC_NETWORK_TEXT];
        mc_network_t n;
        const char *const path = file_of(files[i][0]);
        snprintf(text, sizeof text, "graph=%s:1GB/s", path);
        cr_assert_neq(mc_network_parse(text, &n), 0, "%s", files[i][0]);
        cr_expect(strstr(meshcoll_last_error(), files[i][1]), "%s", meshcoll_last_error());
        unlink(path);
    }
}
