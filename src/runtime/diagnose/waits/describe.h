/* What a request waits for. */
#ifndef MC_WAITS_DESCRIBE_H
#define MC_WAITS_DESCRIBE_H

#include "runtime/diagnose/waits/waits.h"
#include "runtime/handle/run.h"

/* Describes a running request but for its times. */
void mc_wait_describe(const meshcoll_request_t *r, mc_wait_t *wait);
/* The same of a call on device memory. */
void mc_wait_describe_launch(const meshcoll_t *h, const mc_waits_launch_t *launch, mc_wait_t *wait);
/* Fills in the peer, a rank of the job. */
void mc_wait_set_job_peer(const meshcoll_t *h, int32_t rank, mc_wait_t *wait);
/* Where a rank of the job is. */
mc_wait_place_t mc_wait_place(const mc_job_t *job, int32_t rank);
/* Tells the meshes of a family apart; the same on all ranks. */
static inline uint32_t mc_wait_part(const meshcoll_t *h)
{
    return h->context.creation << MC_TAG_CONTEXT_BITS | h->context.number;
}
/* Every process numbers its own operations; all are one. */
static inline int32_t mc_wait_op(meshcoll_op_t op)
{
    return (uint32_t)op < MESHCOLL_OPS ? (int32_t)op : MESHCOLL_OPS;
}
/* A sum that changes where a running request has moved on. */
uint64_t mc_wait_mark(const meshcoll_request_t *r);

#endif
