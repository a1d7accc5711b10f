/*
 * What the stream executor of a mesh has besides its arenas: the states of slots, and where streams
 * stand, in pinned memory of the host that all ranks map; and the watch. CUDA says nothing of waits
 * on memory that was opened by IPC, but names registered memory of the host.
 */
#ifndef MC_GPU_SIGNALS_H
#define MC_GPU_SIGNALS_H

#include "gpu/mesh/arena.h"
#include "gpu/stream/stream.h"

typedef struct mc_gpu_signals {
    mc_gpu_arena_t part;      /* of each rank; its lanes are what its peers send to it */
    mc_stream_watch_t *watch; /* NULL: none runs */
    uint32_t blocks;          /* of a sum's kernel */
    bool flushes;             /* can the GPU flush remote writes? */
} mc_gpu_signals_t;

/* Makes this rank's part, whose slots are empty. On success and on failure the caller closes it.
 * ERR_UNSUPPORTED: the driver cannot do this. */
int mc_gpu_signals_make(mc_gpu_signals_t *signals, int32_t rank, int32_t ranks,
                        mc_cu_device_t device, mc_sealed_t *file);
/* When all parts are mapped: starts the watch. */
int mc_gpu_signals_watch(mc_gpu_signals_t *signals, const _Atomic uint32_t *alarm,
                         mc_device_report_t *report);

/* Where the stream says where it stands, as the GPU sees it. */
mc_cu_address_t mc_gpu_signals_place(const mc_gpu_signals_t *signals);
/* The states of this rank's lane to a peer, or from it, as the GPU sees them. */
mc_cu_address_t mc_gpu_signals_states(const mc_gpu_signals_t *signals, int32_t peer, bool receives);
/* The first of them in the watch's list; behind those of the slots is that of `begun`. */
uint32_t mc_gpu_signals_word(const mc_gpu_signals_t *signals, int32_t peer, bool receives);
/* The word in which a lane's receiver says that its launch has begun, as the GPU sees it. */
mc_cu_address_t mc_gpu_signals_begun(const mc_gpu_signals_t *signals, int32_t peer, bool receives);
/* The notice that this rank has (gpu/stream/stream.h); 0: nothing. */
uint32_t mc_gpu_signals_notice(const mc_gpu_signals_t *signals);

/* Ends the watch: no stream waits any more, or the mesh has failed. */
void mc_gpu_signals_end(mc_gpu_signals_t *signals);

#endif
