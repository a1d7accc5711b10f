#include "runtime/diagnose/waits/requests.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A wait. Its times are those of this machine's clock, in ms. */
typedef struct {
    mc_wait_t wait;
    int64_t at, moved;
    const meshcoll_request_t *of;
    bool stays; /* it has failed */
} entry_t;

/* Of so many launches it is known what they were. */
enum { LAUNCHES = 16 };

typedef struct mc_published {
    pthread_mutex_t lock;
    int64_t looked;                          /* 0: it was not published yet */
    const meshcoll_t *mesh[MC_WAITS_MESHES]; /* more are left out */
    int32_t broken;                          /* the status of the job's failure; else 0 */
    int32_t n_meshes, n, n_more;
    entry_t entry[MC_WAITS_REQUESTS];
    mc_waits_launch_t launch[LAUNCHES]; /* a ring */
    uint32_t n_launches;
} published_t;

/* Meshes ----------------------------------------------------------------------------------------- */

int mc_waits_open(mc_job_t *job)
{
    published_t *const p = calloc(1, sizeof *p);
    if (!p)
        return mc_fail_memory("a record of waits");
    pthread_mutex_init(&p->lock, NULL);
    job->waits = p;
    return MESHCOLL_OK;
}

void mc_waits_close(mc_job_t *job)
{
    pthread_mutex_destroy(&job->waits->lock);
    free(job->waits);
    job->waits = NULL;
}

static void add_mesh(published_t *p, const meshcoll_t *h)
{
    if (p->n_meshes < MC_WAITS_MESHES)
        p->mesh[p->n_meshes++] = h;
}

void mc_waits_join(const meshcoll_t *h)
{
    published_t *const p = h->job->waits;
    pthread_mutex_lock(&p->lock);
    add_mesh(p, h);
    pthread_mutex_unlock(&p->lock);
}

/* Removes the entries of a request, or of all where it is NULL, that do not stay. */
static void remove_entries(published_t *p, const meshcoll_request_t *of)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n; i++)
        if (p->entry[i].stays || (of && p->entry[i].of != of))
            p->entry[n++] = p->entry[i];
    p->n = n;
}

static int32_t find_mesh(const published_t *p, const meshcoll_t *h)
{
    int32_t i = 0;
    while (i < p->n_meshes && p->mesh[i] != h)
        i++;
    return i;
}

/* One that was left out takes its place: what is not there counts as not made. */
static void remove_mesh(published_t *p, const meshcoll_t *h)
{
    int32_t i = find_mesh(p, h);
    if (i == p->n_meshes)
        return;
    p->n_meshes--;
    for (; i < p->n_meshes; i++)
        p->mesh[i] = p->mesh[i + 1];
    const meshcoll_t *other = h->job->meshes;
    while (other &&
           (other == h || other->entry.state != MC_MESH_OPEN || find_mesh(p, other) < p->n_meshes))
        other = other->entry.next;
    if (other)
        add_mesh(p, other);
}

void mc_waits_leave(const meshcoll_t *h)
{
    published_t *const p = h->job->waits;
    pthread_mutex_lock(&p->lock);
    remove_mesh(p, h);
    pthread_mutex_unlock(&p->lock);
}

/* Requests --------------------------------------------------------------------------------------- */

static void publish(published_t *p, const meshcoll_request_t *r, int64_t now)
{
    entry_t *const e = &p->entry[p->n++];
    *e = (entry_t){.at = now, .moved = r->watched.moved, .of = r};
    mc_wait_describe(r, &e->wait);
    e->wait.waited_ms = r->watched.waited;
}

void mc_waits_publish(const mc_job_t *job, int32_t n, int64_t now)
{
    published_t *const p = job->waits;
    pthread_mutex_lock(&p->lock);
    remove_entries(p, NULL);
    p->looked = now;
    p->n_more = n;
    for (const meshcoll_request_t *r = mc_request_in_flight(job->requests.running.first);
         r && p->n_more > 0 && p->n < MC_WAITS_REQUESTS; r = mc_request_next(r))
        if (mc_waits_are_of(r)) {
            publish(p, r, now);
            p->n_more--;
        }
    pthread_mutex_unlock(&p->lock);
}

static bool is_fresh(const entry_t *e, int64_t now)
{
    return e->stays || now - e->at <= MC_WAITS_FRESH_MS;
}

void mc_waits_launched(const mc_job_t *job, const mc_waits_launch_t *launch)
{
    published_t *const p = job->waits;
    pthread_mutex_lock(&p->lock);
    p->launch[p->n_launches++ % LAUNCHES] = *launch;
    pthread_mutex_unlock(&p->lock);
}

void mc_waits_break(const mc_job_t *job)
{
    published_t *const p = job->waits;
    const int64_t now = mc_now_ms();
    pthread_mutex_lock(&p->lock);
    p->broken = job->failure.status;
    for (int32_t i = 0; i < p->n; i++)
        p->entry[i].stays = is_fresh(&p->entry[i], now);
    pthread_mutex_unlock(&p->lock);
}

void mc_waits_forget(const meshcoll_request_t *ended)
{
    published_t *const p = ended->mesh->job->waits;
    pthread_mutex_lock(&p->lock);
    remove_entries(p, ended);
    pthread_mutex_unlock(&p->lock);
}

/* Copying ---------------------------------------------------------------------------------------- */

/* The digest of a call, if it is one of the last that were made; 0: not known. */
static uint32_t digest_of(const meshcoll_t *h, uint32_t n_calls, uint32_t number)
{
    const uint64_t made =
        atomic_load_explicit(&h->calls.made[number % MC_MADE_CALLS], memory_order_relaxed);
    const uint32_t back = (n_calls - 1 - number) % MC_TAG_CALLS;
    const uint32_t more = (uint32_t)(made >> 32) - (n_calls - back);
    const bool is_it = number == (uint16_t)(made >> 16) && more < MC_MADE_CALLS;
    return back < MC_MADE_CALLS && is_it ? (uint16_t)made : 0;
}

static void copy_meshes(const published_t *p, uint32_t number, mc_waits_t *copy)
{
    for (int32_t i = 0; i < p->n_meshes; i++) {
        const meshcoll_t *const h = p->mesh[i];
        const uint32_t n_calls = atomic_load_explicit(&h->calls.n, memory_order_relaxed);
        copy->mesh[copy->n_meshes++] = (mc_waits_mesh_t){
            .id = mc_wait_part(h),
            .n_calls = n_calls,
            .digest = digest_of(h, n_calls, number),
            .n_persistent = atomic_load_explicit(&h->calls.n_persistent, memory_order_relaxed)};
    }
}

/* Numbers wrap: one of a call must be that of the last call of its number. */
static bool is_last(const mc_waits_launch_t *l, const mc_waits_t *copy)
{
    bool last = l->is_persistent;
    for (int32_t i = 0; i < copy->n_meshes && !last; i++)
        last = copy->mesh[i].id == l->mesh && copy->mesh[i].digest == (uint16_t)l->digest;
    return last;
}

static void copy_launch(const published_t *p, uint32_t number, mc_waits_t *copy)
{
    for (uint32_t i = 0; i < LAUNCHES && copy->launch.digest == 0; i++) {
        const mc_waits_launch_t *const l = &p->launch[(p->n_launches - 1 - i) % LAUNCHES];
        if (l->digest != 0 && l->number == number && is_last(l, copy))
            copy->launch = *l;
    }
}

static void copy_entries(const published_t *p, int64_t now, mc_waits_t *copy)
{
    for (int32_t i = 0; i < p->n; i++) {
        const entry_t *const e = &p->entry[i];
        if (!is_fresh(e, now)) {
            if (!copy->has_last && e->wait.peer >= 0)
                copy->last = e->wait;
            copy->has_last = copy->has_last || e->wait.peer >= 0;
            continue;
        }
        mc_wait_t *const w = &copy->wait[copy->n++];
        *w = e->wait;
        w->still_ms = (e->stays ? e->at : now) - e->moved;
        w->age_ms = now - e->at;
    }
    copy->n_more = copy->n == MC_WAITS_REQUESTS ? p->n_more : 0;
}

void mc_waits_copy(const mc_job_t *job, uint32_t number, mc_waits_t *copy)
{
    const int64_t now = mc_now_ms();
    published_t *const p = job->waits;
    *copy = (mc_waits_t){.rank = job->rank,
                         .known_as = mc_comm_rank_of(&job->order, job->rank),
                         .size = job->mesh.size,
                         .pid = (int32_t)getpid(),
                         .place = mc_wait_place(job, job->rank)};
    if (gethostname(copy->host, sizeof copy->host - 1))
        memcpy(copy->host, "?", 2);
    pthread_mutex_lock(&p->lock);
    copy->looked_ms = p->looked ? now - p->looked : -1;
    copy->broken = p->broken;
    copy_meshes(p, number, copy);
    copy_launch(p, number, copy);
    copy_entries(p, now, copy);
    pthread_mutex_unlock(&p->lock);
}
