#include "tools/topo/topo.h"

#include "base/gather.h"
#include "runtime/place/places.h"
#include "tools/common/ranks.h"
#include "tools/common/show.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More rows than these are not read; --json has them all. */
enum { MOST_ROWS = 64 };

/* What the command line gives; a process runs one command. */
static struct {
    const char *mesh, *links, *svg, *file;
    bool json;
} given;

static bool any_bound(const mc_topo_t *t)
{
    for (int32_t r = 0; t->rank && r < t->mesh.size; r++)
        if (t->rank[r].bound.cpus[0])
            return true;
    return false;
}

/* Text ---------------------------------------------------------------------------------------------*/

/* "0-7" where they follow each other, else "0 4 8 …" */
static void add_ranks(mc_table_t *table, const mc_topo_t *t, int32_t first, int32_t n)
{
    char buffer[128];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const int32_t lowest = mc_comm_rank_of(&t->order, first);
    bool follow = n > 2;
    for (int32_t i = 0; i < n; i++)
        follow = follow && mc_comm_rank_of(&t->order, first + i) == lowest + i;
    if (follow)
        mc_text_add(&text, "%d-%d", lowest, lowest + n - 1);
    for (int32_t i = 0; i < n && !follow && text.length < sizeof buffer - 16; i++)
        mc_text_add(&text, "%s%d%s", i ? " " : "", mc_comm_rank_of(&t->order, first + i),
                    text.length > sizeof buffer - 32 && i + 1 < n ? " …" : "");
    mc_table_add(table, "%s", buffer);
}

static void add_head(mc_table_t *table, const mc_topo_t *t, int32_t dims, bool bound)
{
    for (int32_t d = 0; d < dims; d++)
        mc_table_add(table, "%s", t->mesh.dim[d].name);
    mc_table_add(table, "%s\t%s%s", dims < t->mesh.ndims ? "ranks" : "rank",
                 t->rank ? "machine" : "", bound ? "\tsocket\tNUMA node\tCPUs" : "");
}

/* The ranks [first, first + n), which are one or a line of the innermost dimension. */
static void add_row(mc_table_t *table, const mc_topo_t *t, int32_t dims, int32_t first, int32_t n,
                    bool bound)
{
    int32_t coord[MC_MAX_DIMS];
    const mc_topo_rank_t *const its = mc_topo_rank(t, first);
    mc_mesh_coords(&t->mesh, first, coord);
    for (int32_t d = 0; d < dims; d++)
        mc_table_add(table, "%d", coord[d]);
    add_ranks(table, t, first, n);
    mc_table_add(table, "%s", !its ? "" : mc_topo_one_machine(t, first, n) ? its->host : "several");
    if (!bound)
        return;
    mc_table_add(table, its->bound.package < 0 ? "-" : "%d", its->bound.package);
    mc_table_add(table, its->bound.node < 0 ? "-" : "%d", its->bound.node);
    mc_table_add(table, "%s", its->bound.cpus[0] ? its->bound.cpus : "all");
}

static int print_ranks(const mc_topo_t *t)
{
    char align[MC_MAX_DIMS + 8] = "";
    const bool bound = any_bound(t);
    const int32_t dims = t->mesh.ndims - !bound;
    int32_t rows = 0;
    for (int32_t d = 0; d < dims; d++)
        strcat(align, "r");
    strcat(align, bound ? "rlrrl" : "ll");
    mc_table_t table = mc_table(align);
    add_head(&table, t, dims, bound);
    for (int32_t first = 0, n, line; first < t->mesh.size; first += n, rows++) {
        n = bound ? 1 : mc_mesh_span(&t->mesh, dims, first, &line);
        if (rows < MOST_ROWS)
            add_row(&table, t, dims, first, n, bound);
    }
    const int status = mc_table_print(&table, 2, stdout);
    if (!status && rows > MOST_ROWS)
        printf("  … and %d more rows\n", rows - MOST_ROWS);
    return status;
}

static int print_text(const mc_topo_t *t)
{
    const int32_t machines = mc_topo_machines(t);
    printf("%s: %d rank%s", mc_show_mesh(&t->mesh), t->mesh.size, t->mesh.size == 1 ? "" : "s");
    if (machines)
        printf(" on %d machine%s", machines, machines == 1 ? "" : "s");
    printf(", %s\n\nlinks: %s\n", t->origin, t->source);
    int status = mc_show_links(&t->mesh, &t->links);
    printf("\n");
    if (!status)
        status = print_ranks(t);
    if (!status && t->gpus)
        status = mc_topo_gpus_print(t->gpus);
    if (!status && given.svg)
        printf("\ndrawn in %s\n", given.svg);
    return status;
}

/* JSON -------------------------------------------------------------------------------------------- */

static json_t *json_rank(const mc_topo_t *t, int32_t mesh_rank)
{
    int32_t coord[MC_MAX_DIMS];
    json_t *const coords = json_array();
    const mc_topo_rank_t *const its = mc_topo_rank(t, mesh_rank);
    mc_mesh_coords(&t->mesh, mesh_rank, coord);
    for (int32_t d = 0; d < t->mesh.ndims; d++)
        json_array_append_new(coords, json_integer(coord[d]));
    json_t *const rank = json_pack("{s:i, s:o}", "rank", (int)mc_comm_rank_of(&t->order, mesh_rank),
                                   "coords", coords);
    if (!its)
        return rank;
    const int32_t first = mc_comm_rank_of(&t->order, t->machine[mesh_rank]);
    json_object_set_new(rank, "machine", mc_json_text(its->host));
    json_object_set_new(rank, "machine_of", json_integer(first));
    json_object_set_new(rank, "socket", json_integer(its->bound.package));
    json_object_set_new(rank, "numa_node", json_integer(its->bound.node));
    json_object_set_new(rank, "cpus", json_string(its->bound.cpus));
    return rank;
}

static int print_json(const mc_topo_t *t)
{
    json_t *const ranks = json_array();
    for (int32_t m = 0; m < t->mesh.size; m++)
        json_array_append_new(ranks, json_rank(t, m));
    return mc_json_print(json_pack("{s:s, s:o, s:s, s:i, s:s, s:o, s:o, s:o}", "command", "topo",
                                   "mesh", mc_json_mesh(&t->mesh), "origin", t->origin, "machines",
                                   (int)mc_topo_machines(t), "links_source", t->source, "links",
                                   mc_json_links(&t->mesh, &t->links), "ranks", ranks, "gpus",
                                   t->gpus ? mc_topo_gpus_json(t->gpus) : json_null()));
}

static int show(const mc_topo_t *t)
{
    const int status = given.svg ? mc_topo_draw(t, given.svg) : MESHCOLL_OK;
    return status ? status : (given.json ? print_json : print_text)(t);
}

/* `text`: NULL for the default preset. */
static int show_links(mc_topo_t *t, const char *text)
{
    const int status = mc_links_parse(text, &t->mesh, &t->links);
    return status ? status : show(t);
}

static const char *given_source(void)
{
    static char text[1024];
    if (given.links)
        snprintf(text, sizeof text, MC_TOPO_GIVEN, given.links);
    else
        snprintf(text, sizeof text, "the preset %s, as none are given", mc_cluster_presets[0].name);
    return text;
}

/* A mesh without ranks ---------------------------------------------------------------------------- */

static int show_given(void)
{
    mc_topo_t t = {.origin = "given", .source = given_source()};
    const int status = mc_read_mesh(given.mesh, &t.mesh);
    return status ? status : show_links(&t, given.links);
}

/* Ranks ------------------------------------------------------------------------------------------- */

/* Ranks bound to cores of a file, where there are no `gpus`, or those that run. `from`: of the settings' links. */
static int show_ranks(const mc_settings_t *settings, const char *from, const mc_place_t *place,
                      const mc_topo_rank_t *ranks, const mc_topo_gpus_t *gpus, int32_t n)
{
    mc_arranged_t a;
    int status = mc_arrange(settings->mesh, settings->order, place, n, &a);
    if (status)
        return status;
    mc_topo_t t = {.mesh = a.mesh,
                   .order = a.order,
                   .machine = a.machine,
                   .rank = ranks,
                   .gpus = gpus,
                   .source = from,
                   .origin = settings->mesh ? "given"
                             : gpus         ? "found"
                                            : "found with one for each core"};
    status = show_links(&t, settings->links);
    mc_arranged_free(&a);
    return status;
}

static int show_file(void)
{
    mc_bound_to_t *bound = NULL;
    int32_t n = 0;
    if (mc_ranks_launched())
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--file shows a file without a job; ranks take it from HWLOC_XMLFILE");
    int status = mc_bound_to_cores(given.file, &bound, &n);
    if (status)
        return status;
    mc_place_t *const place = calloc((size_t)n, sizeof *place);
    mc_topo_rank_t *const ranks = calloc((size_t)n, sizeof *ranks);
    for (int32_t i = 0; place && ranks && i < n; i++) {
        place[i] = (mc_place_t){.node = bound[i].node, .package = bound[i].package};
        ranks[i].bound = bound[i];
        snprintf(ranks[i].host, sizeof ranks[i].host, "%s", basename(given.file));
    }
    const mc_settings_t settings = {.mesh = given.mesh, .links = given.links};
    status = place && ranks ? show_ranks(&settings, given_source(), place, ranks, NULL, n)
                            : mc_fail_memory("the cores of a file");
    free(ranks);
    free(place);
    free(bound);
    return status;
}

static int show_running(const mc_topo_found_t *found, const meshcoll_oob_t *oob,
                        const mc_topo_gpus_t *gpus)
{
    mc_topo_rank_t mine = {0};
    void *all = NULL;
    int exit = MC_EXIT_OK;
    gethostname(mine.host, sizeof mine.host - 1);
    mc_bound_to_find(&mine.bound);
    int status = mc_gather(oob, MESHCOLL_OK, &mine, sizeof mine, &all);
    if (status)
        return status;
    if (oob->rank == 0)
        exit = mc_tool_exit(mc_topo_command.name, show_ranks(&found->settings, found->source,
                                                             found->place, all, gpus, oob->size));
    free(all);
    status = mc_ranks_share(oob, &exit, sizeof exit);
    return status ? status : exit;
}

/* One rank speaks for all, and all exit as it does. */
static int run_ranks(void)
{
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = given.mesh, .links = given.links};
    mc_topo_found_t found = {.place = NULL};
    mc_topo_gpus_t *gpus = NULL;
    mc_ranks_t ranks;
    int status = mc_ranks_open(&ranks);
    if (status)
        return status;
    status = mc_topo_find(&ranks, &params, &found);
    if (!status)
        status = mc_topo_gpus_open(&ranks.oob, found.place, &gpus);
    if (!status)
        status = show_running(&found, &ranks.oob, gpus);
    mc_topo_gpus_close(gpus);
    mc_topo_found_free(&found);
    mc_ranks_close(&ranks);
    return status;
}

static const mc_option_t options[] = {
    MC_OPTION_TEXT("mesh", "MESH",
                   "box=4,gpu=8, or box=8+8+4; left out in a job: as the library finds it",
                   &given.mesh),
    MC_OPTION_TEXT("links", "LINKS",
                   "a preset or links by hand; left out: measured ones, else a preset",
                   &given.links),
    MC_OPTION_TEXT("file", "FILE",
                   "the machine in an XML file of lstopo (hwloc), with a rank for each core",
                   &given.file),
    MC_OPTION_TEXT("svg", "FILE", "draw it there", &given.svg),
    MC_OPTION_FLAG("json", "as JSON", &given.json),
    {0},
};

static int run(void)
{
    if (given.file)
        return show_file();
    return given.mesh && !mc_ranks_launched() ? show_given() : run_ranks();
}

const mc_command_t mc_topo_command = {
    .name = "topo",
    .summary = "shows a mesh: boxes, ranks and links, as text or drawn; and GPUs",
    .usage = "  meshcoll run -n RANKS meshcoll topo [--mesh MESH] [--links LINKS] [--svg FILE]\n"
             "  meshcoll topo --mesh MESH [--links LINKS] [--svg FILE]\n"
             "  meshcoll topo --file FILE [--mesh MESH] [--links LINKS] [--svg FILE]\n",
    .about =
        "Shows a mesh: its boxes, the ranks in them with their binding, and its links, measured\n"
        "or of a preset. In a job of meshcoll run, torchrun, srun or mpirun it is the mesh that a\n"
        "program started the same way would find, and the GPUs of its machines: which reach\n"
        "which, which network card is near, and the mesh that this suggests. Otherwise it is the\n"
        "given one, and no rank runs; with none given, this machine. With --file it is the mesh\n"
        "of ranks bound to the cores of a machine in a file of lstopo. --svg draws the mesh.\n",
    .examples = "  srun -n 8 --cpu-bind=cores meshcoll topo\n"
                "  meshcoll run -n 8 meshcoll topo --mesh box=2,gpu=4 --svg topo.svg\n"
                "  meshcoll topo --mesh box=4,gpu=8 --links dgx-h100 --svg dgx.svg\n"
                "  meshcoll topo --file node.xml\n",
    .options = options,
    .run = run,
};
