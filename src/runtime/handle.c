#include "runtime/handle.h"

#include "runtime/connections.h"
#include "runtime/crowd.h"
#include "runtime/explain.h"
#include "runtime/request.h"
#include "runtime/wait.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A sleep ends at the latest after this: what a transport forgets to announce is seen then. */
enum { SLEEP_MS = 10, BLIND_SLEEP_NS = 50 * 1000 };
/* Descriptors watched by one sleep; with more it is a blind one. */
enum { MOST_FDS = 16 * MC_MAX_DIMS };

/* Handles that run something, started in this thread. */
static _Thread_local meshcoll_t *busy;

/* Opening --------------------------------------------------------------------------------------- */

int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   meshcoll_t **handle)
{
    meshcoll_t *const h = calloc(1, sizeof *h);
    if (!h)
        return mc_fail_memory("a mesh");
    h->rank = rank;
    h->mesh = *mesh;
    mc_text_t text = mc_text(h->text, sizeof h->text);
    mc_mesh_print(mesh, &text);
    int status = mc_links_parse(settings->links, mesh, &h->links);
    if (!status)
        status = mc_choice_init(&h->choice, settings, mesh);
    if (!status)
        status = mc_explain_create(settings, &h->explain);
    if (status) {
        free(h);
        return status;
    }
    *handle = h;
    return MESHCOLL_OK;
}

static void take_arranged(meshcoll_t *h, mc_arranged_t *arranged)
{
    h->order = arranged->order;
    h->machine = arranged->machine;
    *arranged = (mc_arranged_t){0};
}

/* Without transports. */
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

/* What the ranks of one machine may do with each other's memory, and whether they share cores.
 * Collective: all have the same settings. */
static int find_neighbours(meshcoll_t *h, const mc_creation_t *c)
{
    const size_t n = (size_t)h->mesh.size;
    double crowd = 0;
    int32_t *const machine = calloc(n, sizeof *machine);
    if (!machine)
        return mc_fail_memory("asking about shared memory");
    for (size_t r = 0; r < n; r++)
        machine[r] = c->place[r].machine;
    int status = mc_crowd_find(&c->oob, machine, &crowd);
    h->crowded = crowd > 1;
    if (!status && mc_connections_want_shm(h))
        status = mc_shm_probe(&c->oob, machine, &h->access);
    free(machine);
    return status;
}

static int open_transports(meshcoll_t *h, const mc_creation_t *c, const mc_settings_t *settings)
{
    int status = mc_boxes_transports(settings->transports, h->machine, &h->mesh, h->tls);
    if (!status)
        status = find_neighbours(h, c);
    return status ? status : mc_connections_open(h);
}

/* Creating and destroying ----------------------------------------------------------------------- */

/* The list's requests outlive the handle, as the user's; how many were still running. Nothing writes
 * to them any more. */
static uint32_t give_up(meshcoll_request_t *list)
{
    uint32_t n = 0;
    for (meshcoll_request_t *r = list, *next; r; r = next) {
        next = r->next;
        n += r->running;
        r->mesh = NULL;
        if (r->running)
            r->status = MESHCOLL_ERR_INVALID_ARG;
        r->running = false;
        if (r->released)
            meshcoll_free(r);
    }
    return n;
}

static void leave_busy(meshcoll_t *h)
{
    meshcoll_t **at = &busy;
    while (*at && *at != h)
        at = &(*at)->next_busy;
    if (*at)
        *at = h->next_busy;
}

static void handle_free(meshcoll_t *h)
{
    leave_busy(h);
    for (int32_t d = 0; d < h->mesh.ndims; d++)
        if (h->transport[d])
            h->transport[d]->ops->close(h->transport[d]);
    give_up(h->failed);
    const uint32_t n = give_up(h->running);
    if (n > 0)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: %u requests were still running and were given up; what their "
                "buffers hold is undefined",
                n);
    mc_explain_destroy(h->explain);
    free(h->addresses);
    free(h->peer);
    free(h->machine);
    mc_order_free(&h->order);
    mc_settings_free(&h->settings);
    mc_workspace_free(&h->workspace);
    free(h);
}

static int create(const mc_creation_t *c, mc_settings_t *settings, meshcoll_t **handle)
{
    meshcoll_t *h = NULL;
    int status = mc_settings_share(&c->oob, settings);
    if (!status)
        status = open_arranged(c, settings, &h);
    if (!status)
        status = open_transports(h, c, settings);
    status = mc_agree(&c->oob, status);
    if (!status) {
        h->oob = c->oob;
        status = mc_addresses_share(h);
    }
    if (status) {
        if (h)
            handle_free(h);
        return status;
    }
    h->free_context = c->free_context;
    h->settings = *settings;
    *settings = (mc_settings_t){0};
    *handle = h;
    return MESHCOLL_OK;
}

int mc_handle_create(const mc_creation_t *creation, meshcoll_t **mesh)
{
    mc_settings_t settings = {0};
    const meshcoll_oob_t *const oob = &creation->oob;
    if (oob->size > 1 << MC_TAG_SOURCE_BITS)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "%d ranks are too many: a mesh has at most %d",
                       oob->size, 1 << MC_TAG_SOURCE_BITS);
    const int status = mc_agree(oob, mc_settings_read(creation->params, &settings));
    if (!status && creation->tuned)
        settings.links_from = creation->tuned;
    const int created = status ? status : create(creation, &settings, mesh);
    mc_settings_free(&settings);
    return created;
}

static void leave_parent(meshcoll_t *h)
{
    if (!h->parent)
        return;
    meshcoll_t **at = &h->parent->children;
    while (*at != h)
        at = &(*at)->sibling;
    *at = h->sibling;
}

void mc_handle_close(meshcoll_t *h)
{
    if (!h)
        return;
    while (h->children)
        mc_handle_close(h->children);
    leave_parent(h);
    for (int i = 0; i < MC_CACHED_REQUESTS; i++)
        meshcoll_free(h->cached[i]);
    meshcoll_free(h->barrier);
    if (h->free_context)
        h->free_context(h->oob.context);
    handle_free(h);
}

static void oob_barrier(const meshcoll_t *h)
{
    char *const all = h->oob.allgather ? malloc((size_t)h->mesh.size) : NULL;
    const char one = 1;
    if (all)
        h->oob.allgather(h->oob.context, &one, all, 1);
    free(all);
}

void meshcoll_destroy(meshcoll_t *mesh)
{
    if (!mesh)
        return;
    /* nobody closes what somebody still sends through; where the parent has failed there is no
     * asking, and nothing to lose */
    if (mesh->parent)
        (void)mc_run_barrier(mesh->parent);
    else
        oob_barrier(mesh);
    if (mesh->explain)
        mc_explain_print(mesh);
    mc_handle_close(mesh);
}

/* Progress -------------------------------------------------------------------------------------- */

void mc_handle_break(meshcoll_t *h, int status)
{
    if (h->broken)
        return;
    h->broken = status;
    snprintf(h->why, sizeof h->why, "%s", meshcoll_last_error());
}

int mc_handle_check(const meshcoll_t *h)
{
    return h->broken ? mc_fail(h->broken, "this mesh failed before: %s; destroy it", h->why)
                     : MESHCOLL_OK;
}

void mc_handle_enlist(meshcoll_t *h, meshcoll_request_t *r)
{
    meshcoll_request_t **at = &h->running;
    if (!*at) {
        h->next_busy = busy;
        busy = h;
    }
    while (*at)
        at = &(*at)->next;
    r->next = NULL;
    *at = r;
}

/* Moves one request on, after a look with so many events; whether anything happened. */
static bool advance(meshcoll_request_t *r, bool shared, uint32_t events)
{
    mc_executor_t *const x = &r->executor;
    const bool has_work = mc_executor_has_work(x);
    x->shared = shared;
    x->looks_awake = mc_wait_looks(r->mesh) + MC_WAIT_YIELDS;
    if (x->state == MC_FLUSHING)
        x->looks += shared && events == 0;
    else if (!has_work)
        return false;
    r->status = mc_executor_advance(x);
    return has_work || r->status != MESHCOLL_IN_PROGRESS;
}

/* A look at a handle's transports and running requests. */
static uint32_t look(meshcoll_t *h)
{
    uint32_t n = 0;
    for (int32_t i = 0; i < h->n_polled; i++)
        n += h->polled[i]->ops->progress(h->polled[i]);
    if (!h->running)
        return n;
    for (meshcoll_request_t **at = &h->running; *at;) {
        meshcoll_request_t *const r = *at;
        n += advance(r, h->running->next, n);
        if (r->status == MESHCOLL_IN_PROGRESS) {
            at = &r->next;
        } else {
            *at = r->next;
            mc_request_ended(r);
        }
    }
    if (!h->running)
        leave_busy(h);
    return n;
}

uint32_t mc_handle_progress(meshcoll_t *h)
{
    uint32_t n = look(h);
    for (meshcoll_t *other = busy, *next; other; other = next) {
        next = other->next_busy;
        if (other != h)
            n += look(other);
    }
    return n;
}

/* Descriptors to sleep on. */
typedef struct {
    struct pollfd fd[MOST_FDS];
    nfds_t n;
    bool blind, ready; /* not all have one; there are events already */
} watch_t;

static void watch(watch_t *w, const meshcoll_t *h)
{
    for (int32_t i = 0; i < h->n_polled && !w->ready; i++) {
        mc_transport_t *const t = h->polled[i];
        if (t->fd < 0 || w->n == MOST_FDS)
            w->blind = true;
        else
            w->fd[w->n++] = (struct pollfd){.fd = t->fd, .events = POLLIN};
        w->ready = t->ops->arm(t) == MESHCOLL_IN_PROGRESS && t->fd >= 0;
    }
}

void mc_handle_sleep(meshcoll_t *h)
{
    watch_t w;
    w.n = 0;
    w.blind = w.ready = false;
    watch(&w, h);
    for (const meshcoll_t *other = busy; other; other = other->next_busy)
        if (other != h)
            watch(&w, other);
    if (w.ready)
        return;
    if (w.blind || w.n == 0)
        nanosleep(&(struct timespec){.tv_nsec = BLIND_SLEEP_NS}, NULL);
    else
        poll(w.fd, w.n, SLEEP_MS);
}

/* Asking ---------------------------------------------------------------------------------------- */

static int no_mesh(const char *function)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the mesh is NULL", function);
}

int meshcoll_rank(const meshcoll_t *mesh)
{
    return mesh ? mc_comm_rank_of(&mesh->order, mesh->rank) : no_mesh("meshcoll_rank");
}

int meshcoll_size(const meshcoll_t *mesh)
{
    return mesh ? mesh->mesh.size : no_mesh("meshcoll_size");
}

const char *meshcoll_mesh_text(const meshcoll_t *mesh)
{
    if (!mesh)
        no_mesh("meshcoll_mesh_text");
    return mesh ? mesh->text : NULL;
}

int meshcoll_coord(const meshcoll_t *mesh, int rank, int dim)
{
    int32_t coord[MC_MAX_DIMS];
    if (!mesh)
        return no_mesh("meshcoll_coord");
    if (rank < 0 || rank >= mesh->mesh.size || dim < 0 || dim >= mesh->mesh.ndims)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_coord: expected a rank from 0 to %d and a dimension from 0 to %d, "
                       "got %d and %d",
                       mesh->mesh.size - 1, mesh->mesh.ndims - 1, rank, dim);
    mc_mesh_coords(&mesh->mesh, mc_mesh_rank_of(&mesh->order, rank), coord);
    return coord[dim];
}

uint64_t meshcoll_bytes_sent(const meshcoll_t *mesh, int dim)
{
    if (!mesh)
        no_mesh("meshcoll_bytes_sent");
    return mesh && dim >= 0 && dim < mesh->mesh.ndims ? mesh->bytes_sent[dim] : 0;
}
