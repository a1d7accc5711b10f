/*
 * A thread that sees to it that no stream waits for ever: waits of streams look at nothing but
 * their word. It polls where the stream stands. When a wait takes longer than its limit it reports
 * that, as a block of a kernel does; then, or when the mesh failed, here or on another rank, it
 * ends all waits of this rank, and goes on so until it is closed: what the streams do then writes
 * states of slots too.
 *
 * Messages that a rank sends after its waits were ended are not what its peers expect. So before it
 * ends any, it notifies all peers that it gave up; who takes such a message finds that it did.
 */
#ifndef MC_STREAM_WATCH_H
#define MC_STREAM_WATCH_H

#include "gpu/stream/stream.h"

/* The notice of a rank that gave up: which one it is, and whether it waited too long. 0: none did. */
static inline uint32_t mc_stream_notice(int32_t rank, bool late)
{
    return 1 + 2 * (uint32_t)rank + late;
}
static inline int32_t mc_stream_notice_rank(uint32_t notice)
{
    return (int32_t)((notice - 1) / 2);
}
static inline bool mc_stream_notice_late(uint32_t notice)
{
    return (notice - 1) % 2;
}

/* Words in memory that stays until the watch is closed, or until the process ends if it lingers. */
typedef struct {
    int32_t rank;
    const _Atomic uint32_t *alarm; /* not 0: the mesh failed */
    mc_stream_place_t *place;
    mc_device_report_t *report; /* of a wait that took too long */
    _Atomic uint32_t *notice;   /* that this rank has */
    _Atomic uint32_t **peer;    /* the same of its peers; the watch frees the list */
    uint32_t n_peers;
    _Atomic uint32_t **state; /* of the slots of this rank's lanes; the watch frees the list */
    uint32_t n_states;
} mc_stream_watched_t;

typedef struct mc_stream_watch mc_stream_watch_t;

/* Starts the thread; frees the lists if it cannot. */
int mc_stream_watch_open(const mc_stream_watched_t *watched, mc_stream_watch_t **watch);
/* How long a wait may take from now on; 0 or less: for ever. */
void mc_stream_watch_limit(mc_stream_watch_t *watch, int64_t milliseconds);
/* What streams may run that nobody knows of: the watch is not to end before the process. */
void mc_stream_watch_linger(mc_stream_watch_t *watch);
/* Ends the thread, unless it lingers. NULL is allowed. */
void mc_stream_watch_close(mc_stream_watch_t *watch);

#endif
