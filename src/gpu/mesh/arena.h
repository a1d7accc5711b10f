/*
 * Arenas: where messages between GPUs of one machine lie. Each rank has one, with the slots of what its peers
 * send to it, and with the counters that peers raise for it. Where two GPUs reach each other it is
 * memory of the receiver's GPU, which the peer maps by CUDA IPC; else pinned memory of the host,
 * which both processes map.
 *
 * Its layout follows from the mesh's size, blocks and bytes of a slot, on which all ranks agree:
 * what blocks of a slice tell each other, counters of each peer and block, then slots, of peers on the same machine. Slots of others are a proxy's
 * (gpu/proxy), and have only the kernel's own counts here. Messages with flags in their data (gpu/kernel/ll.h)
 * have both for themselves, before the others; a mesh on several machines has none.
 */
#ifndef MC_GPU_ARENA_H
#define MC_GPU_ARENA_H

#include "gpu/cuda/shared.h"
#include "gpu/program/format.h"

/* Counters that different GPUs write lie in sectors of their own (the L2 cache's, 32 bytes). BEGUN,
 * and the launches that either end has counted, are of lanes with direct messages. */
enum {
    MC_GPU_FLAG = 0,
    MC_GPU_CREDIT = 32,
    MC_GPU_BEGUN = 40,
    MC_GPU_SENT = 64,
    MC_GPU_SENT_IN = 72,
    MC_GPU_TAKEN = 96,
    MC_GPU_TAKEN_IN = 104,
    MC_GPU_LANE = 128
};

typedef struct {
    int32_t rank, ranks;
    uint32_t blocks, slot_bytes;
    uint32_t ll_bytes;      /* of a slot for messages with flags in their data; 0: there are none */
    const int32_t *machine; /* by rank: the lowest rank on its machine; the mesh's */
} mc_gpu_layout_t;

/* One rank's arena, as this process and its GPU see it. */
typedef struct {
    mc_cu_address_t device; /* 0: none */
    mc_cuda_shared_t host;  /* that in memory of the host */
} mc_gpu_part_t;

typedef struct {
    mc_gpu_layout_t layout;
    mc_gpu_part_t *part;  /* by rank */
    unsigned char *reach; /* rank * ranks + other: can its GPU use the other's memory? */
} mc_gpu_arena_t;

size_t mc_gpu_layout_bytes(const mc_gpu_layout_t *layout);
/* Do the messages of two ranks of a machine lie in memory of the host? */
bool mc_gpu_arena_by_host(const mc_gpu_arena_t *arena, int32_t a, int32_t b);

/* This rank's end of its lane to a peer, or from it; of a peer on another machine only `count` is of use.
 * `ll`: of messages with flags in their data; else `begun` is set where the GPUs reach each other. */
mc_device_lane_t mc_gpu_arena_lane(const mc_gpu_arena_t *arena, int32_t peer, bool receives,
                                   uint32_t block, bool ll);
/* By block, in this rank's own part. */
mc_device_track_t *mc_gpu_arena_tracks(const mc_gpu_arena_t *arena);

/* Makes this rank's part in the memory of its GPU, zeroed where it must be; the context is current, and
 * `stream` is free. *shared is false where the driver gives no handle of it, and peers reach it as little as where they
 * cannot open one. */
int mc_gpu_arena_make(mc_gpu_arena_t *arena, mc_cu_stream_t stream, mc_cu_ipc_t *handle,
                      uint8_t *shared);
/* A peer's; false: its memory cannot be reached. */
bool mc_gpu_arena_map(mc_gpu_arena_t *arena, int32_t peer, const mc_cu_ipc_t *handle);

/* The same in memory of the host. */
int mc_gpu_arena_make_host(mc_gpu_arena_t *arena, mc_sealed_t *file);
int mc_gpu_arena_map_host(mc_gpu_arena_t *arena, int32_t peer, const mc_sealed_t *file);

/* Peers' parts are not used any more; then this rank's own. `leaves`: all memory stays as it is. */
void mc_gpu_arena_unmap(mc_gpu_arena_t *arena);
void mc_gpu_arena_free(mc_gpu_arena_t *arena, bool leaves);

#endif
