/*
 * Calls that are known again: a request that serves calls remembers the last one. The same call finds it
 * bound; one that differs in its buffers only moves its spans there. Neither checks arguments, chooses
 * or plans. Known are calls whose checks, choice and binding depend on nothing but their arguments and
 * what strategy is forced: not those with tables of counts, which may change in place, with a
 * strategy of their own, or with a user's operation, which may be freed.
 */
#ifndef MC_REQUEST_KNOWN_H
#define MC_REQUEST_KNOWN_H

#include "gpu/cuda/kind.h"
#include "runtime/handle/request.h"

/* All of a call but its count and buffers; UNKNOWN: such calls are not known again. */
static const uint64_t MC_KIND_UNKNOWN = UINT64_MAX;
static inline uint64_t mc_known_kind(const meshcoll_args_t *a, bool is_barrier)
{
    enum { BITS = 8, ROOT = 32 };
    const uint32_t small = (uint32_t)a->collective | (uint32_t)a->datatype | (uint32_t)a->op;
    if (a->size != sizeof *a || a->strategy || a->counts || a->in_counts || a->counts_at_root ||
        small >> BITS || (uint32_t)a->op >= MESHCOLL_OPS)
        return MC_KIND_UNKNOWN;
    return (uint64_t)(uint32_t)a->root << ROOT | (uint64_t)is_barrier << 3 * BITS |
           (uint64_t)a->op << 2 * BITS | (uint64_t)a->datatype << BITS | (uint64_t)a->collective;
}

/* The circle of requests that served calls of that kind and count, among others. */
static inline meshcoll_request_t **mc_known_at(meshcoll_t *h, uint64_t kind, size_t count)
{
    const uint64_t key = (kind ^ (uint64_t)count << 2 * 8) * UINT64_C(0x9e3779b97f4a7c15);
    return &h->known[key >> 32 & (MC_KNOWN_CALLS - 1)];
}

/* Are both buffers there, and do they overlap as those of the last call did? */
static inline bool mc_known_fits(const mc_known_t *k, const void *in, const void *out)
{
    const uintptr_t i = (uintptr_t)in, o = (uintptr_t)out;
    const bool there = (in || k->in_bytes == 0) && (out || k->out_bytes == 0);
    const bool apart = i + k->in_bytes <= o || o + k->out_bytes <= i;
    const bool as_before = i - o == (uintptr_t)k->in - (uintptr_t)k->out;
    return there && (as_before || (k->apart && (apart || !k->in_bytes || !k->out_bytes) &&
                                   (in == out) == (k->in == k->out)));
}

/* Is the choice that it remembers still valid? Forgotten choices may have been replaced in their place. The
 * choice, a cache line of its own, is read only after some have been forgotten. */
static inline bool mc_known_holds(meshcoll_request_t *r)
{
    mc_known_t *const k = &r->known;
    const uint64_t forgotten = r->mesh->choice.n_forgotten;
    if (!k->choice || k->forgotten == forgotten)
        return k->choice;
    const bool holds = k->choice->made == k->made;
    k->forgotten = holds ? forgotten : k->forgotten;
    return holds;
}

/* Finds a request that serves no call and served the same one last, else one whose call differed in its
 * buffers only; NULL: there is none, or the buffers are device memory. `kind` is not UNKNOWN. The next search begins
 * with the request found, as calls come again in the same order: those after it are next. */
static inline meshcoll_request_t *mc_known_find(meshcoll_t *h, const meshcoll_args_t *a,
                                                uint64_t kind)
{
    meshcoll_request_t **const first = mc_known_at(h, kind, a->count), *r = *first, *like = NULL;
    for (int looks = 0; r && looks < MC_CACHED_LOOKS; looks++) {
        const mc_known_t *const k = &r->known;
        if (k->kind == kind && k->count == a->count && !r->taken && mc_known_holds(r)) {
            if (k->in == a->in && k->out == a->out)
                return *first = r;
            if (mc_known_fits(k, a->in, a->out))
                like = r;
        }
        r = k->next == *first ? NULL : k->next;
    }
    if (like)
        *first = like;
    if (like && (mc_pointer_on_device(a->in) || mc_pointer_on_device(a->out)))
        return NULL;
    return like;
}

/* Remembers the call `given` of that kind that r is bound to now; `bytes` is what it counts (lead.h). */
void mc_known_add(meshcoll_request_t *r, const meshcoll_args_t *given, uint64_t kind,
                  mc_memory_t *choice, int64_t bytes);
/* Before it is bound to another call. */
void mc_known_forget(meshcoll_request_t *r);

#endif
