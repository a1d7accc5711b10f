/*
 * Sub-meshes. A sub-mesh has its own transports, so its messages never match those of its parent or
 * siblings. Its ranks exchange what they need through the parent's collectives.
 */
#include "runtime/connect/connections.h"
#include "runtime/create/close.h"
#include "runtime/create/create.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/threads.h"
#include "runtime/request/request.h"
#include "runtime/waits/board.h"

#include <stdlib.h>
#include <string.h>

/* Members -------------------------------------------------------------------------------------- */

typedef struct {
    const meshcoll_t *parent;
    mc_mesh_t mesh;
    int32_t dim[MC_MAX_DIMS]; /* the parent's dimension, by dimension */
    int32_t *member;          /* mesh ranks of the parent, by rank */
    int32_t rank;             /* this rank */
} part_t;

static int fail_dims(const meshcoll_t *h, const char *dims)
{
    return mc_fail(
        MESHCOLL_ERR_INVALID_ARG,
        "meshcoll_split: expected some of the dimensions of %s, once each, as in \"%s\"; "
        "got \"%s\"",
        h->text, h->mesh.dim[h->mesh.ndims - 1].name, dims);
}

/* For example "box,gpu". */
static int parse_dims(const meshcoll_t *h, const char *dims, bool chosen[MC_MAX_DIMS])
{
    for (const char *at = dims;;) {
        const size_t n = strcspn(at, ",");
        const int32_t d = mc_mesh_find(&h->mesh, at, n);
        if (d < 0 || chosen[d])
            return fail_dims(h, dims);
        chosen[d] = true;
        if (!at[n])
            return MESHCOLL_OK;
        at += n + 1;
    }
}

/* A part of a mesh with boxes of unequal sizes is all of it, or one box: the ranks of other
 * parts would disagree about their dimensions. */
static int choose_ragged(part_t *p, const bool chosen[MC_MAX_DIMS])
{
    const meshcoll_t *const h = p->parent;
    const bool inside = chosen[MC_RAGGED_GPU] && chosen[MC_RAGGED_FOLD];
    int32_t first;
    if (!inside)
        return mc_fail(
            MESHCOLL_ERR_UNSUPPORTED,
            "meshcoll_split: %s has boxes of unequal sizes, which split into boxes only, "
            "as in \"gpu,fold\"",
            h->text);
    for (int32_t d = 0; d < MC_RAGGED_DIMS; d++)
        p->dim[d] = chosen[MC_RAGGED_BOX] ? d : MC_RAGGED_GPU;
    p->mesh = h->mesh;
    if (chosen[MC_RAGGED_BOX])
        return MESHCOLL_OK;
    p->mesh = (mc_mesh_t){.ndims = 1, .dim = {h->mesh.dim[MC_RAGGED_GPU]}};
    p->mesh.size = p->mesh.dim[0].extent = mc_mesh_span(&h->mesh, MC_RAGGED_GPU, h->rank, &first);
    return MESHCOLL_OK;
}

static int choose_dims(part_t *p, const bool chosen[MC_MAX_DIMS])
{
    if (p->parent->mesh.ragged)
        return choose_ragged(p, chosen);
    p->mesh = (mc_mesh_t){.size = 1};
    for (int32_t d = 0; d < p->parent->mesh.ndims; d++) {
        if (!chosen[d])
            continue;
        p->dim[p->mesh.ndims] = d;
        p->mesh.dim[p->mesh.ndims++] = p->parent->mesh.dim[d];
        p->mesh.size *= p->parent->mesh.dim[d].extent;
    }
    return MESHCOLL_OK;
}

/* Members of a part with boxes of unequal sizes: consecutive ranks. */
static int find_row(part_t *p)
{
    const mc_mesh_t *const mesh = &p->parent->mesh;
    int32_t first;
    (void)mc_mesh_span(mesh, p->mesh.ragged ? MC_RAGGED_BOX : MC_RAGGED_GPU, p->parent->rank,
                       &first);
    for (int32_t r = 0; r < p->mesh.size; r++)
        p->member[r] = first + r;
    p->rank = p->parent->rank - first;
    return MESHCOLL_OK;
}

static int find_members(part_t *p)
{
    int32_t at[MC_MAX_DIMS], own[MC_MAX_DIMS];
    p->member = calloc((size_t)p->mesh.size, sizeof *p->member);
    if (!p->member)
        return mc_fail_memory("a sub-mesh");
    if (p->parent->mesh.ragged)
        return find_row(p);
    mc_mesh_coords(&p->parent->mesh, p->parent->rank, at);
    for (int32_t r = 0; r < p->mesh.size; r++) {
        mc_mesh_coords(&p->mesh, r, own);
        for (int32_t k = 0; k < p->mesh.ndims; k++)
            at[p->dim[k]] = own[k];
        p->member[r] = mc_mesh_rank(&p->parent->mesh, at);
        if (p->member[r] == p->parent->rank)
            p->rank = r;
    }
    return MESHCOLL_OK;
}

/* Inherited from the parent -------------------------------------------------------------------- */

/* Translates a link's `wire`, as index + 1, to the part's dimensions; MC_WIRE_OWN: the part
 * lacks that dimension. */
static int32_t shared_wire(const part_t *p, int32_t wire)
{
    for (int32_t k = 0; k < p->mesh.ndims; k++)
        if (wire > 0 && p->dim[k] == wire - 1)
            return k + 1;
    return wire > 0 ? MC_WIRE_OWN : wire;
}

/* The link of the part's dimension k. The sub-meshes of a split mostly run concurrently, and
 * share what the parent's lines share. */
static mc_link_t share_link(const part_t *p, int32_t k)
{
    mc_link_t link = p->parent->links.dim[p->dim[k]];
    link.wire = shared_wire(p, link.wire);
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

static mc_correction_t share_correction(const part_t *p, int32_t k)
{
    mc_correction_t correction = p->parent->links.correction[p->dim[k]];
    /* messages of all sub-meshes delay each other */
    correction.cpu *= (double)p->parent->mesh.size / p->mesh.size;
    return correction;
}

/* Applies the environment's strategies that fit: one over all dimensions does not fit a part. */
static void take_strategies(meshcoll_t *h)
{
    const meshcoll_t *root = h->parent;
    while (root->parent)
        root = root->parent;
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        if (root->settings.strategy[c])
            (void)mc_choice_force(&h->choice, (meshcoll_collective_t)c, root->settings.strategy[c],
                                  &h->mesh);
}

/* By rank: the lowest rank of the part on the same machine. */
static int take_machines(const part_t *p, meshcoll_t *h)
{
    int32_t *const first = malloc((size_t)p->parent->mesh.size * sizeof *first);
    h->machine = calloc((size_t)p->mesh.size, sizeof *h->machine);
    const bool good = first && h->machine;
    for (int32_t r = p->mesh.size - 1; good && r >= 0; r--)
        first[p->parent->machine[p->member[r]]] = r;
    for (int32_t r = 0; good && r < p->mesh.size; r++)
        h->machine[r] = first[p->parent->machine[p->member[r]]];
    free(first);
    return good ? MESHCOLL_OK : mc_fail_memory("a table of machines");
}

static int take_members(const part_t *p, meshcoll_t *h)
{
    const size_t bytes = (size_t)p->mesh.size * sizeof *h->member;
    h->member = malloc(bytes);
    if (!h->member)
        return mc_fail_memory("a sub-mesh");
    memcpy(h->member, p->member, bytes);
    return MESHCOLL_OK;
}

/* Ranks that leave a box through one port, as far as the mesh tells. */
static int32_t behind_port(const meshcoll_t *h)
{
    const int32_t wire = mc_handle_wire(h);
    return wire < 0 ? 1 : mc_mesh_stride(&h->mesh, wire);
}

/* Takes over which transports stream, as the parent's ranks agreed, and counts the parts that
 * share a port. */
static void share_wire(const part_t *p, meshcoll_t *h)
{
    for (int32_t k = 0; k < p->mesh.ndims; k++) {
        const mc_transport_t *const agreed = p->parent->transport[p->dim[k]];
        if (h->transport[k])
            h->transport[k]->streams = agreed && agreed->streams;
    }
    h->concurrent = p->parent->concurrent * behind_port(p->parent) / behind_port(h);
    h->window = mc_handle_window(p->parent);
}

static int open_part(const part_t *p, meshcoll_t *parent, meshcoll_t **handle)
{
    const mc_settings_t settings = {.reproducible = parent->reproducible ? "1" : NULL,
                                    .check = parent->checks ? "1" : NULL,
                                    .hook = parent->hook};
    meshcoll_t *h;
    int status = mc_handle_open(&p->mesh, p->rank, &settings, &h);
    if (status)
        return status;
    h->parent = parent;
    mc_waits_join(h, parent);
    h->sibling = parent->children;
    parent->children = h;
    h->access = parent->access;
    mc_lock(h);
    h->oversubscribed = parent->oversubscribed;
    h->monitor = parent->monitor;
    h->alarm = parent->alarm;
    mc_unlock(h);
    for (int32_t k = 0; k < p->mesh.ndims; k++) {
        h->links.dim[k] = share_link(p, k);
        h->links.correction[k] = share_correction(p, k);
        memcpy(h->tls[k], parent->tls[p->dim[k]], sizeof h->tls[k]);
    }
    take_strategies(h);
    *handle = h;
    status = take_machines(p, h);
    if (!status)
        status = take_members(p, h);
    if (!status)
        status = mc_connections_open(h);
    if (!status)
        share_wire(p, h);
    return status;
}

/* Exchange between the ranks ------------------------------------------------------------------- */

/* Agrees with all ranks of the parent on a status: OK, this rank's error, or another rank's. */
static int agree(meshcoll_t *parent, int status)
{
    const int32_t mine = status;
    int32_t worst = 0;
    char why[256] = "";
    if (status) {
        mc_text_t text = mc_text(why, sizeof why);
        mc_text_add(&text, "%s", meshcoll_last_error());
    }
    const int failed = meshcoll_allreduce(parent, &mine, &worst, 1, MESHCOLL_INT32, MESHCOLL_MIN);
    if (status)
        return mc_fail(status, "%s", why);
    if (failed || !worst)
        return failed;
    return mc_fail(worst, "meshcoll_split: another rank failed: %s", meshcoll_status_string(worst));
}

static int gather_all(meshcoll_t *parent, const meshcoll_t *h, int64_t bytes, char **all)
{
    char *const own = calloc(1, (size_t)bytes);
    char *const gathered = malloc((size_t)bytes * (size_t)parent->mesh.size);
    int status = agree(parent, own && gathered ? MESHCOLL_OK : mc_fail_memory("addresses"));
    if (!status) {
        mc_addresses_pack(h, own);
        status = meshcoll_allgather(parent, own, gathered, (size_t)bytes / sizeof(int64_t),
                                    MESHCOLL_INT64);
    }
    free(own);
    if (status) {
        free(gathered);
        return status;
    }
    *all = gathered;
    return MESHCOLL_OK;
}

static int share_addresses(const part_t *p, meshcoll_t *parent, meshcoll_t *h)
{
    char *all = NULL;
    int64_t mine = (int64_t)mc_addresses_bytes(h), most = 0;
    int status = meshcoll_allreduce(parent, &mine, &most, 1, MESHCOLL_INT64, MESHCOLL_MAX);
    if (!status)
        status = mc_addresses_check_bytes((uint64_t)most);
    if (!status)
        status = gather_all(parent, h, most, &all);
    if (status)
        return status;
    const size_t bytes = (size_t)most;
    h->address_stride = bytes;
    h->addresses = malloc(bytes * (size_t)p->mesh.size);
    for (int32_t r = 0; h->addresses && r < p->mesh.size; r++) {
        const int32_t from = mc_comm_rank_of(&parent->order, p->member[r]);
        memcpy(h->addresses + (size_t)r * bytes, all + (size_t)from * bytes, bytes);
    }
    free(all);
    return h->addresses ? mc_addresses_check(h) : mc_fail_memory("addresses");
}

/* Splitting ------------------------------------------------------------------------------------ */

/* A handle that failed half-way is in the parent's list and has no messages in flight, so it can
 * be closed. */
static int make(part_t *p, meshcoll_t *parent, meshcoll_t **sub)
{
    meshcoll_t *h = NULL;
    int status = find_members(p);
    if (!status)
        status = open_part(p, parent, &h);
    status = agree(parent, status);
    if (!status)
        status = agree(parent, share_addresses(p, parent, h));
    if (status) {
        mc_handle_close(h);
        return status;
    }
    *sub = h;
    return MESHCOLL_OK;
}

/* An open group would only collect the calls that meshcoll_split makes on the parent. */
static int check_ready(meshcoll_t *parent)
{
    mc_lock(parent);
    int status = mc_failure_check(parent);
    if (!status && parent->group_open)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "meshcoll_split: a group is open on this mesh: end it first");
    mc_unlock(parent);
    return status;
}

int meshcoll_split(meshcoll_t *mesh, const char *dims, meshcoll_t **sub)
{
    part_t p = {.parent = mesh};
    bool chosen[MC_MAX_DIMS] = {false};
    if (mc_callback_check("meshcoll_split"))
        return MESHCOLL_ERR_INVALID_ARG;
    if (!mesh || !dims || !sub)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_split: mesh, dims or sub is NULL");
    int status = check_ready(mesh);
    if (!status && !mesh->machine)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "meshcoll_split: a mesh in one process cannot be split");
    if (!status)
        status = parse_dims(mesh, dims, chosen);
    if (status)
        return status;
    status = choose_dims(&p, chosen);
    if (!status)
        status = make(&p, mesh, sub);
    free(p.member);
    return status;
}
