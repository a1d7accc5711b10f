#include "gpu/launch/price.h"

#include "gpu/program/program.h"

#include <math.h>

/* The dimension whose link limits the phase: the outermost one that is longer than 1. */
static int32_t link_of(const mc_mesh_t *mesh, mc_dims_t dims)
{
    int32_t d = dims.first;
    while (d + 1 < dims.first + dims.count && mesh->dim[d].extent <= 1)
        d++;
    return d;
}

/* Adds the tracks of a side, at most so many. */
static void add_side(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t side, uint32_t most,
                     mc_device_tracks_t *tracks)
{
    const int32_t first = mc_side_first(s, side), end = mc_side_end(s, side);
    uint32_t n = 0;
    for (int32_t i = first; i < end; i++) {
        const bool same =
            i > first && link_of(mesh, s->phase[i].dims) == link_of(mesh, s->phase[i - 1].dims);
        n += !same && n < most;
        tracks->of[i] = (uint8_t)(tracks->n + n - 1);
    }
    tracks->n += n;
}

mc_device_tracks_t mc_gpu_tracks(const mc_strategy_t *s, const mc_mesh_t *mesh, uint32_t blocks)
{
    const mc_device_tracks_t one = {.n = 1};
    mc_device_tracks_t tracks = {.n = 0};
    const uint32_t all = blocks < MC_DEVICE_TRACKS ? blocks : MC_DEVICE_TRACKS;
    const int32_t sides = mc_strategy_sides(s);
    const uint32_t most = all / (uint32_t)sides;
    if (most == 0 || s->segments <= 1)
        return one;
    for (int32_t side = 0; side < sides; side++)
        add_side(s, mesh, side, most, &tracks);
    return tracks.n > 0 ? tracks : one;
}

void mc_gpu_load_add(mc_gpu_load_t *load, const mc_device_tracks_t *tracks, const mc_links_t *links,
                     const mc_plan_t *plan)
{
    const mc_mesh_t *const mesh = &plan->layout.mesh;
    const uint32_t widest = mc_device_widest(plan);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        if (!mc_op_sends((mc_op_t)s->op))
            continue;
        const mc_link_t *const link = &links->dim[mc_mesh_level(mesh, plan->rank, s->peer)];
        const uint32_t t = tracks->of[s->phase];
        load->start[t] += (link->alpha + link->gap) / mesh->size;
        load->messages++;
        load->chunks += (uint64_t)s->run * s->nrun;
        load->byte[t] += (double)s->run * s->nrun * link->beta / mesh->size;
    }
    load->widest = widest > load->widest ? widest : load->widest;
}

/* Passes over a chunk with so many slices; infinite: a message does not fit. */
static double passes_of(const mc_gpu_load_t *load, const mc_gpu_layout_t *l, double chunk,
                        uint32_t slices)
{
    uint32_t piece;
    if (load->widest == 0 || !mc_device_piece_bytes(load->widest, l->slot_bytes, false, &piece))
        return INFINITY;
    return fmax(1, ceil(chunk / slices / piece));
}

bool mc_gpu_tracks_pay(const mc_device_tracks_t *tracks, const mc_gpu_load_t *load,
                       const mc_gpu_layout_t *l, double chunk, uint32_t segments)
{
    const double passes = passes_of(load, l, chunk, l->blocks / tracks->n);
    const double passes_of_one = passes_of(load, l, chunk, l->blocks);
    double one = 0, all = 0, longest = 0;
    for (uint32_t t = 0; t < tracks->n; t++) {
        const double bytes = load->byte[t] * chunk;
        const double seconds = passes * load->start[t] + bytes;
        one += passes_of_one * load->start[t] + bytes;
        all += seconds;
        longest = fmax(longest, seconds);
    }
    /* what the longest does not hide: the first turn of those before it, the last of those behind it */
    return longest + (all - longest) / (passes * segments) < one;
}

/* Seconds of a message besides its bytes, and bytes on the wire for each of its bytes, without flags in the
 * data and with them. Seconds: steps of a ring over NVLink, of the protocols Simple and LL, in NCCL 2.30's own
 * table for sm_90 (docs/gpu.md); no card was measured here. */
static const struct {
    double step, wire;
} prices[2] = {{3.4e-6, 1}, {0.6e-6, 2}};

double mc_gpu_protocol_seconds(const mc_gpu_load_t *load, const mc_gpu_layout_t *l, double chunk,
                               double beta, bool ll)
{
    uint32_t piece;
    if (load->widest == 0 ||
        !mc_device_piece_bytes(load->widest, ll ? l->ll_bytes : l->slot_bytes, ll, &piece))
        return INFINITY;
    const double ranks = l->ranks, words = ceil(chunk / MC_DEVICE_WORD);
    const double passes = ceil(ceil(words / l->blocks) * MC_DEVICE_WORD / piece);
    return (double)load->messages / ranks * passes * prices[ll].step +
           (double)load->chunks / ranks * chunk * prices[ll].wire * beta;
}

double mc_gpu_slowest(const mc_links_t *links, const mc_mesh_t *mesh)
{
    double beta = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1 && links->dim[d].beta > beta)
            beta = links->dim[d].beta;
    return beta;
}
