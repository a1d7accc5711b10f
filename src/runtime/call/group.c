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
#include "runtime/call/leads.h"
#include "runtime/call/request.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    mc_call_t call;
    uint32_t next;               /* index of the next member packed with it; 0: none */
    bool begun;                  /* with another one; or it has no elements, and nothing runs */
    meshcoll_request_t *request; /* NULL: not begun, or with another one */
} mc_member_t;

enum { WHY = 120 };
typedef struct mc_group {
    mc_member_t *member;
    uint32_t n, capacity;
    bool open;
    int failed; /* the first status of a refused call, and its text */
    char why[WHY];
    uint32_t n_refused;
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
    h->group->n = h->group->n_refused = 0;
    h->group->failed = MESHCOLL_OK;
    if (h->hooks->compare_group)
        h->group->number = mc_take_numbers(h, false, false).check;
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

int mc_group_add(meshcoll_t *h, const meshcoll_args_t *given)
{
    mc_group_t *const g = h->group;
    int status = mc_failure_check(h);
    if (status)
        return mc_group_refuse(h, 0, status);
    mc_member_t *const grown = mc_grown(g->member, g->n, &g->capacity, sizeof *grown);
    if (!grown)
        return mc_group_refuse(h, mc_take_numbers(h, false, mc_call_exchanges(given)).own,
                               mc_fail_memory("the calls of a group"));
    g->member = grown;
    mc_member_t *const m = &g->member[g->n];
    *m = (mc_member_t){.call.waits = true};
    status = mc_call_check(h, given, "a group", &m->call);
    m->call.number.check = 0; /* the group's end compares it */
    m->begun = m->call.args.count == 0;
    if (status)
        return mc_group_refuse(h, m->call.number.own, status);
    g->n++;
    return MESHCOLL_OK;
}

/* Other ranks start the group, and so its first call, which this rank then does not. */
int mc_group_refuse(meshcoll_t *h, uint32_t number, int status)
{
    mc_group_t *const g = h->group;
    const bool is_first = !g->failed;
    uint32_t first = 0;
    g->n_refused++;
    if (is_first) {
        mc_text_t why = mc_text(g->why, sizeof g->why);
        mc_text_add(&why, "%s", meshcoll_last_error());
        g->failed = status;
    }
    if (!is_first || h->hooks->compare_group)
        return status;
    while (first < g->n && g->member[first].begun)
        first++;
    return mc_failure_refused(h, first < g->n ? g->member[first].call.number.own : number, false,
                              status);
}

/* Others may wait in it: in the comparison of the group, or in its first call. */
void mc_group_drop(meshcoll_t *h)
{
    const mc_group_t *const g = h->group;
    const int status =
        mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_destroy: the group was not ended");
    h->group->open = false;
    h->n_restricted--;
    if (h->hooks->compare_group)
        (void)mc_failure_refused(h, g->number, false, status);
    else if (!g->failed && mc_group_waiting(h) > 0)
        (void)mc_group_refuse(h, 0, status);
}

uint32_t mc_group_waiting(const meshcoll_t *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->group->n; i++)
        n += !h->group->member[i].begun;
    return n;
}

const mc_call_t *mc_group_call(const meshcoll_t *h, uint32_t i)
{
    return i < h->group->n ? &h->group->member[i].call : NULL;
}

void mc_group_free(meshcoll_t *h)
{
    if (!h->group)
        return;
    free(h->group->member);
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
    mc_call_t smallest = {.args = *a};
    smallest.args.count = 1;
    if (a->strategy || a->counts || a->counts_at_root || mc_cache_choose(h, &smallest))
        return false;
    const mc_move_t *const move = &mc_moves[a->collective];
    const size_t blocks = blocks_of(h, a, move->from) + blocks_of(h, a, move->to);
    return (double)bytes_of(a) * (double)blocks * copy_seconds(&h->links) <
           message_seconds(h, a, &smallest.best.strategy);
}

static bool are_alike(const mc_member_t *m, const mc_member_t *n)
{
    const meshcoll_args_t *const a = &m->call.args, *const b = &n->call.args;
    return !m->call.is_barrier && !n->call.is_barrier && a->collective == b->collective &&
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
        if (last == i && !packs && !(packs = mc_group_packs(h, &g->member[i].call.args)))
            return;
        if (!mc_group_packs(h, &g->member[k].call.args))
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
            const meshcoll_args_t *const a = &g->member[i].call.args;
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
static int pack(meshcoll_t *h, uint32_t first, mc_call_t *packed)
{
    const mc_group_t *const g = h->group;
    meshcoll_args_t *const a = &packed->args;
    const mc_move_t *const move = &mc_moves[g->member[first].call.args.collective];
    *packed = g->member[first].call;
    for (uint32_t i = first; (i = g->member[i].next);)
        a->count += g->member[i].call.args.count;
    const size_t in = blocks_of(h, a, move->from) * bytes_of(a);
    const size_t out = blocks_of(h, a, move->to) * bytes_of(a);
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
        copy_blocks(g, first, w->base, blocks_of(h, a, move->from), TO_STAGING);
    return MESHCOLL_OK;
}

static void unpack(const meshcoll_t *h, uint32_t first, const meshcoll_request_t *r)
{
    const meshcoll_args_t *const a = &h->group->member[first].call.args;
    const mc_placement_t to = mc_moves[a->collective].to;
    const mc_run_t *const run = mc_run_of(r);
    if (run->staging && !is_roots(h, a, to))
        copy_blocks(h->group, first, run->operands.out, blocks_of(h, a, to), FROM_STAGING);
}

/* Ending ----------------------------------------------------------------------------------------- */

static int begin(meshcoll_t *h, uint32_t i)
{
    mc_member_t *const m = &h->group->member[i];
    mc_call_t packed;
    const int status = m->next ? pack(h, i, &packed) : MESHCOLL_OK;
    return status ? status : mc_call_start(h, m->next ? &packed : &m->call, &m->request);
}

/* After an error the rest is not awaited: it may never end. */
static int finish(meshcoll_t *h, int status)
{
    const mc_group_t *const g = h->group;
    for (uint32_t i = 0; i < g->n; i++) {
        meshcoll_request_t *const r = g->member[i].request;
        if (!r)
            continue;
        if (!status)
            status = mc_request_await(r);
        if (!status)
            unpack(h, i, r);
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
    int status = MESHCOLL_OK;
    if (h->hooks->compare_group && !h->job->failure.status)
        status =
            h->hooks->compare_group(h, g->number, g->n + g->n_refused, g->failed ? g->why : NULL);
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
