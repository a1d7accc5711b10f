/* Opens the handle of a creation, with its ranks where the machines suggest. */
#include "runtime/create/rounds.h"

#include "runtime/jobs/jobs.h"

static void take_arranged(meshcoll_t *h, mc_arranged_t *arranged)
{
    h->order = arranged->order;
    h->numbering = mc_numbering(&h->mesh, h->order.comm_rank);
    h->machine = arranged->machine;
    *arranged = (mc_arranged_t){0};
}

/* Opens a handle without transports, its ranks arranged, in a job; NULL: in one of its own. */
static int open_arranged(const meshcoll_oob_t *oob, const mc_place_t *place,
                         const mc_settings_t *settings, mc_job_t *job, meshcoll_t **handle)
{
    mc_arranged_t arranged;
    int status = mc_arrange(settings->mesh, settings->order, place, oob->size, &arranged);
    if (status)
        return status;
    const int32_t rank = mc_mesh_rank_of(&arranged.order, oob->rank);
    status = mc_handle_open(&arranged.mesh, rank, settings, job, handle);
    if (!status)
        take_arranged(*handle, &arranged);
    mc_arranged_free(&arranged);
    return status;
}

/* Dimensions between machines share the wire of one NIC, unless the links say otherwise. */
int mc_handle_open_placed(const mc_making_t *m, mc_job_t *job, meshcoll_t **handle)
{
    char tls[MC_MAX_DIMS][MC_TLS_TEXT];
    meshcoll_t *h;
    int status = open_arranged(&m->creation->oob, m->place, &m->settings, job, &h);
    if (status)
        return status;
    mc_links_share_wire(&h->links, mc_boxes_outside(h->machine, &h->mesh) - 1);
    *handle = h;
    if (job) /* it has them; the text must fit */
        return mc_boxes_transports(m->settings.transports, h->machine, &h->mesh, tls);
    h->job->order = h->order;
    h->job->machine = h->machine;
    h->job->oob = m->creation->oob;
    return mc_boxes_transports(m->settings.transports, h->machine, &h->mesh,
                               h->job->connections.tls);
}
