#include "runtime/create/create.h"

#include "base/gather.h"
#include "runtime/connect/connections.h"
#include "runtime/create/close.h"
#include "runtime/explain/explain.h"
#include "runtime/place/crowd.h"
#include "runtime/progress/progress_thread.h"
#include "runtime/request/request.h"

#include <stdlib.h>
#include <string.h>

/* Opening -------------------------------------------------------------------------------------- */

static int read_reproducible(const char *text, bool *on)
{
    if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return mc_fail(MESHCOLL_ERR_PARSE, "MESHCOLL_REPRODUCIBLE is 0 or 1; got '%s'", text);
    *on = text && *text == '1';
    return MESHCOLL_OK;
}

int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   meshcoll_t **handle)
{
    meshcoll_t *const h = calloc(1, sizeof *h);
    if (!h)
        return mc_fail_memory("a mesh");
    h->rank = rank;
    h->concurrent = 1;
    h->ended = mc_request_ended;
    h->mesh = *mesh;
    h->numbering = mc_numbering(mesh, NULL);
    mc_text_t text = mc_text(h->text, sizeof h->text);
    mc_mesh_print(mesh, &text);
    int status = mc_links_parse(settings->links, mesh, &h->links);
    if (!status)
        status = read_reproducible(settings->reproducible, &h->reproducible);
    if (!status)
        status = mc_choice_init(&h->choice, settings, mesh);
    if (!status)
        status = mc_explain_create(settings, &h->explain);
    if (!status)
        status = mc_threads_open(h, settings);
    if (status) {
        mc_explain_destroy(h->explain);
        free(h);
        return status;
    }
    *handle = h;
    return MESHCOLL_OK;
}

static void take_arranged(meshcoll_t *h, mc_arranged_t *arranged)
{
    h->order = arranged->order;
    h->numbering = mc_numbering(&h->mesh, h->order.comm_rank);
    h->machine = arranged->machine;
    *arranged = (mc_arranged_t){0};
}

/* Opens a handle without transports, its ranks arranged. */
static int open_arranged(const mc_creation_t *c, const mc_settings_t *settings, meshcoll_t **handle)
{
    mc_arranged_t arranged;
    int status = mc_arrange(settings->mesh, c->place, c->oob.size, &arranged);
    if (status)
        return status;
    const int32_t rank = mc_mesh_rank_of(&arranged.order, c->oob.rank);
    status = mc_handle_open(&arranged.mesh, rank, settings, handle);
    if (!status)
        take_arranged(*handle, &arranged);
    mc_arranged_free(&arranged);
    return status;
}

/* By rank of the creation; the caller frees it. */
static int32_t *machines_of(const mc_creation_t *c)
{
    const size_t n = (size_t)c->oob.size;
    int32_t *const machine = calloc(n, sizeof *machine);
    for (size_t r = 0; machine && r < n; r++)
        machine[r] = c->place[r].machine;
    return machine;
}

/* Finds out which access the ranks of one machine have to each other's memory, and whether they
 * share cores. Collective, as all ranks have the same settings. */
static int find_neighbours(meshcoll_t *h, const int32_t *machine)
{
    double crowd = 0;
    const int status = mc_crowd_find(&h->oob, machine, &crowd);
    mc_lock(h);
    h->crowded = crowd > 1;
    mc_unlock(h);
    const mc_shm_access_t wanted = mc_connections_want_shm(h);
    if (!status && wanted != MC_SHM_NONE)
        return mc_shm_probe(&h->oob, machine, wanted, &h->access);
    return status;
}

/* All steps that need no communication. Dimensions between machines share the wire of one NIC,
 * unless the links say otherwise. */
static int open_alone(const mc_creation_t *c, const mc_settings_t *settings, meshcoll_t **handle)
{
    const int status = open_arranged(c, settings, handle);
    if (status)
        return status;
    meshcoll_t *const h = *handle;
    h->oob = c->oob;
    mc_links_share_wire(&h->links, mc_boxes_outside(h->machine, &h->mesh) - 1);
    return mc_boxes_transports(settings->transports, h->machine, &h->mesh, h->tls);
}

/* Collective. */
static int open_transports(meshcoll_t *h, const int32_t *machine)
{
    int status = find_neighbours(h, machine);
    if (!status)
        status = mc_connections_open(h);
    return mc_addresses_share(h, status);
}

/* Creating ------------------------------------------------------------------------------------- */

/* A rank that fails before the first exchange still takes part in it, until all agree on a
 * status. */
static int create(const mc_creation_t *c, mc_settings_t *settings, meshcoll_t **handle)
{
    meshcoll_t *h = NULL;
    int32_t *const machine = machines_of(c);
    int status = machine ? open_alone(c, settings, &h) : mc_fail_memory("a table of machines");
    status = mc_agree(&c->oob, status);
    if (!status)
        status = open_transports(h, machine);
    free(machine);
    if (status) {
        if (h)
            mc_handle_free(h);
        return status;
    }
    h->free_context = c->free_context;
    h->settings = *settings;
    *settings = (mc_settings_t){0};
    *handle = h;
    return MESHCOLL_OK;
}

_Static_assert(MC_MESH_RANKS <= 1 << MC_TAG_SOURCE_BITS, "a tag names any rank");

int mc_handle_create(const mc_creation_t *creation, meshcoll_t **mesh)
{
    mc_settings_t settings = {0};
    const meshcoll_oob_t *const oob = &creation->oob;
    if (oob->size > MC_MESH_RANKS)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "%d ranks are too many: a mesh has at most %d",
                       oob->size, MC_MESH_RANKS);
    int status = mc_settings_read(creation->params, &settings);
    if (!status && creation->tuned)
        settings.links_from = creation->tuned;
    status = mc_settings_share(oob, status, &settings);
    if (!status)
        status = create(creation, &settings, mesh);
    mc_settings_free(&settings);
    return status;
}
