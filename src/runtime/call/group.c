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
#include "runtime/call/call.h"

#include "compose/planner/planner.h"
#include "runtime/call/cache.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/threads.h"
#include "runtime/request/args.h"
#include "runtime/request/numbers.h"
#include "runtime/request/request.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    mc_call_args_t asked;
    uint32_t next; /* index of the next member packed with it; 0: none */
    bool begun;
} mc_member_t;

typedef struct mc_group {
    mc_member_t *member;
    uint32_t n, capacity;
    bool open;
    int failed; /* the first status of a refused call */
    /* the started requests, and the first member of each */
    meshcoll_request_t **request;
    uint32_t *first;
    uint32_t n_requests;
    uint32_t number; /* of its comparison, where calls are compared */
} mc_group_t;

/* Opening and collecting ------------------------------------------------------------------------- */

static int open_group(meshcoll_t *h)
{
    if (mc_group_is_open(h))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_group_begin: a group is open on this mesh already, and groups do "
                       "not nest: end it first");
    if (!h->group && !(h->group = calloc(1, sizeof *h->group)))
        return mc_fail_memory("a group");
    h->group->n = 0;
    h->group->failed = MESHCOLL_OK;
    if (h->hooks->group_opened)
        h->group->number = h->hooks->group_opened(h);
    h->group->open = true;
    h->n_restricted++;
    return MESHCOLL_OK;
}

int meshcoll_group_begin(meshcoll_t *mesh)
{
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_group_begin: the mesh is NULL");
    mc_lock(mesh);
    const int status = open_group(mesh);
    return mc_leave(mesh, status);
}

bool mc_group_is_open(const meshcoll_t *h)
{
    return h->group && h->group->open;
}

static void *grown(void *array, size_t n, size_t bytes)
{
    void *const larger = realloc(array, n * bytes);
    if (!larger)
        mc_fail_memory("the calls of a group");
    return larger;
}

/* Grows all arrays together, so that the group's end allocates none of them. */
static int reserve(mc_group_t *g)
{
    const uint32_t capacity = g->capacity ? 2 * g->capacity : 16;
    if (g->n < g->capacity)
        return MESHCOLL_OK;
    mc_member_t *const member = grown(g->member, capacity, sizeof *member);
    if (!member)
        return MESHCOLL_ERR_NO_MEMORY;
    g->member = member;
    meshcoll_request_t **const request = grown(g->request, capacity, sizeof *request);
    if (!request)
        return MESHCOLL_ERR_NO_MEMORY;
    g->request = request;
    uint32_t *const first = grown(g->first, capacity, sizeof *first);
    if (!first)
        return MESHCOLL_ERR_NO_MEMORY;
    g->first = first;
    g->capacity = capacity;
    return MESHCOLL_OK;
}

int mc_group_add(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier)
{
    mc_group_t *const g = h->group;
    mc_call_args_t asked = {.is_barrier = is_barrier};
    asked.number = mc_take_numbers(h, false, mc_call_exchanges(given));
    asked.number.check = 0; /* the group's end compares it */
    int status = mc_failure_check(h);
    if (!status)
        status = mc_args_check(h, given, &asked.args);
    if (!status)
        status = mc_call_memory_refuse(h, &asked.args, "a group");
    if (!status && h->hooks->group_added)
        status = h->hooks->group_added(h, &(mc_description_t){.args = &asked.args,
                                                              .number = asked.number.own,
                                                              .is_barrier = is_barrier});
    if (!status && asked.args.count > 0)
        status = reserve(g);
    if (!status && asked.args.count > 0)
        g->member[g->n++] = (mc_member_t){.asked = asked};
    return status ? mc_group_refuse(h, asked.number.own, status) : MESHCOLL_OK;
}

/* Other ranks start the group, and so its first call, which this rank then does not. */
int mc_group_refuse(meshcoll_t *h, uint32_t number, int status)
{
    mc_group_t *const g = h->group;
    const bool is_first = !g->failed;
    if (is_first)
        g->failed = status;
    if (h->hooks->group_refused)
        h->hooks->group_refused(h);
    if (!is_first || h->hooks->group_refused)
        return status;
    return mc_failure_refused(h, g->n > 0 ? g->member[0].asked.number.own : number, false, status);
}

/* Others may wait in it: in the comparison of the group, or in its first call. */
void mc_group_drop(meshcoll_t *h)
{
    const mc_group_t *const g = h->group;
    const int status =
        mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_destroy: the group was not ended");
    h->group->open = false;
    h->n_restricted--;
    if (h->hooks->group_ends)
        (void)mc_failure_refused(h, g->number, false, status);
    else if (!g->failed && g->n > 0)
        (void)mc_group_refuse(h, 0, status);
}

uint32_t mc_group_calls(const meshcoll_t *h)
{
    return h->group->n;
}

void mc_group_free(meshcoll_t *h)
{
    if (!h->group)
        return;
    free(h->group->member);
    free(h->group->request);
    free(h->group->first);
    free(h->group);
}

/* What is packed --------------------------------------------------------------------------------- */

static size_t bytes_of(const meshcoll_args_t *a)
{
    return a->count * meshcoll_datatype_size(a->datatype);
}

/* Returns the number of blocks of `count` elements in a buffer of this placement. */
static size_t blocks_of(const meshcoll_t *h, const meshcoll_args_t *a, mc_placement_t placement)
{
    const bool one = placement == MC_SHARD || !mc_move_has_blocks(&mc_moves[a->collective]);
    return one ? 1 : (size_t)h->mesh.size;
}

static size_t in_blocks(const meshcoll_t *h, const meshcoll_args_t *a)
{
    return blocks_of(h, a, mc_moves[a->collective].from);
}

static size_t out_blocks(const meshcoll_t *h, const meshcoll_args_t *a)
{
    return blocks_of(h, a, mc_moves[a->collective].to);
}

/* Returns the seconds to copy a byte: the fastest link on which the receiver copies, or the fastest
 * reduction. */
static double copy_seconds(const mc_links_t *links)
{
    double best = links->dim[0].gamma;
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_link_t *const l = &links->dim[d];
        const double seconds = l->pulled ? l->beta : l->gamma;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* Returns the seconds of the messages of the smallest call of this kind, concurrent with others:
 * gaps instead of latencies. */
static double message_seconds(const meshcoll_t *h, const meshcoll_args_t *a,
                              const mc_strategy_t *strategy)
{
    mc_links_t links = h->links;
    for (int32_t d = 0; d < links.ndims; d++) {
        links.dim[d].alpha = links.dim[d].gap;
        links.dim[d].call = 0; /* of the group, however many messages it has */
    }
    /* by the model: a measured time has latencies in it */
    return mc_strategy_modelled(strategy, &h->mesh, &links, a->root, 0);
}

bool mc_group_packs(meshcoll_t *h, const meshcoll_args_t *a)
{
    meshcoll_args_t smallest = *a;
    mc_ranked_t choice;
    smallest.count = 1;
    if (a->strategy || a->counts || a->counts_at_root ||
        mc_cache_choose(h, &smallest, false, &choice))
        return false;
    const double copied = (double)bytes_of(a) * (double)(in_blocks(h, a) + out_blocks(h, a));
    return copied * copy_seconds(&h->links) < message_seconds(h, a, &choice.strategy);
}

static bool are_alike(const mc_member_t *m, const mc_member_t *n)
{
    const meshcoll_args_t *const a = &m->asked.args, *const b = &n->asked.args;
    return !m->asked.is_barrier && !n->asked.is_barrier && a->collective == b->collective &&
           a->datatype == b->datatype && a->op == b->op && a->root == b->root;
}

/* Chains member i to all later members that are packed with it. */
static void chain(meshcoll_t *h, uint32_t i)
{
    mc_group_t *const g = h->group;
    uint32_t last = i;
    bool packs = false;
    for (uint32_t k = i + 1; k < g->n; k++) {
        if (g->member[k].begun || !are_alike(&g->member[i], &g->member[k]))
            continue;
        if (last == i && !packs && !(packs = mc_group_packs(h, &g->member[i].asked.args)))
            return;
        if (!mc_group_packs(h, &g->member[k].asked.args))
            continue;
        g->member[last].next = k;
        g->member[k].begun = true;
        last = k;
    }
}

/* Packing ---------------------------------------------------------------------------------------- */

/* The direction in which the blocks of a packed call are copied. */
typedef enum { TO_STAGING, FROM_STAGING } way_t;

/* Copies between the members' buffers and the staging buffer, which has block b of all members,
 * then block b + 1. */
static void copy_blocks(const mc_group_t *g, uint32_t first, char *staging, size_t blocks,
                        way_t way)
{
    for (size_t b = 0; b < blocks; b++)
        for (uint32_t i = first;;) {
            const meshcoll_args_t *const a = &g->member[i].asked.args;
            const size_t n = bytes_of(a);
            if (way == TO_STAGING)
                memcpy(staging, (const char *)a->in + b * n, n);
            else
                memcpy((char *)a->out + b * n, staging, n);
            staging += n;
            i = g->member[i].next;
            if (!i)
                break;
        }
}

static bool is_roots(const meshcoll_t *h, const meshcoll_args_t *a, mc_placement_t placement)
{
    return placement == MC_ROOT && h->rank != a->root;
}

/* Makes one call of the chain, over a staging buffer. */
static int pack(meshcoll_t *h, uint32_t first, mc_call_args_t *packed)
{
    const mc_group_t *const g = h->group;
    meshcoll_args_t *const a = &packed->args;
    const mc_move_t *const move = &mc_moves[g->member[first].asked.args.collective];
    *packed = g->member[first].asked;
    for (uint32_t i = first; (i = g->member[i].next);)
        a->count += g->member[i].asked.args.count;
    const size_t in = in_blocks(h, a) * bytes_of(a), out = out_blocks(h, a) * bytes_of(a);
    /* whole vectors run in place; blocks need two buffers */
    const bool in_place = !mc_move_has_blocks(move);
    mc_workspace_t *const w = mc_take_memory(h);
    int status = w ? mc_workspace_reserve(w, in_place ? in : in + out) : MESHCOLL_ERR_NO_MEMORY;
    if (status) {
        mc_return_memory(h, w);
        return status;
    }
    packed->staging = w;
    a->in = w->base;
    a->out = in_place ? w->base : w->base + in;
    if (!is_roots(h, a, move->from))
        copy_blocks(g, first, w->base, in_blocks(h, a), TO_STAGING);
    return MESHCOLL_OK;
}

static void unpack(const meshcoll_t *h, uint32_t first, const meshcoll_request_t *r)
{
    const meshcoll_args_t *const a = &h->group->member[first].asked.args;
    const mc_run_t *const run = mc_run_of(r);
    if (run->staging && !is_roots(h, a, mc_moves[a->collective].to))
        copy_blocks(h->group, first, run->operands.out, out_blocks(h, a), FROM_STAGING);
}

/* Ending ----------------------------------------------------------------------------------------- */

static int begin(meshcoll_t *h, uint32_t i)
{
    mc_group_t *const g = h->group;
    mc_call_args_t asked = g->member[i].asked;
    if (g->member[i].next) {
        const int status = pack(h, i, &asked);
        if (status)
            return status;
    }
    g->first[g->n_requests] = i;
    const int status = mc_call_start(h, &asked, &g->request[g->n_requests]);
    g->n_requests += status == MESHCOLL_OK;
    return status;
}

/* After an error the rest is not awaited: it may never end. */
static int finish(meshcoll_t *h, int status)
{
    mc_group_t *const g = h->group;
    for (uint32_t i = 0; i < g->n_requests; i++) {
        meshcoll_request_t *const r = g->request[i];
        if (!status)
            status = mc_request_await(r);
        if (!status)
            unpack(h, g->first[i], r);
        mc_request_drop(r);
    }
    return status;
}

static int close_group(meshcoll_t *h)
{
    mc_group_t *const g = h->group;
    if (mc_callback_check("meshcoll_group_end"))
        return MESHCOLL_ERR_INVALID_ARG;
    if (!mc_group_is_open(h))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_group_end: no group is open on this mesh");
    h->group->open = false;
    h->n_restricted--;
    g->n_requests = 0;
    int status =
        h->hooks->group_ends && !h->job->failure.status ? h->hooks->group_ends(h) : MESHCOLL_OK;
    if (g->failed && g->failed == h->job->failure.status) /* the mesh had failed */
        return mc_failure_report(h->job);
    if (g->failed)
        return mc_fail(g->failed, "meshcoll_group_end: a call in this group was refused, so none "
                                  "was started; what that call returned says why");
    for (uint32_t i = 0; i < g->n && !status; i++)
        if (!g->member[i].begun) {
            chain(h, i);
            status = begin(h, i);
        }
    return finish(h, status);
}

int meshcoll_group_end(meshcoll_t *mesh)
{
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_group_end: the mesh is NULL");
    mc_lock(mesh);
    const int status = close_group(mesh);
    return mc_leave(mesh, status);
}
