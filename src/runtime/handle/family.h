/*
 * The contexts of a job's meshes. Each mesh has choices, requests, tagged messages and operation numbers of its
 * own; the job (job.h) has the rest.
 *
 * Tags tell the meshes apart by a context, and name ranks as the job's. The ranks of a group agree on
 * a context that is free on all of them when they make it (runtime/family). So a rank has at most one
 * handle for a context, and the messages of two ranks in one context belong to one group. A context is
 * free again when the group is destroyed; headers of tagged messages, which may arrive later than that,
 * also carry the creation: a number of 24 bits that grows, on all ranks of a group, with each use of a
 * context.
 */
#ifndef MC_HANDLE_FAMILY_H
#define MC_HANDLE_FAMILY_H

#include "base/base.h"
#include "transport/transport.h"

enum { MC_CONTEXTS = 1 << MC_TAG_CONTEXT_BITS, MC_CONTEXT_WORDS = MC_CONTEXTS / 64 };

/* A creation of this rank that is under way. */
typedef struct mc_creating {
    struct mc_creating *next;
    /* which of several at once goes first, on all ranks: the smallest */
    uint32_t context; /* of the parent */
    int32_t tag;
    uint64_t members; /* a hash of their list */
} mc_creating_t;

_Static_assert(MC_CONTEXT_WORDS == 64, "a bit per word");

/* Of a job with more than its first mesh. */
typedef struct mc_family {
    uint64_t used[MC_CONTEXT_WORDS]; /* a bit per context */
    uint32_t last[MC_CONTEXTS];      /* by context: the latest creation that used it; 0: none */
    uint32_t latest;                 /* creation that this rank knows of */
    mc_creating_t *creating;
    bool offered;      /* one of them has offered the free contexts to other ranks */
    uint64_t reserved; /* a bit per word of `used`: offered, for a round, to no other creation */
} mc_family_t;

enum { MC_CREATION_BITS = 24 };

/* Did creation `a` come before `b`? They wrap, without 0. */
static inline bool mc_creation_before(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << (32 - MC_CREATION_BITS)) < 0;
}
static inline uint32_t mc_creation_next(uint32_t a)
{
    const uint32_t next = (a + 1) & ((UINT32_C(1) << MC_CREATION_BITS) - 1);
    return next ? next : 1;
}

struct mc_job;
/* The contexts of a job, made when they are asked for first. ERR_NO_MEMORY. */
int mc_family_open(struct mc_job *job);

static inline void mc_context_take(mc_family_t *f, uint32_t context)
{
    f->used[context / 64] |= UINT64_C(1) << context % 64;
}
static inline void mc_context_return(mc_family_t *f, uint32_t context, uint32_t creation)
{
    f->used[context / 64] &= ~(UINT64_C(1) << context % 64);
    f->last[context] = creation;
}
/* Notes the latest creation. What is long ago must not look new after a wrap: it is forgotten, one
 * context at a time. */
static inline void mc_creation_note(mc_family_t *f, uint32_t creation)
{
    uint32_t *const one = &f->last[creation % MC_CONTEXTS];
    if (mc_creation_before(f->latest, creation))
        f->latest = creation;
    if (*one && mc_creation_before(*one + (UINT32_C(1) << (MC_CREATION_BITS - 2)), creation))
        *one = 0;
}

#endif
