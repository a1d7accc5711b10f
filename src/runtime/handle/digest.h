/*
 * The digest of a call, in the tags of its messages: of what must be the same on all ranks, its collective, datatype,
 * operation, root and count. Calls that differ in one of the first four have different digests, and so have calls
 * that differ in datatype and operation; of others one pair in 512 is taken for the same. The mesh's creation is part
 * of it, as contexts are used again: ranks that have made different calls may have left messages.
 */
#ifndef MC_HANDLE_DIGEST_H
#define MC_HANDLE_DIGEST_H

#include "runtime/handle/handle.h"

#include "compose/algorithms/placement.h"

/* Every process numbers its own operations; they are one. */
enum { MC_DIGEST_USERS = MESHCOLL_OPS, MC_DIGEST_BARRIER, MC_DIGEST_NO_OP, MC_DIGEST_OPS };
/* Odd: added to those of calls on device memory, and for each number of theirs, and candidate that they have learned. */
enum { MC_DIGEST_DEVICE = 181, MC_DIGEST_NUMBER = 311, MC_DIGEST_CANDIDATE = 97 };
_Static_assert(MC_DIGEST_OPS <= 16, "four bits");
_Static_assert(MESHCOLL_DATATYPES <= 32 && MC_TAG_DIGEST_BITS >= 9,
               "predefined types are told apart");

/* 0 where ranks may have counts of their own. */
static inline uint32_t mc_digest_of_count(const meshcoll_args_t *a)
{
    const bool own = a->counts || a->in_counts || a->counts_at_root;
    return own ? 0 : (uint32_t)(a->count * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static inline uint32_t mc_digest_of(const meshcoll_t *h, const meshcoll_args_t *a, bool is_barrier)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    const uint32_t root = move->rooted ? (uint32_t)a->root : 0, type = (uint32_t)a->datatype;
    const uint32_t op = is_barrier                                 ? MC_DIGEST_BARRIER
                        : !move->reduces                           ? MC_DIGEST_NO_OP
                        : (uint32_t)a->op < (uint32_t)MESHCOLL_OPS ? (uint32_t)a->op
                                                                   : MC_DIGEST_USERS;
    /* odd factors: each field alone changes the low bits */
    return 16 * (type ^ type >> 5) + op + 73 * (uint32_t)a->collective +
           151 * (root ^ root >> MC_TAG_DIGEST_BITS) + 331 * h->context.creation +
           mc_digest_of_count(a);
}

/* What tags have: of a call by one of the candidates from which it learns, so that ranks that have learned otherwise tell
 * it as soon as a message comes. */
static inline uint32_t mc_digest_by(uint32_t digest, int32_t candidate)
{
    return digest + MC_DIGEST_CANDIDATE * (uint32_t)candidate;
}

/* Of a call on device memory. Its messages are told by it and by the call's number, which tags have besides. */
static inline uint32_t mc_digest_on_device(const meshcoll_t *h, const meshcoll_args_t *a)
{
    return mc_digest_of(h, a, false) + MC_DIGEST_DEVICE;
}
static inline uint32_t mc_digest_numbered(uint32_t digest, uint32_t number)
{
    return (digest + MC_DIGEST_NUMBER * number) & ((1 << MC_TAG_DIGEST_BITS) - 1);
}

#endif
