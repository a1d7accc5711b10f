/*
 * Which calls this rank was refused. Peers that made such a call may have sent messages for it that nobody takes: they
 * must not meet a later call of the same tag. So ranks compare what they were refused, by the barrier of their lead
 * (lead.h), before a rank that was refused something starts anything more. A call is known by how many calls its rank
 * had made with it.
 */
#ifndef MC_HANDLE_REFUSALS_H
#define MC_HANDLE_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t first, last;
} mc_refused_run_t;

typedef struct {
    uint64_t hash;    /* of all calls refused so far: equal on ranks that were refused the same */
    uint64_t begun;   /* the hash that the latest barrier compares */
    uint32_t before;  /* calls made when the latest barrier began */
    uint32_t settled; /* up to this call all ranks were refused the same */
    uint32_t n, capacity;
    mc_refused_run_t *run; /* refused since */
} mc_refusals_t;

/* ERR_NO_MEMORY. */
int mc_refusals_add(mc_refusals_t *refusals, uint32_t made);
/* Was this call refused here, or have all ranks agreed on it? */
bool mc_refusals_know(const mc_refusals_t *refusals, uint32_t made);
/* A barrier begins, after so many calls: returns up to which call it settles. */
uint32_t mc_refusals_begin(mc_refusals_t *refusals, uint32_t made);
/* That barrier is complete, and all ranks were refused the same. */
void mc_refusals_settle(mc_refusals_t *refusals, uint32_t made);
void mc_refusals_free(mc_refusals_t *refusals);

#endif
