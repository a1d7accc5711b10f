/* meshcoll-bench: times collectives, strategy by strategy, and checks every result. */
#include "bench.h"

#include "runtime/handle/handle.h"
#include "tools/common/ranks.h"

#include <meshcoll/env.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An error that all ranks have is printed once. The others leave it time: a launcher ends all with the first that fails. */
static int refuse(int status)
{
    const struct timespec first_says_it = {.tv_nsec = 300 * 1000 * 1000};
    if (mc_ranks_first())
        fprintf(stderr, "meshcoll-bench: %s\n", meshcoll_last_error());
    else
        nanosleep(&first_says_it, NULL);
    return status;
}

static void print_row(const bench_t *bench, const row_t *row, FILE *csv)
{
    if (csv != stdout)
        table_row(bench, row);
    if (csv)
        csv_row(bench, row, csv);
}

static bool fits(const bench_t *bench, size_t whole)
{
    if (mpi_fits(bench, whole))
        return true;
    if (bench->rank == 0)
        printf("# %zu elements are more than MPI counts: stopping here\n", whole);
    return false;
}

/* Size number `at`, `last` the one before; 0: there are no more. */
static double next_size(const options_t *o, int at, double last)
{
    uint64_t listed = 0;
    if (o->sizes)
        return options_size(o, at, &listed) == MESHCOLL_OK ? (double)listed : 0;
    const double bytes = at == 0 ? (double)o->begin : last * o->factor;
    return bytes < (double)o->end + 0.5 ? bytes : 0;
}

static uint64_t measure_all(bench_t *bench, const meta_t *meta, FILE *csv)
{
    const options_t *const o = &bench->options;
    uint64_t wrong = 0;
    size_t last = 0;
    double bytes = 0;
    for (int at = 0; (bytes = next_size(o, at, bytes)) > 0; at++) {
        const size_t whole = data_whole(bench, (uint64_t)bytes);
        if (whole == last) /* two sizes that round to one */
            continue;
        if (!fits(bench, whole))
            break;
        bench->whole = last = whole;
        const int before = bench->n_rows;
        wrong += measure_size(bench, whole);
        for (int i = before; i < bench->n_rows; i++)
            print_row(bench, &bench->row[i], csv);
        if (bench->rank == 0 && o->json && json_write(bench, meta, o->json) != MESHCOLL_OK)
            die("%s", meshcoll_last_error());
    }
    return wrong;
}

static char *allocate(size_t room)
{
    char *const buffer = aligned_alloc(PAGE, room);
    if (!buffer)
        die("out of memory for a buffer of %zu bytes", room);
    memset(buffer, 0, room);
    return buffer;
}

static void make_buffers(bench_t *bench)
{
    const options_t *const o = &bench->options;
    const uint64_t most = o->timeline_bytes > o->end ? o->timeline_bytes : o->end;
    const size_t bytes = data_whole(bench, most) * meshcoll_datatype_size(o->datatype);
    const size_t room = (bytes + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
    bench->in = allocate(room);
    bench->out = allocate(room);
    bench->room = room;
    if (o->device)
        device_make_buffers(bench, room);
}

/* The links with the stated rate of a box's network, all its ports together; of each port, where dimensions have wires
 * of their own. */
static mc_links_t bound_links(const bench_t *bench)
{
    mc_links_t links = bench->links;
    int32_t top = 0;
    while (top < links.ndims - 1 && bench->mesh.dim[top].extent == 1)
        top++;
    const bool own = links.dim[top].wire == MC_WIRE_OWN;
    for (int32_t d = top; bench->options.rate && d < links.ndims; d++)
        if (d == top || (own && links.dim[d].wire == MC_WIRE_OWN && !links.dim[d].pulled))
            links.dim[d].beta = 1 / bench->options.rate_bytes;
    if (bench->options.rate && !own)
        links.dim[top].ports = 1;
    return links;
}

static void gate_gather(void *bench, const void *in, void *out, size_t bytes)
{
    ranks_gather(bench, in, out, bytes);
}

static void gate_poll(void *context)
{
    const bench_t *const bench = context;
    if (bench->mpi)
        bench->mpi->poll();
}

static int open_gate(bench_t *bench)
{
    const gate_ranks_t ranks = {bench->rank, bench->size, bench, gate_gather, gate_poll};
    char why[GATE_WHY];
    if (!gate_open(&ranks, bench->options.gate, &bench->gate, why))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s", why);
    return MESHCOLL_OK;
}

static int make_bench(bench_t *bench)
{
    options_t *const o = &bench->options;
    int status = mc_mesh_parse(meshcoll_mesh_text(bench->handle), &bench->mesh);
    if (status != MESHCOLL_OK)
        return status;
    if (o->root >= bench->size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--root: expected a rank from 0 to %d; got %d",
                       bench->size - 1, o->root);
    if (data_inexact(o, bench->size))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s", data_inexact(o, bench->size));

    bench->links = bench->handle->links;
    bench->bound_links = bound_links(bench);

    status = contenders_make(o, &bench->mesh, &bench->contenders);
    if (status == MESHCOLL_OK && o->device)
        status = device_open(bench);
    if (status == MESHCOLL_OK && o->flat_nccl)
        status = own_nccl_open(bench);
    if (status == MESHCOLL_OK && o->flat_mpi)
        status = mpi_open(bench);
    if (status == MESHCOLL_OK && o->gate)
        status = open_gate(bench);
    if (status != MESHCOLL_OK)
        return status;
    /* "best" is the planner's choice, whatever the environment forces */
    return meshcoll_set_strategy(bench->handle, o->collective, NULL);
}

static int run_bench(bench_t *bench, int argc, char **argv)
{
    const options_t *const o = &bench->options;
    meta_t meta;
    FILE *csv = NULL;
    meta_make(bench, argc, argv, &meta);
    if (bench->rank == 0 && o->csv) {
        csv = csv_open(o->csv);
        csv_head(bench, &meta, csv);
    }
    if (bench->rank == 0 && o->json && json_write(bench, &meta, o->json) != MESHCOLL_OK)
        die("%s", meshcoll_last_error());
    if (bench->rank == 0 && csv != stdout)
        table_head(bench, &meta);

    make_buffers(bench);
    const uint64_t wrong = measure_all(bench, &meta, csv);
    if (bench->rank == 0)
        table_foot(bench);
    if (o->timeline)
        timeline_all(bench, &meta);
    if (csv)
        csv_close(csv, o->csv);
    return wrong > 0 ? EXIT_WRONG : 0;
}

static void free_bench(bench_t *bench)
{
    for (int i = 0; i < bench->n_rows; i++)
        free(bench->row[i].strategy);
    free(bench->row);
    if (bench->options.flat_nccl)
        own_nccl_close(bench);
    if (bench->options.device)
        device_close(bench);
    free(bench->in);
    free(bench->out);
    gate_close(bench->gate);
    contenders_free(&bench->contenders);
    mpi_close(bench);
    meshcoll_destroy(bench->handle);
}

int main(int argc, char **argv)
{
    bench_t bench = {.rank = 0};
    setenv("MESHCOLL_ADAPT", "off", 1); /* a request keeps the strategy that is measured */
    if (options_answer(argc, argv))
        return 0;
    if (options_parse(argc, argv, &bench.options) != MESHCOLL_OK)
        return refuse(EXIT_USAGE);
    if (!mc_ranks_launched()) { /* or started by what says nothing: each rank would measure itself */
        fprintf(stderr, "meshcoll-bench: one rank has nobody to exchange with: start it by "
                        "meshcoll run, torchrun, srun or mpirun, as in meshcoll run -n 4 "
                        "meshcoll-bench --collective allreduce\n");
        return EXIT_USAGE;
    }
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = bench.options.mesh,
                                      .links = bench.options.links,
                                      .transports = bench.options.transports};
    const int status = meshcoll_create_env(&params, &bench.handle);
    if (status == MESHCOLL_ERR_TRANSPORT || status == MESHCOLL_ERR_NO_MEMORY)
        die("%s", meshcoll_last_error()); /* this rank's own trouble */
    if (status != MESHCOLL_OK)
        return refuse(EXIT_USAGE);
    bench.rank = meshcoll_rank(bench.handle);
    bench.size = meshcoll_size(bench.handle);
    const int code =
        make_bench(&bench) == MESHCOLL_OK ? run_bench(&bench, argc, argv) : refuse(EXIT_USAGE);
    free_bench(&bench);
    return code;
}
