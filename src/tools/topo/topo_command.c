#include "tools/topo/topo.h"

#include "base/gather.h"
#include "runtime/create/tuned.h"
#include "runtime/place/places.h"
#include "tools/common/ranks.h"
#include "tools/common/show.h"
#include "tools/topo/topo_gpus.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "  mpirun -n RANKS meshcoll topo [--mesh MESH] [--links LINKS] [--svg FILE]\n"
    "  meshcoll topo --mesh MESH [--links LINKS] [--svg FILE]\n"
    "  meshcoll topo --file FILE [--mesh MESH] [--links LINKS] [--svg FILE]\n";

static const char about[] =
    "Shows a mesh: its boxes, the ranks in them with their binding, and its links, measured or of "
    "a\n"
    "preset. Under mpirun it is the mesh that a program started the same way would find, and the\n"
    "GPUs of its machines: which reach which, which network card is near, and the mesh that this\n"
    "suggests. Otherwise it is the given one, and no rank runs; with none given, this machine.\n"
    "With --file it is the mesh of ranks bound to the cores of a machine in a file of lstopo.\n"
    "--svg draws the mesh.\n";

static const char examples[] = "  mpirun -n 8 --bind-to core meshcoll topo\n"
                               "  mpirun -n 8 meshcoll topo --mesh box=2,gpu=4 --svg topo.svg\n"
                               "  meshcoll topo --mesh box=4,gpu=8 --links dgx-h100 --svg dgx.svg\n"
                               "  meshcoll topo --file node.xml\n";

/* More rows than these are not read; --json has them all. */
enum { MOST_ROWS = 64 };

typedef struct {
    const mc_command_t *self;
    const char *mesh, *links, *svg, *file;
    const mc_topo_gpus_t *gpus; /* NULL: no rank runs */
    bool json;
    char source[MC_TUNED_PATH + 64];
} request_t;

/* Asking -----------------------------------------------------------------------------------------*/

static bool any_bound(const mc_topo_t *t)
{
    for (int32_t r = 0; t->spot && r < t->mesh.size; r++)
        if (t->spot[r].bound.cpus[0])
            return true;
    return false;
}

/* Text ---------------------------------------------------------------------------------------------*/

static void add_number(mc_table_t *table, int32_t number)
{
    if (number < 0)
        mc_table_add(table, "-");
    else
        mc_table_add(table, "%d", number);
}

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
    mc_table_add(table, dims < t->mesh.ndims ? "ranks" : "rank");
    mc_table_add(table, t->spot ? "machine" : "");
    if (!bound)
        return;
    mc_table_add(table, "socket");
    mc_table_add(table, "NUMA node");
    mc_table_add(table, "CPUs");
}

/* The ranks [first, first + n), which are one or a line of the innermost dimension. */
static void add_row(mc_table_t *table, const mc_topo_t *t, int32_t dims, int32_t first, int32_t n,
                    bool bound)
{
    int32_t coord[MC_MAX_DIMS];
    const mc_spot_t *const spot = mc_topo_spot(t, first);
    mc_mesh_coords(&t->mesh, first, coord);
    for (int32_t d = 0; d < dims; d++)
        mc_table_add(table, "%d", coord[d]);
    add_ranks(table, t, first, n);
    mc_table_add(table, "%s",
                 !spot                              ? ""
                 : mc_topo_one_machine(t, first, n) ? spot->host
                                                    : "several");
    if (!bound)
        return;
    add_number(table, spot->bound.package);
    add_number(table, spot->bound.node);
    mc_table_add(table, "%s", spot->bound.cpus[0] ? spot->bound.cpus : "all");
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

static int print_text(const request_t *r, const mc_topo_t *t)
{
    char mesh[MC_MESH_TEXT];
    const int32_t machines = mc_topo_machines(t);
    printf("%s: %d rank%s", mc_mesh_text(&t->mesh, mesh), t->mesh.size,
           t->mesh.size == 1 ? "" : "s");
    if (machines)
        printf(" on %d machine%s", machines, machines == 1 ? "" : "s");
    printf(", %s\n\nlinks: %s\n", t->origin, t->source);
    int status = mc_show_links(&t->mesh, &t->links);
    printf("\n");
    if (!status)
        status = print_ranks(t);
    if (!status && r->gpus)
        status = mc_topo_gpus_print(r->gpus);
    if (!status && r->svg)
        printf("\ndrawn in %s\n", r->svg);
    return status ? mc_tool_fail(r->self, status) : MC_EXIT_OK;
}

/* JSON -------------------------------------------------------------------------------------------- */

static json_t *json_rank(const mc_topo_t *t, int32_t mesh_rank)
{
    int32_t coord[MC_MAX_DIMS];
    json_t *const coords = json_array();
    const mc_spot_t *const spot = mc_topo_spot(t, mesh_rank);
    mc_mesh_coords(&t->mesh, mesh_rank, coord);
    for (int32_t d = 0; d < t->mesh.ndims; d++)
        json_array_append_new(coords, json_integer(coord[d]));
    json_t *const rank = json_pack("{s:i, s:o}", "rank", (int)mc_comm_rank_of(&t->order, mesh_rank),
                                   "coords", coords);
    if (!spot)
        return rank;
    const int32_t first = mc_comm_rank_of(&t->order, t->machine[mesh_rank]);
    json_object_set_new(rank, "machine", json_string(spot->host));
    json_object_set_new(rank, "machine_of", json_integer(first));
    json_object_set_new(rank, "socket", json_integer(spot->bound.package));
    json_object_set_new(rank, "numa_node", json_integer(spot->bound.node));
    json_object_set_new(rank, "cpus", json_string(spot->bound.cpus));
    return rank;
}

static int print_json(const request_t *r, const mc_topo_t *t)
{
    json_t *const ranks = json_array();
    for (int32_t m = 0; m < t->mesh.size; m++)
        json_array_append_new(ranks, json_rank(t, m));
    return mc_json_print(json_pack("{s:s, s:o, s:s, s:i, s:s, s:o, s:o, s:o}", "command", "topo",
                                   "mesh", mc_json_mesh(&t->mesh), "origin", t->origin, "machines",
                                   (int)mc_topo_machines(t), "links_source", t->source, "links",
                                   mc_json_links(&t->mesh, &t->links), "ranks", ranks, "gpus",
                                   r->gpus ? mc_topo_gpus_json(r->gpus) : json_null()));
}

static int show(const request_t *r, const mc_topo_t *t)
{
    if (r->svg) {
        const int status = mc_topo_draw(t, r->svg);
        if (status) {
            mc_tool_fail(r->self, status);
            return MC_EXIT_FAILED;
        }
    }
    return r->json ? print_json(r, t) : print_text(r, t);
}

/* A mesh without ranks ---------------------------------------------------------------------------- */

static int set_links(request_t *r, const char *text, const char *source, mc_topo_t *t)
{
    snprintf(r->source, sizeof r->source, "%s", source);
    t->source = r->source;
    const int status = mc_links_parse(text, &t->mesh, &t->links);
    return status ? mc_tool_fail(r->self, status) : MC_GO_ON;
}

static int given_links(request_t *r, const char *text, mc_topo_t *t)
{
    char source[256];
    if (text)
        snprintf(source, sizeof source, "%s, as given", text);
    else
        snprintf(source, sizeof source, "the preset %s, as none are given%s",
                 mc_cluster_presets[0].name, t->machine && !r->file ? " and none are tuned" : "");
    return set_links(r, text, source, t);
}

static int show_given(request_t *r)
{
    mc_topo_t t = {.origin = "given"};
    int exit = mc_read_mesh(r->self, r->mesh, &t.mesh);
    if (exit == MC_GO_ON)
        exit = given_links(r, r->links, &t);
    return exit == MC_GO_ON ? show(r, &t) : exit;
}

/* One in a file ----------------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int show_cores(request_t *r, const mc_place_t *place, const mc_spot_t *spot, int32_t n)
{
    mc_arranged_t a;
    const int status = mc_arrange(r->mesh, place, n, &a);
    if (status)
        return mc_tool_fail(r->self, status);
    mc_topo_t t = {.mesh = a.mesh, .order = a.order, .machine = a.machine, .spot = spot};
    t.origin = r->mesh ? "given" : "found with one for each core";
    int exit = given_links(r, r->links, &t);
    if (exit == MC_GO_ON)
        exit = show(r, &t);
    mc_arranged_free(&a);
    return exit;
}

static int show_file(request_t *r)
{
    mc_bound_to_t *bound = NULL;
    int32_t n = 0;
    if (mc_ranks_launched())
        return mc_tool_refuse(r->self, "--file shows a file without a job; ranks take it from "
                                       "HWLOC_XMLFILE");
    const int status = mc_bound_to_cores(r->file, &bound, &n);
    if (status)
        return mc_tool_fail(r->self, status);
    mc_place_t *const place = calloc((size_t)n, sizeof *place);
    mc_spot_t *const spot = calloc((size_t)n, sizeof *spot);
    for (int32_t i = 0; place && spot && i < n; i++) {
        place[i] = (mc_place_t){.node = bound[i].node, .package = bound[i].package};
        spot[i].bound = bound[i];
        snprintf(spot[i].host, sizeof spot[i].host, "%s", name_of(r->file));
    }
    const int exit = place && spot ? show_cores(r, place, spot, n)
                                   : mc_tool_fail(r->self, mc_fail_memory("the cores of a file"));
    free(spot);
    free(place);
    free(bound);
    return exit;
}

/* One that runs ----------------------------------------------------------------------------------- */

static int tuned_links(request_t *r, const mc_settings_t *settings, const mc_place_t *place,
                       mc_topo_t *t)
{
    char path[MC_TUNED_PATH], source[MC_TUNED_PATH + 32], *links = NULL;
    mc_cluster_t cluster;
    int status = mc_cluster_find(settings, place, t->mesh.size, &cluster);
    if (!status && mc_tuned_path(path))
        return given_links(r, NULL, t);
    if (!status)
        status = mc_tuned_read(path, &cluster, &links);
    if (status)
        return mc_tool_fail(r->self, status);
    snprintf(source, sizeof source, "tuned, from %s", path);
    const int exit = links ? set_links(r, links, source, t) : given_links(r, NULL, t);
    free(links);
    return exit;
}

static int show_arranged(request_t *r, const mc_settings_t *settings, const mc_place_t *place,
                         const mc_spot_t *spot, int32_t size)
{
    mc_arranged_t a;
    const int status = mc_arrange(settings->mesh, place, size, &a);
    if (status)
        return mc_tool_fail(r->self, status);
    mc_topo_t t = {.mesh = a.mesh,
                   .order = a.order,
                   .machine = a.machine,
                   .spot = spot,
                   .origin = settings->mesh ? "given" : "found"};
    int exit =
        settings->links ? given_links(r, settings->links, &t) : tuned_links(r, settings, place, &t);
    if (exit == MC_GO_ON)
        exit = show(r, &t);
    mc_arranged_free(&a);
    return exit;
}

/* On rank 0. */
static int show_running(request_t *r, const mc_place_t *place, const mc_spot_t *spot, int32_t size)
{
    mc_settings_t settings = {0};
    const meshcoll_params_t params = {.size = sizeof params, .mesh = r->mesh, .links = r->links};
    const int status = mc_settings_read(&params, &settings);
    if (status)
        return mc_tool_fail(r->self, status);
    const int exit = show_arranged(r, &settings, place, spot, size);
    mc_settings_free(&settings);
    return exit;
}

static int gather(const meshcoll_oob_t *oob, mc_place_t **place, void **spot)
{
    mc_spot_t mine = {0};
    gethostname(mine.host, sizeof mine.host - 1);
    mc_bound_to_find(&mine.bound);
    const int status = mc_places_gather(oob, place);
    return status ? status : mc_gather(oob, MESHCOLL_OK, &mine, sizeof mine, spot);
}

/* All ranks exit with what rank 0 exits with. */
static int share_exit(const meshcoll_oob_t *oob, int exit)
{
    const int32_t mine = exit;
    void *all = NULL;
    if (!mc_gather(oob, MESHCOLL_OK, &mine, sizeof mine, &all))
        exit = *(const int32_t *)all;
    free(all);
    return exit;
}

/* One rank reads the command line and speaks for all. */
static int run_ranks(request_t *r)
{
    mc_place_t *place = NULL;
    mc_topo_gpus_t *gpus = NULL;
    void *spot = NULL;
    mc_ranks_t ranks;
    int status = mc_ranks_open(&ranks), exit = MC_EXIT_OK;
    if (status)
        return mc_tool_fail(r->self, status);
    status = gather(&ranks.oob, &place, &spot);
    if (!status)
        status = mc_topo_gpus_open(&ranks.oob, place, &gpus);
    r->gpus = gpus;
    if (status)
        exit = mc_tool_fail(r->self, status);
    else if (ranks.oob.rank == 0)
        exit = show_running(r, place, spot, ranks.oob.size);
    if (!status)
        exit = share_exit(&ranks.oob, exit);
    mc_topo_gpus_close(gpus);
    free(spot);
    free(place);
    ranks.close(&ranks);
    return exit;
}

static int run(const mc_command_t *self, int argc, char **argv)
{
    request_t r = {.self = self};
    mc_arguments_t arguments = {0};
    const mc_option_t options[] = {
        {.name = "mesh",
         .value = "MESH",
         .help = "box=4,gpu=8, or box=8+8+4; left out under mpirun: as the library finds it",
         .text = &r.mesh},
        {.name = "links",
         .value = "LINKS",
         .help = "a preset or links by hand; left out: tuned ones, else a preset",
         .text = &r.links},
        {.name = "file",
         .value = "FILE",
         .help = "the machine in an XML file of lstopo (hwloc), with a rank for each core",
         .text = &r.file},
        {.name = "svg", .value = "FILE", .help = "draw it there", .text = &r.svg},
        {.name = "json", .help = "as JSON", .flag = &r.json},
        {0},
    };
    const int exit = mc_options_parse(self, options, argc, argv, &arguments);
    if (exit != MC_GO_ON)
        return exit;
    if (r.file)
        return show_file(&r);
    return r.mesh && !mc_ranks_launched() ? show_given(&r) : run_ranks(&r);
}

const mc_command_t mc_topo_command = {
    .name = "topo",
    .summary = "shows a mesh: boxes, ranks and links, as text or drawn; and GPUs",
    .usage = usage,
    .about = about,
    .examples = examples,
    .run = run,
};
