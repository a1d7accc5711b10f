/* meshcoll export: the plans of all ranks in the formats that other simulators and executors read. */
#ifndef MC_TOOLS_EXPORT_H
#define MC_TOOLS_EXPORT_H

#include "base/arena.h"
#include "runtime/bind/binding.h"
#include "tools/common/strategy_request.h"

/* A rank's plan, the bytes of its steps and what they wait for. */
typedef struct {
    mc_plan_t *plan;
    mc_binding_t binding; /* of bytes: measured, not placed */
    mc_arena_t arena;
    uint32_t *off, *pred; /* as mc_plan_predecessors */
} mc_export_rank_t;

/* Closed on failure. */
int mc_export_rank_open(const mc_request_t *e, int32_t rank, mc_export_rank_t *r);
void mc_export_rank_close(mc_export_rank_t *r);

/* A step: a message, a sum, or both, the message first. A copy, and what is empty, is neither. */
typedef struct {
    bool sends, receives, sums;
    uint64_t bytes;
    double seconds; /* of the sum: by the links' gamma */
} mc_export_step_t;
mc_export_step_t mc_export_step(const mc_request_t *e, const mc_export_rank_t *r, uint32_t step);

/* What a rank has in a file. ERR_UNSUPPORTED with its reason: what MSCCL has no room for, and Chakra where this was built
 * without protobuf-c. */
int mc_export_goal(const mc_request_t *e, int32_t rank, FILE *out);
int mc_export_chakra(const mc_request_t *e, int32_t rank, FILE *out);
/* All ranks at once. */
int mc_export_msccl(const mc_request_t *e, int32_t rank, FILE *out);

#endif
