#include "runtime/family/sub.h"

#include "runtime/call/call.h"
#include "runtime/connect/connections.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/family/agree.h"
#include "runtime/jobs/jobs.h"
#include "runtime/progress/failure.h"

#include <stdlib.h>
#include <string.h>

/* Inherited from the parent -------------------------------------------------------------------- */

/* Translates a link's `wire`, as index + 1, to the part's dimensions; MC_WIRE_OWN: the part
 * lacks that dimension. */
static int32_t shared_wire(const mc_members_t *p, int32_t wire)
{
    for (int32_t k = 0; k < p->mesh.ndims; k++)
        if (wire > 0 && p->dim[k] == wire - 1)
            return k + 1;
    return wire > 0 ? MC_WIRE_OWN : wire;
}

/* The link of the part's dimension k. The sub-meshes of a split mostly run concurrently, and
 * share what the parent's lines share. */
static mc_link_t share_link(const mc_members_t *p, int32_t k)
{
    mc_link_t link = p->parent->links.dim[p->dim[k]];
    link.wire = shared_wire(p, link.wire);
    if (!p->at_once)
        return link;
    const int32_t at_once =
        mc_mesh_stride(&p->parent->mesh, p->dim[k]) / mc_mesh_stride(&p->mesh, k);
    /* of a ragged mesh the parts are boxes, or one part is all of them: none shares a port */
    if (link.ports == MC_PORTS_ALL || p->parent->mesh.ragged)
        return link;
    if (at_once > link.ports) {
        link.beta *= (double)at_once / link.ports;
        link.ports = 1;
    } else {
        link.ports /= at_once;
    }
    return link;
}

static mc_correction_t share_correction(const mc_members_t *p, int32_t k)
{
    mc_correction_t correction = p->parent->links.correction[p->dim[k]];
    if (p->at_once) /* messages of all sub-meshes delay each other */
        correction.cpu *= (double)p->parent->mesh.size / p->mesh.size;
    return correction;
}

/* Applies the environment's strategies that fit: one over all dimensions does not fit a part. */
static void take_strategies(meshcoll_t *h)
{
    const mc_job_t *const job = h->job;
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        if (job->settings.strategy[c])
            (void)mc_choice_force(&h->choice, (meshcoll_collective_t)c, job->settings.strategy[c],
                                  &h->mesh);
}

/* Ranks that leave a box through one port, as far as the mesh tells. */
static int32_t behind_port(const meshcoll_t *h)
{
    const int32_t wire = mc_handle_wire(h);
    return wire < 0 ? 1 : mc_mesh_stride(&h->mesh, wire);
}

/* Counts the parts that share a port. */
static void share_wire(const mc_members_t *p, meshcoll_t *h)
{
    h->share.concurrent = p->parent->share.concurrent;
    if (p->at_once)
        h->share.concurrent = h->share.concurrent * behind_port(p->parent) / behind_port(h);
    h->share.window = mc_handle_pacing(p->parent).window;
}

/* Opening -------------------------------------------------------------------------------------- */

static void join_family(mc_members_t *p, meshcoll_t *h)
{
    h->order = p->order;
    p->order = (mc_order_t){0};
    h->numbering = mc_numbering(&h->mesh, h->order.comm_rank);
    for (int32_t k = 0; k < p->mesh.ndims; k++) {
        h->links.dim[k] = share_link(p, k);
        h->links.correction[k] = share_correction(p, k);
    }
}

static const char *adapt_of(const meshcoll_t *h)
{
    return !h->calls.adapt ? "off" : h->calls.ordered ? "on" : "all";
}

/* All that needs no communication, and leaves no trace in the parent. */
static int open_sub(mc_members_t *p, meshcoll_t **handle)
{
    const mc_settings_t settings = {.reproducible = p->parent->reproducible ? "1" : NULL,
                                    .check = p->parent->hooks->compare ? "1" : NULL,
                                    .adapt = adapt_of(p->parent),
                                    .hook = p->parent->hook};
    meshcoll_t *h;
    const int status = mc_handle_open_part(p->parent, &p->mesh, p->rank, p->member, &settings, &h);
    if (status)
        return status;
    join_family(p, h);
    take_strategies(h);
    share_wire(p, h);
    *handle = h;
    return MESHCOLL_OK;
}

/* Creating ------------------------------------------------------------------------------------- */

int mc_compare_ranks(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Agrees with the other members on the context. */
static int agree(const mc_members_t *p, int status, uint32_t *context, uint32_t *creation)
{
    const int32_t n = p->mesh.size, own = p->parent->rank;
    int32_t *const sorted = malloc((size_t)n * sizeof *sorted);
    if (!sorted)
        return mc_fail_memory("a list of ranks");
    memcpy(sorted, p->member, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, mc_compare_ranks);
    const int32_t *const at = bsearch(&own, sorted, (size_t)n, sizeof *sorted, mc_compare_ranks);
    const mc_agreement_t a = {.function = p->function,
                              .parent = p->parent,
                              .member = sorted,
                              .n = n,
                              .me = (int32_t)(at - sorted),
                              .tag = p->tag,
                              .list = p->list};
    status = mc_context_agree(&a, status, context, creation);
    free(sorted);
    return status;
}

int mc_sub_create(mc_members_t *p, int status, meshcoll_t **sub)
{
    meshcoll_t *h = NULL;
    uint32_t context, creation;
    mc_handles_sweep(p->parent->job);
    if (!status)
        status = open_sub(p, &h);
    status = agree(p, status, &context, &creation);
    if (status) {
        if (h)
            mc_handle_free(h);
        return status;
    }
    h->context.number = context;
    h->context.creation = creation;
    h->entry.from = p->parent;
    h->timeout_ms = p->parent->timeout_ms;
    mc_job_add(h);
    *sub = h;
    return MESHCOLL_OK;
}

void mc_members_free(mc_members_t *p)
{
    free(p->member);
    mc_order_free(&p->order);
}

int mc_sub_check(const char *function, meshcoll_t *parent)
{
    const int status = mc_failure_check(parent);
    if (status)
        return status;
    if (mc_group_is_open(parent))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: a group is open on this mesh: end it first",
                       function);
    if (!parent->machine)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "%s: a mesh in one process cannot be split",
                       function);
    return MESHCOLL_OK;
}
