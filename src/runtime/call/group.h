/*
 * A group: calls that are collected, then started together, the small ones packed into fewer.
 *
 * Calls of the same collective, datatype, operation and root are packed where that is cheaper by the
 * link model. Beside others a small call costs the gaps between its messages (link.h), since their
 * latencies overlap; packed it costs two copies through memory. So a call is packed when its
 * bytes, copied in and out, take less than the messages of the smallest call of its kind with a gap
 * for their alpha. Nothing but arguments that are the same on all ranks decides, so that all pack alike.
 */
#ifndef MC_RUNTIME_GROUP_H
#define MC_RUNTIME_GROUP_H

#include "runtime/call/start.h"

typedef struct {
    mc_asked_t asked;
    uint32_t next; /* that it is packed with, behind it; 0: none */
    bool begun;
} mc_member_t;

typedef struct mc_group {
    mc_member_t *member;
    uint32_t n, capacity;
    int failed; /* the first status of a call that was refused */
    /* what was started, and with which member it begins */
    meshcoll_request_t **request;
    uint32_t *first;
    uint32_t n_requests;
} mc_group_t;

/* A call within a group, its arguments checked here. */
int mc_group_add(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier);
/* A call within a group was refused: its end starts none. */
void mc_group_refuse(meshcoll_t *h, int status);
void mc_group_free(meshcoll_t *h);

/* Whether calls of these arguments are packed, given others like it. */
bool mc_group_packs(meshcoll_t *h, const meshcoll_args_t *a);

#endif
