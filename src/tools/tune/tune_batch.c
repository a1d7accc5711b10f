/* The cluster that is measured, and times of batches on it. */
#include "tools/tune/tune.h"

#include "runtime/create/create.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The cluster ------------------------------------------------------------------------------------ */

meshcoll_t *mc_tune_open(const mc_cluster_t *c, const mc_ranks_t *ranks, const mc_links_t *links)
{
    static char given[MC_LINKS_TEXT];
    char mesh[MC_MESH_TEXT], transports[MC_MAX_DIMS * (MC_DIM_NAME + MC_TLS_TEXT)];
    mc_text_t transports_text = mc_text(transports, sizeof transports),
              given_text = mc_text(given, sizeof given);
    meshcoll_t *whole = NULL;
    if (links)
        mc_links_print(links, &c->mesh, &given_text);
    mc_cluster_print_transports(c, &transports_text);
    /* given by name: the file of tuned links, which is about to be written, is not read */
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = mc_mesh_text(&c->mesh, mesh),
                                      .links = links ? given : mc_cluster_presets[0].name,
                                      .transports = transports};
    const mc_creation_t creation = {
        .oob = ranks->oob, .reached = mc_bootstrap_reached(ranks->bootstrap), .params = &params};
    mc_tune_check(mc_handle_create(&creation, &whole), "the mesh");
    return whole;
}

/* A broadcast has one buffer, as in MPI. */
meshcoll_request_t *mc_tune_request(meshcoll_t *mesh, meshcoll_collective_t collective,
                                    const char *strategy, size_t bytes, void *in, void *out)
{
    meshcoll_request_t *request;
    const size_t n = bytes / sizeof(float), size = (size_t)meshcoll_size(mesh);
    const bool has_blocks = mc_move_has_blocks(&mc_moves[collective]);
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = collective,
                                  .in = in,
                                  .out = collective == MESHCOLL_BCAST ? in : out,
                                  .count = has_blocks ? (n + size - 1) / size : n,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM,
                                  .strategy = strategy};
    mc_tune_check(meshcoll_init(mesh, &args, &request), "a request to time");
    return request;
}

/* Batches ---------------------------------------------------------------------------------------- */

static const double least_batch = 10e-3; /* seconds; the ranks start a batch with a small skew */

double mc_tune_most(meshcoll_t *whole, double mine)
{
    double all;
    mc_tune_check(meshcoll_allreduce(whole, &mine, &all, 1, MESHCOLL_FLOAT64, MESHCOLL_MAX),
                  "a time");
    return all;
}

double mc_batch(meshcoll_t *whole, meshcoll_request_t *request, int32_t repeats)
{
    mc_tune_check(meshcoll_barrier(whole), "a barrier");
    const double begin = mc_now();
    mc_tune_run(request, repeats);
    return mc_tune_most(whole, mc_now() - begin) / repeats;
}

static void read_over(const void *at, size_t bytes)
{
    enum { LINE = 64 };
    const volatile char *const came = at;
    for (size_t i = 0; i < bytes; i += LINE)
        (void)came[i];
}

/* Returns the start time, the same on all ranks. It lies in the future, so that every rank has
 * received it and polls. After a plain barrier, ranks that share a core would start one after
 * the other. */
static double begin_together(meshcoll_t *whole)
{
    const double soon = 50e-6;
    const bool share = meshcoll_size(whole) > sysconf(_SC_NPROCESSORS_ONLN);
    double moment = mc_now() + soon;
    mc_tune_check(meshcoll_bcast(whole, &moment, &moment, 1, MESHCOLL_FLOAT64, 0), "a moment");
    while (mc_now() < moment)
        if (share)
            sched_yield();
    return moment;
}

void mc_batch_anew(meshcoll_t *whole, meshcoll_request_t *request, const mc_used_t *used,
                   mc_series_t *series)
{
    const int32_t warm = series->repeats > 2 ? 2 : 1;
    double began[MC_MOST_ANEW] = {0}, mine[MC_MOST_ANEW] = {0}, last[MC_MOST_ANEW];
    const int32_t n = series->repeats < MC_MOST_ANEW ? series->repeats : MC_MOST_ANEW;
    for (int32_t i = -warm; i < n; i++) {
        const int32_t at = i < 0 ? 0 : i; /* the first runs find the cache state of another row */
        /* no rank runs the previous operation any more, so that none uses a shared core */
        mc_tune_check(meshcoll_barrier(whole), "a barrier");
        if (!mc_tune_on_device()) {
            read_over(used->out, used->out_bytes);
            memset(used->in, 0, used->in_bytes);
        }
        /* ranks that share a core clear their buffers in turn; the start time is set after the
         * last one */
        mc_tune_check(meshcoll_barrier(whole), "a barrier");
        began[at] = begin_together(whole);
        mc_tune_run(request, 1);
        mine[at] = mc_now();
    }
    mc_tune_check(meshcoll_allreduce(whole, mine, last, (size_t)n, MESHCOLL_FLOAT64, MESHCOLL_MAX),
                  "times");
    for (int32_t i = 0; i < n; i++)
        mc_series_keep(series, last[i] - began[i]);
}

int32_t mc_repeats_for(double once)
{
    if (once * MC_MOST_REPEATS < least_batch)
        return MC_MOST_REPEATS;
    return once < least_batch ? (int32_t)(least_batch / once) + 1 : 1;
}
