/*
 * The cache of calls: requests that serve calls, each bound to the last one, with its choice. The same call finds its
 * request bound; one that differs in its buffers only moves the spans there. Neither checks arguments, chooses or
 * plans. So it is with calls whose checks, choice and binding depend on nothing but their arguments and what strategy
 * is forced (`kind`): not with those that have tables of counts, which may change in place, a strategy of their own, or
 * a user's operation, which may be freed. These still find their choice and a plan.
 *
 * What is in the cache is a rank's own affair. It differs between ranks, as their calls complete at different times and
 * have other buffers. This does not matter: a choice made again is the same (choose/choice.h), and which request runs a
 * call cannot be told from its messages (numbers.h).
 */
#ifndef MC_CALL_CACHE_H
#define MC_CALL_CACHE_H

#include "runtime/call/request.h"

/* A request of the cache: the call that it is bound to, and its place. */
typedef struct mc_cached mc_cached_t;
struct mc_cached {
    mc_run_t run;  /* first */
    uint64_t kind; /* of the call: mc_cache_kind; ONCE: none finds it */
    size_t count;
    const void *in; /* as the caller passed them */
    void *out;
    int64_t bytes;              /* what it counts (lead.h) */
    mc_cached_t *next, *before; /* in its bucket's circle */
    size_t in_bytes, out_bytes;
    uint64_t *left; /* of what the call learns: calls until it is asked (adapt.h) */
    bool apart;     /* in and out do not overlap */
    uint32_t bucket;
    uint64_t used;       /* when it last served a call, in calls served */
    mc_list_node_t node; /* of all */
    mc_choice_key_t key; /* of its choice; `strategy` tells only whether there was one */
};

static inline mc_cached_t *mc_cached_of(mc_list_node_t *n)
{
    return (mc_cached_t *)((char *)n - offsetof(mc_cached_t, node));
}

/* All of a call but its count and buffers; ONCE: such calls do not find their request bound. */
static const uint64_t MC_KIND_ONCE = UINT64_MAX;
static inline uint64_t mc_cache_kind(const meshcoll_args_t *a, bool is_barrier)
{
    enum { BITS = 8, ROOT = 32 };
    const uint32_t small = (uint32_t)a->collective | (uint32_t)a->datatype | (uint32_t)a->op;
    if (a->size != sizeof *a || a->strategy || a->counts || a->in_counts || a->counts_at_root ||
        small >> BITS || (uint32_t)a->op >= MESHCOLL_OPS)
        return MC_KIND_ONCE;
    return (uint64_t)(uint32_t)a->root << ROOT | (uint64_t)is_barrier << 3 * BITS |
           (uint64_t)a->op << 2 * BITS | (uint64_t)a->datatype << BITS | (uint64_t)a->collective;
}

/* Of a call with this count and the caller's root. Operations and datatypes share one, as they share choices. */
static inline uint32_t mc_cache_bucket(meshcoll_collective_t collective, int32_t root, size_t count)
{
    enum {
        ROOTED = 1 << MESHCOLL_BCAST | 1 << MESHCOLL_REDUCE | 1 << MESHCOLL_SCATTER |
                 1 << MESHCOLL_GATHER
    };
    const uint32_t own_root = ROOTED >> (collective & 31) & 1 ? (uint32_t)root : 0;
    const uint64_t key = (uint64_t)own_root << 32 ^ (uint64_t)collective ^ (uint64_t)count << 16;
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (MC_CACHE_BUCKETS - 1);
}

/* Are both buffers there, and do they overlap as those of the last call did? */
static inline bool mc_cache_fits(const mc_cached_t *c, const void *in, const void *out)
{
    const uintptr_t i = (uintptr_t)in, o = (uintptr_t)out;
    const bool there = (in || c->in_bytes == 0) && (out || c->out_bytes == 0);
    const bool apart = i + c->in_bytes <= o || o + c->out_bytes <= i;
    const bool as_before = i - o == (uintptr_t)c->in - (uintptr_t)c->out;
    return there && (as_before || (c->apart && (apart || !c->in_bytes || !c->out_bytes) &&
                                   (in == out) == (c->in == c->out)));
}

/* Finds a request that serves no call and served the same one last, else one whose call differed in its
 * buffers only, the first of these, so that requests keep the order of the calls; NULL: there is none, or the buffers
 * are device memory. `kind` is not ONCE. The next search begins with the request found, as calls come again in the same
 * order: those after it are next. */
static inline mc_cached_t *mc_cache_find(meshcoll_t *h, const meshcoll_args_t *a, uint64_t kind)
{
    mc_cached_t **const first = &h->cache.bucket[mc_cache_bucket(a->collective, a->root, a->count)];
    mc_cached_t *c = *first, *like = NULL;
    for (int looks = 0; c && looks < MC_CACHE_LOOKS; looks++) {
        if (c->kind == kind && c->count == a->count && !c->run.head.taken) {
            if (c->in == a->in && c->out == a->out)
                return *first = c;
            if (!like && mc_cache_fits(c, a->in, a->out))
                like = c;
        }
        c = c->next == *first ? NULL : c->next;
    }
    if (like)
        *first = like;
    return like && mc_device_has(h->job->device, a->in, a->out) ? NULL : like;
}

/* Fills in the key of a checked call. */
void mc_cache_key(const meshcoll_t *h, mc_call_t *call);
/* Chooses as the planner does, or as is forced. */
int mc_cache_look(meshcoll_t *h, mc_call_t *call);
/* Both, for what no request of the cache serves; the cache keeps the choice. */
int mc_cache_choose(meshcoll_t *h, mc_call_t *call);
/* Finds or makes a request for a call with its choice: planned and wired, not bound. It is the caller's until
 * mc_request_complete or mc_request_drop. A deferred call's may have no plan yet. `again`: the call will find it bound
 * (`kind`), so as long as there is room it takes no request that other calls find bound. */
int mc_cache_serve(meshcoll_t *h, const mc_call_t *call, bool again, mc_cached_t **request);
/* Of one that serves a call and does not run: plans it for the choice of a call of its bucket, if it has another one.
 * *known_text: that of the other one, to be freed. */
int mc_cache_plan(meshcoll_t *h, mc_cached_t *c, const mc_call_t *call, char **known_text);
/* A request for an operation of the library itself, bound. Of `call` its arguments, number and strategy. It is the
 * caller's as above; with a task it is of `kind` until it has ended, and released then, unless its start fails. */
int mc_cache_prepare(meshcoll_t *h, mc_call_t *call, const mc_request_kind_t *kind, void *task,
                     mc_run_t **run);
/* Kinds of requests of the cache: of calls, and of what they run for the library. */
#define MC_CACHED_RUN .bytes = sizeof(mc_cached_t), MC_RUN, .release = mc_cache_release
extern const mc_request_kind_t mc_call_kind;
void mc_cache_release(meshcoll_request_t *r);
/* Lets a call of that kind, which c is bound to now, find it; `bytes` is what it counts (lead.h). */
void mc_cache_note(mc_cached_t *c, const mc_call_t *call, uint64_t kind, int64_t bytes);
/* No call that counts in `left` finds its request bound any more; NULL: no call at all. */
void mc_cache_unbind(meshcoll_t *h, const uint64_t *left);
/* Marks it as serving the call of that number. */
static inline void mc_cache_take(meshcoll_t *h, mc_cached_t *c, uint32_t number)
{
    c->run.head.taken = true;
    c->run.head.number = number;
    c->used = ++h->cache.n_taken;
}

/* Drops the requests of a collective, for which something else is forced now; negative: of all. Those that serve calls go
 * when these are complete. */
void mc_cache_drop(meshcoll_t *h, int collective);
#endif
