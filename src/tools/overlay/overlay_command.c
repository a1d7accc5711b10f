#include "mesh/rank_order.h"
#include "network/ends.h"
#include "network/overlay.h"
#include "simulate/simulate.h"
#include "tools/common/show.h"

#include <stdlib.h>

/* What the command line gives, and the ring; a process runs one command. */
static struct {
    const char *mesh, *links, *network, *order;
    bool json;
    mc_mesh_t on;
    mc_links_t with;
    mc_network_t between;
    mc_ring_t ring;
    int32_t each;    /* ranks of a box */
    int32_t *rank;   /* in the order given */
    int32_t *ends;   /* by rank; the three below lie behind it */
    int32_t *by_box; /* ranks as the box has them in the order given */
    struct {
        int32_t *boxes;
        mc_overlay_t laid;
    } of[2]; /* the order given, and a better one */
    bool improved;
} given;
static const char *const names[] = {"given", "better"};

/* The ends of each box, and which box is where in the order given. */
static int fill_ring(int32_t *end)
{
    int32_t per_box;
    mc_network_ends(&given.on, &given.with, end, &per_box);
    for (int32_t b = 0; b < given.ring.n_boxes; b++) {
        const int32_t first = end[b * given.each];
        given.ring.box[b].first = first;
        given.ring.box[b].n = end[(b + 1) * given.each - 1] - first + 1;
    }
    for (int32_t p = 0; p < given.on.size; p++) {
        const int32_t box = given.rank[p] / given.each;
        if (p % given.each > 0 && box != given.of[0].boxes[p / given.each])
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "a ring of boxes has the %d ranks of a box one after the other; the "
                           "order has rank %d, of another box, behind rank %d",
                           given.each, given.rank[p], given.rank[p - 1]);
        given.of[0].boxes[p / given.each] = given.of[1].boxes[p / given.each] = box;
        given.by_box[box * given.each + p % given.each] = given.rank[p];
    }
    return MESHCOLL_OK;
}

static int make_ring(void)
{
    const size_t size = (size_t)given.on.size;
    const int32_t outer = mc_network_outer(&given.on);
    given.each = mc_mesh_stride(&given.on, outer);
    given.ring.network = &given.between;
    given.ring.n_boxes = given.on.size / given.each;
    /* one room: ends of ranks, ranks by box, and the two orders */
    int32_t *const end = malloc(4 * size * sizeof *end);
    given.ring.box = malloc(size * sizeof *given.ring.box);
    given.ends = end;
    given.by_box = end + size;
    given.of[0].boxes = end + 2 * size;
    given.of[1].boxes = end + 3 * size;
    return end && given.ring.box ? fill_ring(end) : mc_fail_memory("a ring of boxes");
}

static int read_request(void)
{
    int status = mc_read_mesh(given.mesh, &given.on);
    if (!status && !given.network)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "--network is missing; expected one as in --network torus=4x4:50GB/s");
    if (!status && given.on.ragged)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "the ring is laid through boxes of equal sizes; those of %s change places "
                         "only with boxes of their own size",
                         given.mesh);
    if (!status)
        status = mc_links_parse(given.links, &given.on, &given.with);
    if (!status)
        status = mc_network_parse(given.network, &given.between);
    if (!status)
        status = mc_network_fit_to(&given.on, &given.with, &given.between);
    if (!status && given.order)
        status = mc_read_order(given.order, given.on.size, &given.rank);
    if (!status && !given.order)
        given.rank = malloc((size_t)given.on.size * sizeof *given.rank);
    if (!status && !given.rank)
        status = mc_fail_memory("an order");
    for (int32_t r = 0; !status && !given.order && r < given.on.size; r++)
        given.rank[r] = r;
    return status ? status : make_ring();
}

static int improve(void)
{
    const mc_overlay_t *const a = &given.of[0].laid, *const b = &given.of[1].laid;
    int status = mc_overlay_improve(&given.ring, given.of[1].boxes);
    for (int i = 0; i < 2 && !status; i++)
        status = mc_overlay_measure(&given.ring, given.of[i].boxes, &given.of[i].laid);
    given.improved = b->load < a->load || b->stretch < a->stretch;
    return status;
}

/* The better order, of ranks. The caller frees it. */
static char *order_text(void)
{
    for (int32_t r = 0; r < given.on.size; r++)
        given.rank[r] =
            given.by_box[given.of[1].boxes[r / given.each] * given.each + r % given.each];
    return mc_order_print(given.rank, given.on.size);
}

/* Output ------------------------------------------------------------------------------------------ */

static const char *link_name(uint32_t link)
{
    static char name[MC_NETWORK_NAME];
    mc_text_t text = mc_text(name, sizeof name);
    mc_network_name(&given.between, link, &text);
    return name;
}

static int print_busiest(const char *which, const mc_overlay_t *laid)
{
    mc_table_t table = mc_table("lrr");
    if (laid->n_busiest == 0)
        return MESHCOLL_OK;
    printf("\nthe busiest links of the %s order:\n\n", which);
    mc_table_add(&table, "link\tmessages\trate of each");
    for (int32_t i = 0; i < laid->n_busiest; i++) {
        mc_table_add(&table, "%s\t%u\t%.3g GB/s", link_name(laid->busiest[i].link),
                     laid->busiest[i].messages,
                     1e-9 / laid->busiest[i].messages /
                         mc_network_beta(&given.between, laid->busiest[i].link));
    }
    return mc_table_print(&table, 2, stdout);
}

static int print_text(const char *order)
{
    mc_table_t table = mc_table("lrrr");
    printf("a ring of the %d boxes of %s on %s\n\n", given.ring.n_boxes, mc_show_mesh(&given.on),
           mc_show_network(&given.between));
    mc_table_add(&table, "order\tstretch\tlargest load\trate of each");
    for (int i = 0; i <= given.improved; i++) {
        const mc_overlay_t *const laid = &given.of[i].laid;
        mc_table_add(&table, "%s\t%.2f\t%u", names[i], laid->stretch,
                     laid->n_busiest ? laid->busiest[0].messages : 0);
        mc_table_add(&table, laid->n_busiest ? "%.3g GB/s" : "-", 1e-9 / laid->load);
    }
    int status = mc_table_print(&table, 2, stdout);
    for (int i = 0; i <= given.improved && !status; i++)
        status = print_busiest(names[i], &given.of[i].laid);
    if (given.improved)
        printf("\nthe better order:\n%s\n", order);
    else
        printf("\nno better order was found\n");
    return status;
}

static json_t *json_laid(const mc_overlay_t *laid)
{
    json_t *const links = json_array();
    for (int32_t i = 0; i < laid->n_busiest; i++)
        json_array_append_new(links, json_pack("{s:o, s:i}", "link",
                                               mc_json_text(link_name(laid->busiest[i].link)),
                                               "messages", (int)laid->busiest[i].messages));
    return json_pack("{s:f, s:f, s:o}", "stretch", laid->stretch, "seconds_per_byte", laid->load,
                     "busiest", links);
}

static int print_json(const char *order)
{
    return mc_json_print(
        json_pack("{s:s, s:o, s:o, s:i, s:o, s:o, s:b, s:s}", "command", "overlay", "mesh",
                  mc_json_mesh(&given.on), "network", mc_json_text(mc_show_network(&given.between)),
                  "boxes", (int)given.ring.n_boxes, "given", json_laid(&given.of[0].laid), "better",
                  json_laid(&given.of[1].laid), "improved", given.improved, "order", order));
}

static const mc_option_t options[] = {
    MC_OPTION_TEXT("mesh", "MESH", "ranks by dimension, outermost first: box=8,gpu=8", &given.mesh),
    MC_OPTION_TEXT("network", "NETWORK", "between boxes; see meshcoll simulate", &given.network),
    MC_OPTION_TEXT("links", "LINKS", "whose ports boxes have; see meshcoll list links",
                   &given.links),
    MC_OPTION_TEXT("order", "ORDER", MC_ORDER_HELP, &given.order),
    MC_OPTION_FLAG("json", "as JSON", &given.json),
    {0},
};

static int run(void)
{
    int status = read_request();
    if (!status)
        status = improve();
    char *const order = status ? NULL : order_text();
    if (!status)
        status = order ? (given.json ? print_json : print_text)(order) : mc_fail_memory("an order");
    void *const parts[] = {order, given.rank, given.ring.box, given.ends};
    for (size_t i = 0; i < MC_COUNT(parts); i++)
        free(parts[i]);
    mc_network_free(&given.between);
    return status;
}

const mc_command_t mc_overlay_command = {
    .name = "overlay",
    .summary = "a ring's order laid on a described network, and a better one",
    .usage = "  meshcoll overlay --mesh MESH --network NETWORK [--order ORDER] [--links LINKS] "
             "[--json]\n",
    .about =
        "Lays a ring of all boxes on a network (see meshcoll simulate), as their order has it, "
        "and\n"
        "shows how many links a message takes and how many messages share the busiest ones. Then\n"
        "seeks a better order: one whose largest load is smaller, or as large with shorter ways. "
        "A\n"
        "box is what lies inside of the innermost dimension between boxes; it stays whole.\n"
        "simulate and plan take the order by --order, the library by MESHCOLL_ORDER.\n",
    .examples = "  meshcoll overlay --mesh box=64,gpu=8 --links dgx-h100 --network "
                "\"tree=32:16:50GB/s;ecmp\"\n"
                "  meshcoll overlay --mesh node=10240 --network torus=16x16x40:50GB/s\n"
                "  meshcoll overlay --mesh x=4 --network tree=2:1:1GB/s --order 0,2,1,3 --json\n",
    .options = options,
    .run = run,
};
