#include "gpu/mesh/arena.h"

#include <stdlib.h>

/* CUDA shares memory between processes in units of this, and advises not to share a part of one. */
enum { IPC_UNIT = 2 << 20 };

/* Layout ------------------------------------------------------------------------------------------ */

static size_t lanes_of(const mc_gpu_layout_t *l)
{
    return (size_t)(l->ranks - 1) * l->blocks;
}

/* Ranks below `end` on the machine of `owner`, without it. */
static size_t near_below(const mc_gpu_layout_t *l, int32_t owner, int32_t end)
{
    size_t n = 0;
    for (int32_t r = 0; r < end; r++)
        n += r != owner && l->machine[owner] == l->machine[r];
    return n;
}

static size_t slots_of_lane(const mc_gpu_layout_t *l, bool ll)
{
    return (size_t)MC_DEVICE_SLOTS * (ll ? l->ll_bytes : l->slot_bytes);
}

/* Tracks, counters of both kinds, then slots of messages with flags in their data, then the others'. */
typedef struct {
    size_t counters, slots;
} region_t;

static region_t region_of(const mc_gpu_layout_t *l, bool ll)
{
    const size_t n = lanes_of(l);
    const size_t tracks = l->blocks * sizeof(mc_device_track_t);
    const region_t first = {.counters = tracks, .slots = tracks + 2 * n * MC_GPU_LANE};
    const region_t other = {.counters = tracks + n * MC_GPU_LANE,
                            .slots = first.slots + n * slots_of_lane(l, true)};
    return ll ? first : other;
}

/* What begins as zeros: all counters, and slots for messages with flags in their data. */
static size_t zeros_of(const mc_gpu_layout_t *l)
{
    return region_of(l, false).slots;
}

size_t mc_gpu_layout_bytes(const mc_gpu_layout_t *l)
{
    const size_t slots = near_below(l, l->rank, l->ranks) * l->blocks * slots_of_lane(l, false);
    return (zeros_of(l) + slots + IPC_UNIT) / IPC_UNIT * IPC_UNIT;
}

/* Where the counters of a peer's block are in the arena of `owner`, and the slots of one on its machine. */
static size_t counters_at(const mc_gpu_layout_t *l, bool ll, int32_t owner, int32_t peer,
                          uint32_t block)
{
    const size_t lane = (size_t)(peer - (peer > owner)) * l->blocks + block;
    return region_of(l, ll).counters + lane * MC_GPU_LANE;
}
static size_t slots_at(const mc_gpu_layout_t *l, bool ll, int32_t owner, int32_t peer,
                       uint32_t block)
{
    const size_t lane = near_below(l, owner, peer) * l->blocks + block;
    return region_of(l, ll).slots + lane * slots_of_lane(l, ll);
}

bool mc_gpu_arena_by_host(const mc_gpu_arena_t *a, int32_t x, int32_t y)
{
    const int32_t n = a->layout.ranks;
    return !a->reach[x * n + y] || !a->reach[y * n + x];
}

mc_device_lane_t mc_gpu_arena_lane(const mc_gpu_arena_t *a, int32_t peer, bool receives,
                                   uint32_t block, bool ll)
{
    const mc_gpu_layout_t *const l = &a->layout;
    const bool by_host = mc_gpu_arena_by_host(a, l->rank, peer);
    const mc_gpu_part_t *const own = &a->part[l->rank], *const other = &a->part[peer];
    char *const here = (char *)(uintptr_t)(by_host ? own->host.device : own->device);
    char *const there = (char *)(uintptr_t)(by_host ? other->host.device : other->device);
    char *const mine = here + counters_at(l, ll, l->rank, peer, block);
    char *const theirs = there + counters_at(l, ll, peer, l->rank, block);
    mc_device_lane_t lane = {
        .slots = receives ? here + slots_at(l, ll, l->rank, peer, block)
                          : there + slots_at(l, ll, peer, l->rank, block),
        .awaited = (uint64_t *)(void *)(mine + (receives ? MC_GPU_FLAG : MC_GPU_CREDIT)),
        .raised = (uint64_t *)(void *)(theirs + (receives ? MC_GPU_CREDIT : MC_GPU_FLAG)),
        .count = (uint64_t *)(void *)(mine + (receives ? MC_GPU_TAKEN : MC_GPU_SENT))};
    if (ll || by_host)
        return lane;
    lane.begun = (uint64_t *)(void *)((receives ? theirs : mine) + MC_GPU_BEGUN);
    lane.launches = (uint64_t *)(void *)(mine + (receives ? MC_GPU_TAKEN_IN : MC_GPU_SENT_IN));
    return lane;
}

mc_device_track_t *mc_gpu_arena_tracks(const mc_gpu_arena_t *a)
{
    return (mc_device_track_t *)(uintptr_t)a->part[a->layout.rank].device;
}

/* Memory of GPUs ---------------------------------------------------------------------------------- */

int mc_gpu_arena_make(mc_gpu_arena_t *a, mc_cu_stream_t stream, mc_cu_ipc_t *handle,
                      uint8_t *shared)
{
    const mc_cuda_t *const cuda = mc_cuda();
    const size_t zeros = zeros_of(&a->layout);
    mc_cu_address_t at;
    int status = mc_cuda_status(cuda->alloc(&at, mc_gpu_layout_bytes(&a->layout)),
                                "allocate slots for messages");
    if (status)
        return status;
    a->part[a->layout.rank].device = at;
    if (zeros > 0) {
        status = mc_cuda_status(cuda->fill(at, 0, zeros, stream), "zero counters");
        if (!status)
            status = mc_cuda_status(cuda->stream_synchronize(stream), "zero counters");
    }
    *shared = !status && near_below(&a->layout, a->layout.rank, a->layout.ranks) > 0 &&
              cuda->ipc_get(handle, at) == 0;
    return status;
}

bool mc_gpu_arena_map(mc_gpu_arena_t *a, int32_t peer, const mc_cu_ipc_t *handle)
{
    mc_cu_address_t at;
    if (mc_cuda()->ipc_open(&at, *handle, MC_CU_IPC_PEER) != 0)
        return false;
    a->part[peer].device = at;
    return true;
}

/* Memory of the host ------------------------------------------------------------------------------ */

int mc_gpu_arena_make_host(mc_gpu_arena_t *a, mc_sealed_t *file)
{
    return mc_cuda_shared_make(mc_gpu_layout_bytes(&a->layout), file,
                               &a->part[a->layout.rank].host);
}

int mc_gpu_arena_map_host(mc_gpu_arena_t *a, int32_t peer, const mc_sealed_t *file)
{
    return mc_cuda_shared_map(mc_gpu_layout_bytes(&a->layout), file, &a->part[peer].host);
}

/* Freeing ----------------------------------------------------------------------------------------- */

void mc_gpu_arena_unmap(mc_gpu_arena_t *a)
{
    for (int32_t r = 0; a->part && r < a->layout.ranks; r++) {
        mc_gpu_part_t *const part = &a->part[r];
        if (r == a->layout.rank)
            continue;
        mc_cuda_shared_close(&part->host, false);
        if (part->device)
            mc_cuda()->ipc_close(part->device);
        part->device = 0;
    }
}

void mc_gpu_arena_free(mc_gpu_arena_t *a, bool leaves)
{
    mc_gpu_part_t *const own = a->part ? &a->part[a->layout.rank] : NULL;
    if (own)
        mc_cuda_shared_close(&own->host, leaves);
    if (own && own->device && !leaves)
        mc_cuda()->free(own->device);
    free(a->reach);
    free(a->part);
    *a = (mc_gpu_arena_t){.part = NULL};
}
