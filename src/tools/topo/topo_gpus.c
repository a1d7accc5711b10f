#include "tools/topo/topo.h"

#include "base/gather.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

/* Asking ------------------------------------------------------------------------------------------ */

static void find(mc_gpus_t *own, mc_gpu_shape_t *shape)
{
    if (mc_gpus_find(own)) {
        own->n = 0;
        snprintf(shape->why, sizeof shape->why, "%s", meshcoll_last_error());
        return;
    }
    if (own->n == 0)
        snprintf(shape->why, sizeof shape->why, "the CUDA driver finds none");
    mc_gpus_find_cards(own);
    shape->n = own->n;
    shape->mesh = mc_gpus_suggest(own);
}

int mc_topo_gpus_open(const meshcoll_oob_t *oob, const mc_place_t *place, mc_topo_gpus_t **gpus)
{
    mc_topo_gpus_t *const g = calloc(1, sizeof *g);
    mc_gpu_shape_t *const mine = calloc(1, sizeof *mine);
    int status = g && mine ? MESHCOLL_OK : mc_fail_memory("what is known of GPUs");
    void *all = NULL;
    if (!status && place[oob->rank].machine == oob->rank)
        find(&g->own, mine);
    status = mc_gather(oob, status, mine, sizeof *mine, &all);
    free(mine);
    if (status) {
        free(g);
        return status;
    }
    g->shape = all;
    g->place = place;
    g->ranks = oob->size;
    *gpus = g;
    return MESHCOLL_OK;
}

void mc_topo_gpus_close(mc_topo_gpus_t *g)
{
    if (!g)
        return;
    free(g->shape);
    free(g);
}

static bool speaks(const mc_topo_gpus_t *g, int32_t rank)
{
    return g->place[rank].machine == rank;
}

static int32_t machines(const mc_topo_gpus_t *g)
{
    int32_t n = 0;
    for (int32_t r = 0; r < g->ranks; r++)
        n += speaks(g, r);
    return n;
}

static bool are_alike(const mc_topo_gpus_t *g)
{
    for (int32_t r = 0; r < g->ranks; r++)
        if (speaks(g, r) && (g->shape[r].n != g->shape[0].n ||
                             strcmp(g->shape[r].mesh.mesh, g->shape[0].mesh.mesh) != 0))
            return false;
    return true;
}

/* The mesh suggested for all machines; "" where they are not alike. */
static const char *whole_mesh(const mc_topo_gpus_t *g, char text[MC_MESH_TEXT])
{
    const mc_gpu_shape_t *const s = &g->shape[0];
    const int32_t n = machines(g);
    mc_text_t whole = mc_text(text, MC_MESH_TEXT);
    if (s->n == 0 || !are_alike(g))
        return "";
    if (n > 1)
        mc_text_add(&whole, "box=%d", (int)n);
    if (n == 1 || s->n > 1)
        mc_text_add(&whole, "%s%s", n > 1 ? "," : "", s->mesh.mesh);
    return text;
}

/* Text -------------------------------------------------------------------------------------------- */

static const char *const where[] = {[MC_NEAR_UNKNOWN] = "place unknown",
                                    [MC_NEAR_MACHINE] = "on another socket",
                                    [MC_NEAR_SOCKET] = "same socket",
                                    [MC_NEAR_ROOT] = "same PCIe root",
                                    [MC_NEAR_SWITCH] = "same PCIe switch"};

static mc_near_t nearest(const mc_gpus_t *g, int32_t gpu)
{
    mc_near_t best = MC_NEAR_UNKNOWN;
    for (int32_t c = 0; c < g->n_cards; c++)
        best = g->gpu[gpu].near[c] > best ? g->gpu[gpu].near[c] : best;
    return best;
}

static void add_cards(mc_table_t *table, const mc_gpus_t *g, int32_t gpu)
{
    char buffer[160];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const mc_near_t best = nearest(g, gpu);
    for (int32_t c = 0; c < g->n_cards && best > MC_NEAR_UNKNOWN; c++)
        if (g->gpu[gpu].near[c] == best)
            mc_text_add(&text, "%s%s", text.length ? "; " : "", g->card[c].name);
    if (text.length)
        mc_text_add(&text, ": %s", where[best]);
    mc_table_add(table, "%s", text.length ? buffer : "-");
}

static int32_t links_of(const mc_gpus_t *g, int32_t gpu)
{
    int32_t n = g->gpu[gpu].switched;
    for (int32_t to = 0; to < g->n; to++)
        n += g->pair[gpu][to].links;
    return n;
}

static int print_gpus(const mc_gpus_t *g)
{
    mc_table_t table = mc_table("rllrrl");
    int32_t assumed = 0;
    mc_table_add(&table, "GPU\tname\tPCI\tNUMA node\tNVLinks\tnearest network card");
    for (int32_t i = 0; i < g->n; i++) {
        mc_table_add(&table, "%d\t%s\t%s", (int)i, g->gpu[i].name, g->gpu[i].pci);
        mc_table_add(&table, g->gpu[i].node < 0 ? "-" : "%d", (int)g->gpu[i].node);
        mc_table_add(&table, g->has_nvml ? "%d%s" : "?", (int)links_of(g, i),
                     g->gpu[i].assumed ? " assumed" : "");
        assumed += g->gpu[i].assumed;
        add_cards(&table, g, i);
    }
    const int status = mc_table_print(&table, 2, stdout);
    if (!status && assumed)
        printf("  assumed: NVML does not say where these end, so they are taken as a switch's\n");
    return status;
}

static void add_pair(mc_table_t *table, const mc_gpus_t *g, int32_t from, int32_t to)
{
    const mc_gpu_pair_t *const p = &g->pair[from][to];
    const char *const atomics = p->atomics ? "*" : "";
    const int32_t a = g->gpu[from].switched, b = g->gpu[to].switched;
    if (from == to)
        mc_table_add(table, "-");
    else if (p->reach == MC_BY_HOST)
        mc_table_add(table, "host");
    else if (p->reach == MC_BY_PCIE)
        mc_table_add(table, "PCIe%s", atomics);
    else if (!g->has_nvml)
        mc_table_add(table, "fast%s", atomics);
    else
        mc_table_add(table, "NV%d%s", (int)(p->links > 0 ? p->links : a < b ? a : b), atomics);
}

static int print_pairs(const mc_gpus_t *g)
{
    char align[MC_MOST_GPUS + 2];
    memset(align, 'r', sizeof align);
    align[g->n + 1] = '\0';
    mc_table_t table = mc_table(align);
    mc_table_add(&table, "from, to");
    for (int32_t i = 0; i < g->n; i++)
        mc_table_add(&table, "%d", (int)i);
    for (int32_t from = 0; from < g->n; from++) {
        mc_table_add(&table, "%d", (int)from);
        for (int32_t to = 0; to < g->n; to++)
            add_pair(&table, g, from, to);
    }
    return mc_table_print(&table, 2, stdout);
}

static int print_own(const mc_gpus_t *g)
{
    printf("\nGPUs%s: %d, driver %s%s\n", g->found > g->n ? " (the first ones)" : "", (int)g->n,
           g->driver, g->has_nvml ? "" : "; of NVLinks nothing is known:");
    if (!g->has_nvml)
        printf("  %s\n", g->why_no_nvml);
    int status = print_gpus(g);
    if (status || g->n < 2)
        return status;
    printf("\nhow a GPU reaches the memory of another (*: with native atomics):\n%s; PCIe: by peer "
           "access;\nhost: not at all, messages go through memory of the host\n",
           g->has_nvml ? "NV and a number: over so many NVLinks"
                       : "fast: over links that the driver ranks better");
    return print_pairs(g);
}

static void print_order(const mc_gpu_mesh_t *m, int32_t n)
{
    printf("  ranks in the order of CUDA_VISIBLE_DEVICES=");
    for (int32_t i = 0; i < n; i++)
        printf("%s%d", i ? "," : "", (int)m->order[i]);
    putchar('\n');
}

static void print_suggestion(const mc_topo_gpus_t *g)
{
    char text[MC_MESH_TEXT];
    const mc_gpu_shape_t *const s = &g->shape[0];
    const char *const whole = whole_mesh(g, text);
    if (*whole)
        printf("\nsuggested mesh, with a rank for each GPU: %s\n", whole);
    if (*whole && s->n > 1)
        printf("  decided by %s\n", s->mesh.by);
    for (int32_t r = 0; r < g->ranks && !*whole; r++)
        if (speaks(g, r))
            printf("%ssuggested on the machine of rank %d: %s\n", r ? "" : "\n", (int)r,
                   g->shape[r].n > 0 ? g->shape[r].mesh.mesh : g->shape[r].why);
    if (s->n > 0 && !s->mesh.in_order)
        print_order(&s->mesh, s->n);
    if (s->n > 0 && s->mesh.flat)
        printf("  no finer one: %s\n", s->mesh.but);
}

int mc_topo_gpus_print(const mc_topo_gpus_t *g)
{
    const int status = g->own.n > 0 ? print_own(&g->own) : MESHCOLL_OK;
    if (g->own.n == 0)
        printf("\nGPUs: none: %s\n", g->shape[0].why);
    if (!status && (g->own.n > 0 || !are_alike(g)))
        print_suggestion(g);
    return status;
}

/* JSON -------------------------------------------------------------------------------------------- */

static json_t *json_gpu(const mc_gpus_t *g, int32_t i)
{
    json_t *const cards = json_array(), *const to = json_array();
    for (int32_t c = 0; c < g->n_cards; c++)
        json_array_append_new(cards, json_pack("{s:s, s:s, s:s}", "card", g->card[c].name, "pci",
                                               g->card[c].pci, "place", where[g->gpu[i].near[c]]));
    for (int32_t other = 0; other < g->n; other++) {
        static const char *const by[] = {
            [MC_BY_HOST] = "host", [MC_BY_PCIE] = "pcie", [MC_BY_NVLINK] = "nvlink"};
        const mc_gpu_pair_t *const p = &g->pair[i][other];
        json_array_append_new(to, other == i
                                      ? json_null()
                                      : json_pack("{s:s, s:i, s:i, s:b}", "by", by[p->reach],
                                                  "rank", (int)p->rank, "nvlinks", (int)p->links,
                                                  "atomics", (int)p->atomics));
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:o}", "name", g->gpu[i].name, "pci",
                     g->gpu[i].pci, "numa_node", (int)g->gpu[i].node, "nvlinks",
                     (int)links_of(g, i), "nvlinks_to_switches", (int)g->gpu[i].switched,
                     "nvlinks_assumed", (int)g->gpu[i].assumed, "reaches", to, "cards", cards);
}

json_t *mc_topo_gpus_json(const mc_topo_gpus_t *g)
{
    char text[MC_MESH_TEXT];
    const mc_gpu_mesh_t *const mesh = &g->shape[0].mesh;
    json_t *const list = json_array(), *const order = json_array();
    for (int32_t i = 0; i < g->own.n; i++) {
        json_array_append_new(list, json_gpu(&g->own, i));
        json_array_append_new(order, json_integer(mesh->order[i]));
    }
    return json_pack("{s:o, s:s, s:s, s:b, s:s, s:s, s:o}", "list", list, "none_because",
                     g->shape[0].why, "driver", g->own.driver, "nvml", (int)g->own.has_nvml,
                     "suggested_mesh", whole_mesh(g, text), "decided_by", mesh->by, "order", order);
}
