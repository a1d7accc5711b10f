/*
 * A group: calls that are collected, then started together, with small ones packed into fewer.
 *
 * Calls of the same collective, datatype, operation and root are packed where the link model says
 * that it is cheaper. Concurrent with others, a small call costs the gaps between its messages
 * (link.h), because latencies overlap; packed, it costs two copies through memory. So a call is
 * packed when copying its bytes in and out takes less time than the messages of the smallest call
 * of its kind, with the gap in place of alpha. The decision depends only on arguments that are the
 * same on all ranks, so that all ranks pack the same calls.
 */
#ifndef MC_RUNTIME_GROUP_H
#define MC_RUNTIME_GROUP_H

#include "runtime/call/start.h"

typedef struct {
    mc_asked_t asked;
    uint32_t next; /* index of the next member packed with it; 0: none */
    bool begun;
} mc_member_t;

typedef struct mc_group {
    mc_member_t *member;
    uint32_t n, capacity;
    int failed; /* the first status of a refused call */
    /* the started requests, and the first member of each */
    meshcoll_request_t **request;
    uint32_t *first;
    uint32_t n_requests;
    uint32_t number; /* of its comparison, where calls are compared */
} mc_group_t;

/* Adds a call to the open group, and checks its arguments. */
int mc_group_add(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier);
/* A call of the group was refused with `status`, which it returns: the group's end then starts none. */
int mc_group_refuse(meshcoll_t *h, uint32_t number, int status);
/* The mesh is destroyed while the group is open: its calls are not made. */
void mc_group_drop(meshcoll_t *h);
void mc_group_free(meshcoll_t *h);

/* Are calls of these arguments packed, if the group has others of their kind? */
bool mc_group_packs(meshcoll_t *h, const meshcoll_args_t *a);

#endif
