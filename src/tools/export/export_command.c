#include "tools/export/export.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 1 << 22 }; /* of all ranks: text of a few hundred MB */

/* Stops where there are too many. */
static int count_steps(const mc_request_t *e, uint64_t *steps)
{
    *steps = 0;
    for (int32_t rank = 0; rank < e->mesh.size; rank++) {
        mc_plan_t *plan;
        const int status = mc_strategy_plan(&e->strategy, &e->mesh, rank, e->root, &plan);
        if (status)
            return status;
        *steps += plan->n_steps;
        mc_plan_free(plan);
        if (*steps > MOST_STEPS)
            return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                           "an export has room for %d steps, and ranks 0 to %d of %d have %llu: "
                           "take a smaller mesh, fewer segments or another strategy",
                           MOST_STEPS, rank, e->mesh.size, (unsigned long long)*steps);
    }
    return MESHCOLL_OK;
}

static const struct {
    const char *name;
    int (*write)(const mc_request_t *e, int32_t rank, FILE *out);
    bool split, whole; /* a file for each rank; all ranks in one call */
} formats[] = {{"goal", mc_export_goal, false, false},
               {"msccl", mc_export_msccl, false, true},
               {"chakra", mc_export_chakra, true, false}};

/* What the command line gives; a process runs one command. */
static struct {
    mc_request_text_t text;
    const char *bytes, *format, *output, *network;
    size_t kind; /* of formats */
    mc_request_t what;
    mc_between_t between;
} given;

static int read_format(void)
{
    const char *const name = given.format ? given.format : "";
    for (given.kind = 0; given.kind < MC_COUNT(formats); given.kind++)
        if (strcmp(name, formats[given.kind].name) == 0)
            break;
    if (given.kind == MC_COUNT(formats))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--format takes goal, msccl or chakra; got '%s'",
                       name);
    if (formats[given.kind].split && !given.output)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--format %s has a file for each rank: expected --output PREFIX, for "
                       "PREFIX.0.et and so on",
                       name);
    return MESHCOLL_OK;
}

static int read_request(mc_request_t *r)
{
    int status = mc_request_read(&given.text, r);
    if (!status)
        status = mc_read_bytes("--bytes", given.bytes, &r->bytes);
    if (!status)
        status = read_format();
    if (!status)
        status = mc_between_open(given.network, &r->mesh, NULL, &r->links, &given.between);
    return status ? status : mc_request_choose(&given.text, r);
}

/* NULL: to standard output, of which main.c says whether it could be written. */
static int write_text(const char *path, const char *text, size_t bytes)
{
    mc_output_t out = {.stream = stdout};
    const int status = path ? mc_output_open(path, &out) : MESHCOLL_OK;
    if (status)
        return status;
    fwrite(text, 1, bytes, out.stream);
    return path ? mc_output_close(&out, MESHCOLL_OK) : MESHCOLL_OK;
}

/* The calls [first, end) for ranks, whole in memory first: a plan that is refused leaves the file as it is. */
static int write_file(const char *path, int32_t first, int32_t end)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const memory = open_memstream(&text, &bytes);
    int status = memory ? MESHCOLL_OK : mc_fail_memory("a file");
    for (int32_t rank = first; rank < end && !status; rank++)
        status = formats[given.kind].write(&given.what, rank, memory);
    if (memory && fclose(memory) && !status)
        status = mc_fail_memory("a file");
    if (!status)
        status = write_text(path, text, bytes);
    free(text);
    return status;
}

static int write_split(void)
{
    int status = MESHCOLL_OK;
    for (int32_t rank = 0; rank < given.what.mesh.size && !status; rank++) {
        char *path;
        if (asprintf(&path, "%s.%d.et", given.output, rank) < 0)
            return mc_fail_memory("a path");
        status = write_file(path, rank, rank + 1);
        free(path);
    }
    return status;
}

static int write_all(void)
{
    const bool split = formats[given.kind].split;
    const int32_t n = given.what.mesh.size;
    uint64_t steps;
    int status = count_steps(&given.what, &steps);
    if (!status)
        status =
            split ? write_split() : write_file(given.output, 0, formats[given.kind].whole ? 1 : n);
    if (!status && given.output)
        printf("%d ranks, %llu steps: %s%s\n", n, (unsigned long long)steps, given.output,
               split ? ".*.et" : "");
    return status;
}

static const mc_option_t options[] = {
    MC_OPTION_TEXT("mesh", "MESH", "ranks by dimension, outermost first: box=8,gpu=8",
                   &given.text.mesh),
    MC_OPTION_TEXT("bytes", "SIZE", "bytes of the whole vector: 512, 64K, 64M, 1G", &given.bytes),
    MC_OPTION_TEXT("format", "FORMAT", "goal, msccl or chakra", &given.format),
    MC_OPTION_TEXT("output", "FILE", "where to; left out: standard output. chakra: FILE.RANK.et",
                   &given.output),
    MC_OPTION_TEXT("strategy", "STRATEGY", "its text or its name; left out: what plan puts first",
                   &given.text.strategy),
    MC_OPTION_TEXT("links", "LINKS", "a preset or links by hand; see meshcoll list links",
                   &given.text.links),
    MC_OPTION_TEXT("network", "NETWORK", "between boxes, for that choice; see meshcoll simulate",
                   &given.network),
    MC_OPTION_TEXT("root", "RANK", "root of bcast, reduce, scatter, gather: 0", &given.text.root),
    {0},
};

static int run(void)
{
    int status = read_request(&given.what);
    if (!status)
        status = write_all();
    status = mc_between_close(&given.between, status);
    mc_links_free(&given.what.links);
    return status;
}

const mc_command_t mc_export_command = {
    .name = "export",
    .summary = "the plans of all ranks for LogGOPSim, MSCCL or Chakra",
    .usage =
        "  meshcoll export COLLECTIVE --mesh MESH --bytes SIZE --format goal|msccl [--output FILE] "
        "…\n"
        "  meshcoll export COLLECTIVE --mesh MESH --bytes SIZE --format chakra --output PREFIX …\n",
    .about = "Writes the plans of all ranks, as they would run, for other programs:\n"
             "  goal    text for LogGOPSim: sends, receives, sums in ns, and what they wait for\n"
             "  msccl   an XML file for MSCCL's runtime: allgather, reduce_scatter, allreduce, "
             "alltoall\n"
             "  chakra  Chakra execution traces, for ASTRA-sim: PREFIX.0.et, PREFIX.1.et, …, one a "
             "rank\n"
             "Blocks of an allgather and others with a block for each rank are SIZE / ranks, "
             "rounded up.\n",
    .examples = "  meshcoll export allreduce --mesh box=2,gpu=4 --bytes 1M --format goal --output "
                "ring.goal\n"
                "  meshcoll export allgather --mesh gpu=8 --bytes 1M --format msccl --strategy "
                "allgather:ring\n"
                "  meshcoll export allreduce --mesh box=4,gpu=8 --bytes 64M --format chakra "
                "--output allreduce\n",
    .options = options,
    .arguments = {.text = &given.text.collective},
    .run = run,
};
