/* MESHCOLL_CHECK=1 in groups: the calls of a group are compared at its end, before any starts. */
#ifndef MC_CALL_CHECK_GROUP_H
#define MC_CALL_CHECK_GROUP_H

#include "runtime/call/start.h"
#include "runtime/handle/fingerprint.h"

/* What the open group's calls ask for. */
typedef struct {
    mc_fingerprint_t *call;
    uint32_t n, capacity;
    uint32_t number;          /* of the comparison */
    uint32_t n_made;          /* calls, with those that were refused */
    uint64_t hash;            /* of all */
    bool is_refused;          /* one was, so that the group is */
    mc_fingerprint_t refused; /* its first one */
} mc_seen_t;

/* Takes the group's operation numbers, as a call does. */
void mc_seen_open(meshcoll_t *h, mc_seen_t *seen);
int mc_seen_add(const meshcoll_t *h, mc_seen_t *seen, const mc_asked_t *asked);
/* A call was refused with the thread's last error. */
void mc_seen_refuse(const meshcoll_t *h, mc_seen_t *seen);
/* Compares the group with those of the other ranks, and waits for it. ERR_MISMATCH where ranks disagree. */
int mc_seen_compare(meshcoll_t *h, const mc_seen_t *seen);

#endif
