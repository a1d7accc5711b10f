#include "runtime/create/create.h"

#include "job/monitor/monitor.h"
#include "runtime/connect/connections.h"
#include "runtime/create/calibrated.h"
#include "runtime/create/rounds.h"
#include "runtime/jobs/jobs.h"
#include "runtime/progress/threads.h"

#include <stdio.h>

/* Creating: four rounds (rounds.h) ------------------------------------------------------------- */

/* All steps that need no communication. */
static int open_handle(mc_making_t *m)
{
    int status = mc_handle_open_placed(m, NULL, &m->handle);
    if (status)
        return status;
    mc_job_t *const job = m->handle->job;
    const mc_shm_access_t wanted = mc_connections_want_shm(job);
    mc_making_devices(m, job->connections.devices);
    mc_text_t where = mc_text(job->connections.where, sizeof job->connections.where);
    const mc_networks_t networks = mc_making_networks(m);
    mc_network_where(mc_network_of(&networks, m->creation->oob.rank), &where);
    job->connections.access = wanted > m->copies && m->copies < MC_SHM_COPY ? m->copies : wanted;
    mc_job_lock(job);
    job->crowd = m->crowd;
    job->oversubscribed = m->crowd > 1;
    mc_job_unlock(job);
    status = mc_connections_open(job);
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        m->handle->transport[d] = job->connections.transport[d];
    return status;
}

/* Ranks that may not read each other's memory copy. */
static void lower_access(mc_job_t *job)
{
    job->connections.access = MC_SHM_COPY;
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        if (job->connections.transport[d] && job->connections.transport[d]->pulls)
            mc_shm_lower(job->connections.transport[d]);
}

/* Also joins a job, if all ranks offer one. */
static int begin(mc_making_t *m, bool joins)
{
    int status = mc_making_places(m, joins);
    if (!status && !m->any_offers) /* else it may have its transports */
        status = mc_making_probe(m);
    if (!status)
        status = mc_making_settings(m);
    return status ? status : mc_making_join(m, &m->handle);
}

/* The mesh works, and so fails as one in use: its ranks meet, and hear why. */
static int calibrate(mc_making_t *m)
{
    char why[sizeof m->handle->job->failure.why];
    const int status = mc_calibrate(m);
    if (!status) {
        mc_connections_limit(m->handle);
        return MESHCOLL_OK;
    }
    snprintf(why, sizeof why, "%s", meshcoll_last_error());
    meshcoll_destroy(m->handle);
    m->handle = NULL;
    return mc_fail(status, "%s", why);
}

static int create(mc_making_t *m)
{
    mc_addresses_summary_t addresses = {0};
    int status = begin(m, true);
    if (!status && !m->handle && m->any_offers) /* but they are in no job together */
        status = begin(m, false);
    if (status || m->handle)
        return status;
    status = m->status ? m->status : open_handle(m);
    if (!status)
        addresses = mc_addresses_summary(m->handle->job);
    status = mc_making_lengths(m, status, &addresses);
    if (status)
        return status;
    mc_addresses_agree(m->handle->job, &addresses);
    bool reads = m->handle->job->connections.access == MC_SHM_READ;
    status = mc_making_addresses(m, &addresses, &reads);
    if (!status && m->handle->job->connections.access == MC_SHM_READ && !reads)
        lower_access(m->handle->job);
    if (!status)
        mc_monitor_join(m->handle->job->monitor);
    return status ? status : calibrate(m);
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
    if (!status)
        mc_making_tell(&m);
    if (!status && m.handle->ranks.job_rank) { /* it has joined a job */
        if (creation->free_context)
            creation->free_context(creation->oob.context);
    } else if (!status) {
        m.handle->job->free_context = creation->free_context;
        m.handle->job->settings = m.settings;
        m.handle->job->entry.of_environment = creation->of_environment;
        m.settings = (mc_settings_t){0};
        mc_jobs_name(m.handle->job, mc_making_id(&m), m.home);
        m.home = NULL;
    } else if (m.handle) {
        mc_job_free(m.handle->job);
    }
    mc_making_close(&m);
    if (!status)
        *mesh = m.handle;
    return status;
}
