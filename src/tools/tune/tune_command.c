#include "base/gather.h"
#include "runtime/place/places.h"
#include "tools/common/show.h"
#include "tools/tune/tune.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "  meshcoll run -n RANKS meshcoll tune [--mesh MESH] [--memory host|device] [--file FILE]\n"
    "                                      [--seconds N]\n";

static const char about[] =
    "Measures alpha, beta, gamma and ports of each dimension on the ranks of a job, with all\n"
    "of them active, and stores them in a file by cluster: mesh, machines, processor and\n"
    "transports. Meshes created there later use them where no links are given. Only this\n"
    "cluster's entry in the file is replaced. With --memory device the vectors lie in memory\n"
    "of GPUs, one for each rank.\n";

static const char examples[] = "  meshcoll run -n 4 meshcoll tune\n"
                               "  srun -n 16 meshcoll tune --seconds 10 --file links.json --json\n"
                               "  torchrun --no-python --nproc-per-node 8 meshcoll tune --mesh "
                               "island=2,gpu=4 --memory device --file gpus.json\n"
                               "  MESHCOLL_TUNE_FILE=links.json srun -n 16 ./program\n";

/* What rank 0 reads from the command line, sent to all ranks. */
typedef struct {
    int32_t exit; /* not 0: there is nothing to measure */
    int32_t seconds;
    bool on_device;
    mc_cluster_t cluster;
} setup_t;

typedef struct {
    const char *mesh, *file, *memory;
    int32_t seconds;
    bool json;
    char path[MC_TUNED_PATH], command[1024];
    char gpu[MC_TUNE_GPU_TEXT]; /* "": on memory of the host */
} request_t;

/* Before -------------------------------------------------------------------------------------------*/

static int find_cluster(const request_t *r, const mc_place_t *place, int32_t size,
                        mc_cluster_t *cluster)
{
    mc_settings_t settings = {0};
    const meshcoll_params_t params = {.size = sizeof params, .mesh = r->mesh};
    if (size == 1)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "one rank has no links: start it by meshcoll run, torchrun, srun or mpirun, "
                       "as in meshcoll run -n 4 meshcoll tune");
    int status = mc_settings_read(&params, &settings);
    if (!status)
        status = mc_cluster_find(&settings, place, size, cluster);
    mc_settings_free(&settings);
    return status;
}

/* A malformed file is reported before measuring, not after. What this cluster's entry says is replaced. */
static int find_file(request_t *r)
{
    int status = MESHCOLL_OK;
    if (!r->file)
        status = mc_tuned_path(r->path);
    else if (strlen(r->file) < sizeof r->path)
        strcpy(r->path, r->file);
    else
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--file takes a path of up to %d characters",
                       (int)sizeof r->path - 1);
    if (!status)
        status = mc_tuned_check(r->path);
    return status ? mc_fail(MESHCOLL_ERR_IO, "%s", meshcoll_last_error()) : MESHCOLL_OK;
}

static void join_command(int argc, char **argv, char *command, size_t capacity)
{
    mc_text_t text = mc_text(command, capacity);
    mc_text_add(&text, "meshcoll");
    for (int i = 0; i < argc; i++)
        mc_text_add(&text, " %s", argv[i]);
}

static int read_options(int argc, char **argv, request_t *r)
{
    const mc_arguments_t arguments = {0};
    const mc_option_t options[] = {
        MC_OPTION_TEXT("mesh", "MESH",
                       "box=4,gpu=4, or box=8+8+4; left out: as the library finds it", &r->mesh),
        MC_OPTION_TEXT("memory", "MEMORY",
                       "whose memory the vectors lie in: host, or device: a GPU for each rank",
                       &r->memory),
        MC_OPTION_TEXT(
            "file", "FILE",
            "store the links there: $MESHCOLL_TUNE_FILE, else ~/.config/meshcoll/links.json",
            &r->file),
        MC_OPTION_NUMBER("seconds", "N", "approximate duration: 30", &r->seconds, 1, 600),
        MC_OPTION_FLAG("json", "as JSON", &r->json),
        {0},
    };
    join_command(argc, argv, r->command, sizeof r->command);
    r->seconds = 30;
    return mc_options_parse(&mc_tune_command, options, argc, argv, &arguments);
}

/* After --------------------------------------------------------------------------------------------*/

/* The texts of what was found, each until the next call of its own. */
static const char *links_text(const setup_t *s, const mc_links_t *links)
{
    static char buffer[MC_LINKS_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_links_print(links, &s->cluster.mesh, &text);
    return buffer;
}

static const char *cluster_text(const setup_t *s)
{
    static char buffer[MC_CLUSTER_TEXT + MC_MAX_DIMS * MC_TLS_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_cluster_print(&s->cluster, &text);
    return buffer;
}

static int keep(const request_t *r, const setup_t *s, const mc_tuning_t *tuning,
                const mc_links_t *links)
{
    char provenance[192 + MC_TUNE_GPU_TEXT], date[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    mc_number_print(
        provenance, sizeof provenance,
        "measured with meshcoll %s%s%s%s: collectives, all ranks at work, medians of %d "
        "round%s in %.0f s",
        meshcoll_version(), r->gpu[0] ? " on memory of GPUs (" : "", r->gpu, r->gpu[0] ? ")" : "",
        tuning->sight.rounds, tuning->sight.rounds == 1 ? "" : "s", tuning->seconds);
    const mc_tuned_t tuned = {.links = links_text(s, links),
                              .date = date,
                              .command = r->command,
                              .provenance = provenance};
    return mc_tuned_write(r->path, &s->cluster, &tuned);
}

static void print_proof(const mc_tuning_t *t)
{
    if (t->worse)
        printf("slower than untuned at sizes held out, in %d of %d that differ: the links are as "
               "creation calibrates them\n",
               t->worse, t->compared);
    else if (t->compared)
        printf("not slower than untuned at sizes held out, in %d that differ\n", t->compared);
}

static int print_table(const request_t *r, const setup_t *s, const mc_tuning_t *tuning,
                       const mc_links_t *links)
{
    printf("links of %s\n", cluster_text(s));
    if (r->gpu[0])
        printf("on memory of GPUs: %s\n", r->gpu);
    printf("\n");
    const int status = mc_show_links(&s->cluster.mesh, links);
    printf("\nmedians of %d round%s in %.1f s, all ranks at work\n", tuning->sight.rounds,
           tuning->sight.rounds == 1 ? "" : "s", tuning->seconds);
    print_proof(tuning);
    printf("as text: %s\n", links_text(s, links));
    return status;
}

static int print_json(const request_t *r, const setup_t *s, const mc_tuning_t *tuning,
                      const mc_links_t *links)
{
    const mc_mesh_t *const mesh = &s->cluster.mesh;
    json_t *const measured = json_array();
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const mc_seen_t *const seen = &tuning->sight.dim[d];
        if (seen->ranks > 1)
            json_array_append_new(measured,
                                  json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "dim",
                                            mesh->dim[d].name, "lines", (int)seen->lines, "round",
                                            seen->round, "row", seen->row, "beta_together",
                                            seen->together, "beta_alone", seen->alone));
    }
    return mc_json_print(json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:{s:i, s:i}, s:i, s:f}", "command", "tune",
        "file", r->path, "mesh", mc_json_mesh(mesh), "memory", r->gpu[0] ? r->gpu : "host",
        "cluster", cluster_text(s), "links_text", links_text(s, links), "links",
        mc_json_links(mesh, links), "strategies", mc_json_measured(mc_links_measured(links)),
        "measured", measured, "held_out", "differ", (int)tuning->compared, "worse",
        (int)tuning->worse, "rounds", (int)tuning->sight.rounds, "seconds", tuning->seconds));
}

/* The results are printed even if they cannot be stored. */
static int report(const request_t *r, const setup_t *s, const mc_tuning_t *tuning)
{
    mc_links_t links = tuning->links;
    links.measured = tuning->measured.n_rows ? &tuning->measured : NULL;
    int status = mc_links_check(&links, &s->cluster.mesh);
    if (!status)
        status = (r->json ? print_json : print_table)(r, s, tuning, &links);
    if (status)
        return status;
    if (keep(r, s, tuning, &links))
        return mc_fail(MESHCOLL_ERR_IO, "%s", meshcoll_last_error());
    if (!r->json)
        printf("stored in %s\n", r->path);
    return MESHCOLL_OK;
}

static int check_memory(const request_t *r)
{
    if (!r->memory || strcmp(r->memory, "host") == 0 || strcmp(r->memory, "device") == 0)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--memory takes host or device, not \"%s\"",
                   r->memory);
}

static void set_up(int argc, char **argv, const mc_place_t *place, int32_t size, request_t *r,
                   setup_t *s)
{
    int status = read_options(argc, argv, r);
    if (!status)
        status = check_memory(r);
    s->seconds = r->seconds;
    s->on_device = r->memory && strcmp(r->memory, "device") == 0;
    if (!status)
        status = find_cluster(r, place, size, &s->cluster);
    if (!status)
        status = find_file(r);
    s->exit = status < 0 ? mc_tool_exit(mc_tune_command.name, status) : status;
}

/* Sends rank 0's mesh as text: the sizes of a ragged mesh are in the memory of one process. */
static int share_mesh(const meshcoll_oob_t *oob, mc_mesh_t *mesh)
{
    char buffer[MC_MESH_TEXT];
    const char *const mine = oob->rank == 0 ? mc_mesh_text(mesh, buffer) : "";
    size_t bytes = strlen(mine) + 1;
    int status = mc_ranks_share(oob, &bytes, sizeof bytes);
    if (status)
        return status;
    char *const text = mc_tune_allocate(bytes);
    memcpy(text, mine, oob->rank == 0 ? bytes : 1);
    status = mc_ranks_share(oob, text, bytes);
    if (!status)
        status = mc_mesh_parse(text, mesh);
    free(text);
    return status;
}

/* Takes a GPU on each rank. One rank says so if it fails on any. */
static int take_gpus(const mc_place_t *place, const meshcoll_oob_t *oob, request_t *r)
{
    const int own = mc_tune_take_gpu(place, oob->rank, r->gpu);
    const int32_t failed = own;
    void *all = NULL;
    int first = 0;
    mc_tune_check(mc_gather(oob, MESHCOLL_OK, &failed, sizeof failed, &all), "the GPUs");
    while (first < oob->size && !((const int32_t *)all)[first])
        first++;
    free(all);
    if (first == oob->rank)
        mc_tool_exit(mc_tune_command.name, own);
    /* the others exit when it has said so: a launcher may end all with the first */
    mc_agree(oob, MESHCOLL_OK);
    return first == oob->size ? MESHCOLL_OK : MC_EXIT_FAILED;
}

static int tune(int argc, char **argv, const mc_ranks_t *ranks)
{
    static mc_tuning_t tuning; /* a process runs one command */
    static setup_t s;
    static request_t r;
    const meshcoll_oob_t *const oob = &ranks->oob;
    mc_place_t *place = NULL;
    mc_tune_check(mc_places_gather(oob, &place), "start");
    if (oob->rank == 0)
        set_up(argc, argv, place, oob->size, &r, &s);
    mc_tune_check(mc_ranks_share(oob, &s, sizeof s), "start");
    if (!s.exit && s.on_device)
        s.exit = take_gpus(place, oob, &r);
    free(place);
    if (s.exit)
        return s.exit;
    mc_tune_check(share_mesh(oob, &s.cluster.mesh), "the mesh");
    mc_tune_measure(&s.cluster, ranks, s.seconds, &tuning);
    int exit = MC_EXIT_OK;
    if (oob->rank == 0)
        exit = mc_tool_exit(mc_tune_command.name, report(&r, &s, &tuning));
    mc_tune_check(mc_ranks_share(oob, &exit, sizeof exit), "the end");
    return exit;
}

/* Help and what one process alone gets wrong need no other ranks. */
static bool asks_for_help(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[argc - 1], "--help") == 0 || strcmp(argv[argc - 1], "-h") == 0);
}

static int run(int argc, char **argv)
{
    request_t r = {.json = false};
    mc_ranks_t ranks;
    int status = asks_for_help(argc, argv) ? read_options(argc, argv, &r) : MESHCOLL_OK;
    if (!status)
        status = mc_ranks_open(&ranks);
    if (status)
        return status;
    status = tune(argc, argv, &ranks);
    mc_ranks_close(&ranks);
    return status;
}

const mc_command_t mc_tune_command = {
    .name = "tune",
    .summary = "measures this cluster's links and stores them for the library",
    .usage = usage,
    .about = about,
    .examples = examples,
    .read_and_run = run,
};
