#include "runtime/launch/tracks.h"

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
