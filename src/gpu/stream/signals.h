/*
 * What the stream executor of a mesh has besides its arenas: the states of slots, and where streams
 * stand, in memory of the host that all ranks share; and the watch. CUDA says nothing of waits on
 * memory that was opened by IPC, but names registered memory of the host.
 *
 * The watch is a thread that sees to it that no stream waits for ever: waits of streams look at nothing
 * but their word. It polls where the stream stands. When a wait takes longer than its limit it reports
 * that, as a block of a kernel does; then, or when the mesh failed, here or on another rank, it
 * ends all waits of this rank, and goes on so until it is closed: what the streams do then writes
 * states of slots too.
 *
 * Messages that a rank sends after its waits were ended are not what its peers expect. So before it
 * ends any, it notifies all peers that it gave up; who takes such a message finds that it did.
 */
#ifndef MC_STREAM_SIGNALS_H
#define MC_STREAM_SIGNALS_H

#include "gpu/cuda/shared.h"
#include "gpu/stream/stream.h"

#include <pthread.h>

typedef struct mc_stream_signals {
    int32_t rank, ranks;
    mc_cuda_shared_t *part; /* by rank */
    uint32_t blocks;        /* of a sum's kernel */
    bool flushes;           /* can the GPU flush remote writes? */

    /* The watch. */
    const _Atomic uint32_t *alarm; /* not 0: the mesh failed */
    mc_device_report_t *report;    /* of a wait that took too long */
    _Atomic int64_t limit_ms;      /* of a wait from now on; 0 or less: for ever */
    bool runs, lingers, stops;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
} mc_stream_signals_t;

/* Made in three steps: the parts of all ranks, this rank's with empty slots; those of the others; the watch. The caller
 * closes them on failure, too. ERR_UNSUPPORTED: the driver cannot do this. */
int mc_stream_signals_make(mc_stream_signals_t *signals, int32_t rank, int32_t ranks,
                           mc_cu_device_t device, mc_sealed_t *file);
int mc_stream_signals_map(mc_stream_signals_t *signals, int32_t peer, const mc_sealed_t *file);
int mc_stream_signals_watch(mc_stream_signals_t *signals, const _Atomic uint32_t *alarm,
                            mc_device_report_t *report);

/* Where the stream says where it stands, as the GPU sees it. */
mc_cu_address_t mc_stream_signals_place(const mc_stream_signals_t *signals);
/* Fills in the words of this rank's lane to a peer, or from it, as the GPU sees them. */
void mc_stream_signals_lane(const mc_stream_signals_t *signals, int32_t peer, bool receives,
                            mc_stream_lane_t *lane);
/* Has this rank notice of one that gave up: 1, + 2 times its number, + 1 where it waited too long; 0: no. */
uint32_t mc_stream_signals_notice(const mc_stream_signals_t *signals);

/* Ends the watch and closes peers' parts: no stream waits any more, or the mesh has failed. */
void mc_stream_signals_unmap(mc_stream_signals_t *signals);
/* Frees the rest, and the signals unless the watch lingers. `leaves`: the memory stays as it is. */
void mc_stream_signals_free(mc_stream_signals_t *signals, bool leaves);

#endif
