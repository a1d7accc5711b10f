#include "runtime/create/create.h"

#include "device/cuda/driver.h"
#include "runtime/connect/connections.h"
#include "runtime/create/close.h"
#include "runtime/create/jobs.h"
#include "runtime/create/rounds.h"
#include "runtime/explain/explain.h"
#include "runtime/monitor/monitor.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress_thread.h"
#include "runtime/request/leads.h"
#include "runtime/request/request.h"
#include "runtime/waits/board.h"

#include <stdlib.h>
#include <string.h>

/* Opening -------------------------------------------------------------------------------------- */

static int read_switch(const char *name, const char *text, bool *on)
{
    if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return mc_fail(MESHCOLL_ERR_PARSE, "%s is 0 or 1; got '%s'", name, text);
    *on = text && *text == '1';
    return MESHCOLL_OK;
}

/* How long a request may run unless the settings say otherwise: long enough for ranks that load or
 * store files between two calls. */
enum { TIMEOUT_S = 1800 };

static int read_timeout(const char *text, int64_t *ms)
{
    char *end = NULL;
    const double seconds = text ? mc_number_read(text, &end) : TIMEOUT_S;
    if (text && (end == text || *end || mc_timeout_ms(seconds, ms)))
        return mc_fail(
            MESHCOLL_ERR_PARSE,
            "MESHCOLL_TIMEOUT: expected seconds, as in \"90\", or \"0\" for no limit; got "
            "'%s'",
            text);
    return mc_timeout_ms(seconds, ms);
}

/* What the meshes of a job share, without transports. */
static int open_shared(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                       mc_shared_t **job)
{
    mc_shared_t *const j = calloc(1, sizeof *j);
    if (!j)
        return mc_fail_memory("a job");
    mc_cuda_open();
    j->rank = rank;
    j->mesh = *mesh;
    j->alarm = &mc_no_alarm;
    j->ended = mc_request_ended;
    int status = mc_waits_open(j);
    if (!status)
        status = mc_threads_open(j, settings);
    if (status) {
        if (j->board)
            mc_waits_close(j);
        free(j);
        return status;
    }
    *job = j;
    return MESHCOLL_OK;
}

/* All of a handle that needs no job. */
static int open_own(meshcoll_t *h, const mc_settings_t *settings)
{
    h->text = mc_mesh_text(&h->mesh, h->text_room);
    int status = mc_links_parse(settings->links, &h->mesh, &h->links);
    if (!status)
        status = read_switch("MESHCOLL_REPRODUCIBLE", settings->reproducible, &h->reproducible);
    if (!status)
        status = read_switch("MESHCOLL_CHECK", settings->check, &h->checks);
    if (!status)
        status = read_timeout(settings->timeout, &h->timeout_ms);
    if (!status)
        status = mc_choice_init(&h->choice, settings, &h->mesh);
    if (!status)
        status = mc_explain_create(settings, &h->explain);
    return status;
}

int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   mc_shared_t *job, meshcoll_t **handle)
{
    meshcoll_t *const h = calloc(1, sizeof *h);
    if (!h)
        return mc_fail_memory("a mesh");
    h->job = job;
    h->rank = rank;
    h->concurrent = 1;
    h->hook = settings->hook;
    h->mesh = *mesh;
    h->numbering = mc_numbering(mesh, NULL);
    int status = open_own(h, settings);
    if (!status && !job)
        status = open_shared(mesh, rank, settings, &h->job);
    if (status) {
        mc_explain_destroy(h->explain);
        mc_links_free(&h->links);
        free(h);
        return status;
    }
    if (!job) {
        mc_jobs_enter(h->job);
        h->job->meshes = h;
        mc_waits_join(h);
    }
    mc_lead_open(h);
    *handle = h;
    return MESHCOLL_OK;
}

static void take_arranged(meshcoll_t *h, mc_arranged_t *arranged)
{
    h->order = h->job->order = arranged->order;
    h->numbering = mc_numbering(&h->mesh, h->order.comm_rank);
    h->machine = h->job->machine = arranged->machine;
    *arranged = (mc_arranged_t){0};
}

/* Opens a handle without transports, its ranks arranged. */
static int open_arranged(const meshcoll_oob_t *oob, const mc_place_t *place,
                         const mc_settings_t *settings, meshcoll_t **handle)
{
    mc_arranged_t arranged;
    int status = mc_arrange(settings->mesh, place, oob->size, &arranged);
    if (status)
        return status;
    const int32_t rank = mc_mesh_rank_of(&arranged.order, oob->rank);
    status = mc_handle_open(&arranged.mesh, rank, settings, NULL, handle);
    if (!status)
        take_arranged(*handle, &arranged);
    mc_arranged_free(&arranged);
    return status;
}

/* Dimensions between machines share the wire of one NIC, unless the links say otherwise. */
static int open_alone(const meshcoll_oob_t *oob, const mc_place_t *place,
                      const mc_settings_t *settings, meshcoll_t **handle)
{
    const int status = open_arranged(oob, place, settings, handle);
    if (status)
        return status;
    meshcoll_t *const h = *handle;
    h->job->oob = *oob;
    mc_links_share_wire(&h->links, mc_boxes_outside(h->machine, &h->mesh) - 1);
    return mc_boxes_transports(settings->transports, h->machine, &h->mesh, h->job->tls);
}

/* Creating: four rounds (rounds.h) ------------------------------------------------------------- */

/* All steps that need no communication. */
static int open_handle(mc_making_t *m)
{
    int status = open_alone(&m->creation->oob, m->place, &m->settings, &m->handle);
    if (status)
        return status;
    mc_shared_t *const job = m->handle->job;
    const mc_shm_access_t wanted = mc_connections_want_shm(job);
    mc_making_devices(m, job->devices);
    job->access = wanted > m->copies && m->copies < MC_SHM_COPY ? m->copies : wanted;
    mc_shared_lock(job);
    job->oversubscribed = m->oversubscribed;
    mc_shared_unlock(job);
    status = mc_connections_open(job);
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        m->handle->transport[d] = job->transport[d];
    return status;
}

/* Ranks that may not read each other's memory copy. */
static void lower_access(mc_shared_t *job)
{
    job->access = MC_SHM_COPY;
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        if (job->transport[d] && job->transport[d]->pulls)
            mc_shm_lower(job->transport[d]);
}

static int create(mc_making_t *m)
{
    mc_addresses_summary_t addresses = {0};
    int status = mc_making_places(m);
    if (!status)
        status = mc_making_settings(m);
    if (status)
        return status;
    status = m->status ? m->status : open_handle(m);
    if (!status)
        addresses = mc_addresses_summary(m->handle->job);
    status = mc_making_lengths(m, status, &addresses);
    if (status)
        return status;
    mc_addresses_agree(m->handle->job, &addresses);
    bool reads = m->handle->job->access == MC_SHM_READ;
    status = mc_making_addresses(m, &addresses, &reads);
    if (!status && m->handle->job->access == MC_SHM_READ && !reads)
        lower_access(m->handle->job);
    if (!status)
        mc_monitor_join(m->handle->job->monitor);
    return status;
}

/* A tag names any rank. */
enum { MOST_RANKS = 1 << MC_TAG_SOURCE_BITS };

int mc_handle_create(const mc_creation_t *creation, meshcoll_t **mesh)
{
    mc_making_t m;
    const meshcoll_oob_t *const oob = &creation->oob;
    if (oob->size > MOST_RANKS)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "%d ranks are too many: a job has at most %d",
                       oob->size, MOST_RANKS);
    mc_making_open(&m, creation);
    const int status = create(&m);
    if (!status) {
        m.handle->job->free_context = creation->free_context;
        m.handle->job->settings = m.settings;
        m.settings = (mc_settings_t){0};
        *mesh = m.handle;
    } else if (m.handle) {
        mc_shared_free(m.handle->job);
    }
    mc_making_close(&m);
    return status;
}
