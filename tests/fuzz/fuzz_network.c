/* Texts of networks, and files of graphs: the first line is a text, what follows is the file. */
#include "fuzz/fuzz.h"
#include "network/graph.h"

enum { BOXES = 12, MOST_LINKS = 1 << 16 };

static void check_routes(mc_network_t *n, int32_t ends)
{
    char name[MC_NETWORK_NAME];
    for (int32_t a = 0; a < ends; a++)
        for (int32_t b = 0; b < ends; b++) {
            mc_network_route_t route = {0};
            FUZZ_CHECK(mc_network_route(n, a, b, &route) == MESHCOLL_OK, "%d to %d", a, b);
            FUZZ_CHECK(a != b || route.n == 0, "to itself");
            for (uint32_t i = 0; i < route.n; i++) {
                mc_text_t text = mc_text(name, sizeof name);
                FUZZ_CHECK(route.link[i] < n->n_links, "link %u of %u", route.link[i], n->n_links);
                FUZZ_CHECK(mc_network_beta(n, route.link[i]) > 0, "link %u", route.link[i]);
                mc_network_name(n, route.link[i], &text);
            }
            free(route.link);
        }
}

static void check_network(mc_network_t *n)
{
    for (int32_t per_box = 1; per_box <= 3; per_box++)
        if (mc_network_fit(n, BOXES * per_box, per_box) == MESHCOLL_OK && n->n_links <= MOST_LINKS)
            check_routes(n, BOXES * per_box);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size), *const rest = fuzz_cut_line(text);
    char first[MC_NETWORK_TEXT], second[MC_NETWORK_TEXT];
    mc_network_t n, again;
    /* no file is opened here: graphs are the bytes that follow */
    if (strncmp(text, "graph", 5) != 0 && mc_network_parse(text, &n) == MESHCOLL_OK) {
        mc_text_t a = mc_text(first, sizeof first), b = mc_text(second, sizeof second);
        mc_network_print(&n, &a);
        FUZZ_CHECK(mc_network_parse(first, &again) == MESHCOLL_OK, "%s", first);
        mc_network_print(&again, &b);
        FUZZ_CHECK(strcmp(first, second) == 0, "%s", first);
        check_network(&again);
        mc_network_free(&again);
        mc_network_free(&n);
    }
    n = (mc_network_t){.kind = MC_NETWORK_GRAPH, .beta = 1e-9, .ecmp = size % 2};
    if (mc_graph_parse("graph", rest, strlen(rest), &n.graph) == MESHCOLL_OK) {
        if (n.graph->n_nodes < 1000)
            check_network(&n);
        mc_network_free(&n);
    }
    free(text);
    return 0;
}
