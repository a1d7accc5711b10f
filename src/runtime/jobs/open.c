#include "runtime/jobs/jobs.h"

#include "runtime/call/adapt.h"
#include "runtime/call/leads.h"
#include "runtime/call/request.h"
#include "runtime/diagnose/diagnose.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/threads.h"

#include <stdlib.h>
#include <string.h>

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
                       mc_job_t **job)
{
    mc_job_t *const j = calloc(1, sizeof *j);
    if (!j)
        return mc_fail_memory("a job");
    j->rank = rank;
    j->device = mc_gpu_ops();
    j->mesh = *mesh;
    j->failure.alarm = &mc_no_alarm;
    int status = mc_diagnose_open_job(j);
    if (!status)
        status = mc_threads_open(j, settings);
    if (status) {
        if (j->waits)
            mc_diagnose_close_job(j);
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
        status = mc_switch_read("MESHCOLL_REPRODUCIBLE", settings->reproducible, &h->reproducible);
    if (!status)
        status = read_timeout(settings->timeout, &h->timeout_ms);
    if (!status)
        status = mc_choice_init(&h->choice, settings, &h->mesh);
    if (!status)
        status = mc_diagnose_open(h, settings);
    if (!status)
        status = mc_adapt_open(h, settings->adapt);
    return status;
}

int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   mc_job_t *job, meshcoll_t **handle)
{
    meshcoll_t *const h = calloc(1, sizeof *h);
    if (!h)
        return mc_fail_memory("a mesh");
    h->job = job;
    h->rank = rank;
    h->share.concurrent = 1;
    h->hook = settings->hook;
    h->mesh = *mesh;
    h->numbering = mc_numbering(mesh, NULL);
    int status = open_own(h, settings);
    if (!status && !job)
        status = open_shared(mesh, rank, settings, &h->job);
    if (status) {
        mc_adapt_free(h);
        mc_diagnose_close(h);
        mc_links_free(&h->links);
        free(h);
        return status;
    }
    if (!job) {
        mc_jobs_enter(h->job);
        mc_job_add(h);
    }
    mc_lead_open(h);
    *handle = h;
    return MESHCOLL_OK;
}

/* By rank: the lowest rank of the part on the same machine. */
static int take_machines(const meshcoll_t *parent, const int32_t *member, meshcoll_t *h)
{
    int32_t *const first = malloc((size_t)parent->mesh.size * sizeof *first);
    h->machine = calloc((size_t)h->mesh.size, sizeof *h->machine);
    const bool good = first && h->machine;
    for (int32_t r = h->mesh.size - 1; good && r >= 0; r--)
        first[parent->machine[member[r]]] = r;
    for (int32_t r = 0; good && r < h->mesh.size; r++)
        h->machine[r] = first[parent->machine[member[r]]];
    free(first);
    return good ? MESHCOLL_OK : mc_fail_memory("a table of machines");
}

static int take_ranks(const meshcoll_t *parent, const int32_t *member, meshcoll_t *h)
{
    int32_t *const job_rank = malloc((size_t)h->mesh.size * sizeof *job_rank);
    for (int32_t r = 0; job_rank && r < h->mesh.size; r++)
        job_rank[r] = mc_job_rank(parent, member[r]);
    return mc_ranks_set(h, job_rank);
}

int mc_handle_open_part(const meshcoll_t *parent, const mc_mesh_t *mesh, int32_t rank,
                        const int32_t *member, const mc_settings_t *settings, meshcoll_t **handle)
{
    meshcoll_t *h;
    int status = mc_handle_open(mesh, rank, settings, parent->job, &h);
    if (status)
        return status;
    status = take_machines(parent, member, h);
    if (!status)
        status = take_ranks(parent, member, h);
    if (status)
        mc_handle_free(h);
    else
        *handle = h;
    return status;
}
