#include "runtime/jobs/jobs.h"

#include "job/monitor/monitor.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/handle/request.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/threads.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mc_job_t *first;

/* Forks ------------------------------------------------------------------------------------------- */

/* Nothing of the job is touched any more, neither transports nor locks. Of its requests only the status. */
static void forget(mc_job_t *job)
{
    job->unusable = true;
    job->threads = NULL;
    job->connections.n_polled = 0;
    job->move_messages = NULL;
    if (!job->failure.status)
        snprintf(
            job->failure.why, sizeof job->failure.why,
            "this process is a child of fork, and its parent made the mesh: make a new one here");
    job->failure.status = job->failure.status ? job->failure.status : MESHCOLL_ERR_UNSUPPORTED;
    for (meshcoll_request_t *r; (r = mc_request_in_flight(job->requests.running.first));) {
        mc_busy_unlist(r);
        r->status = job->failure.status;
        r->running = false;
    }
}

static void forget_all(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (mc_job_t *job = first; job; job = job->entry.next)
        forget(job);
    mc_busy = NULL;
    mc_threads_forget();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_all);
}

/* The list ---------------------------------------------------------------------------------------- */

void mc_jobs_enter(mc_job_t *job)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    job->entry.maker = pthread_self();
    pthread_mutex_lock(&lock);
    job->entry.next = first;
    first = job;
    pthread_mutex_unlock(&lock);
}

void mc_jobs_leave(const mc_job_t *job)
{
    pthread_mutex_lock(&lock);
    mc_job_t **at = &first;
    while (*at != job)
        at = &(*at)->entry.next;
    *at = job->entry.next;
    pthread_mutex_unlock(&lock);
}

void mc_job_add(meshcoll_t *h)
{
    h->entry.next = h->job->meshes;
    h->job->meshes = h;
    mc_waits_join(h);
}

void mc_jobs_name(mc_job_t *job, const mc_job_id_t *id, mc_home_t *home)
{
    pthread_mutex_lock(&lock);
    job->home = home;
    job->entry.id = *id;
    pthread_mutex_unlock(&lock);
}

/* Joining ----------------------------------------------------------------------------------------- */

static bool is_same(const mc_job_id_t *a, const mc_job_id_t *b)
{
    return a->at[0] == b->at[0] && a->at[1] == b->at[1];
}

/* Threads may be ranks of one job. */
static bool is_alone(const mc_job_t *job)
{
    int n = 0;
    for (const mc_job_t *other = first; other; other = other->entry.next)
        n += is_same(&other->entry.id, &job->entry.id);
    return n == 1;
}

/* Another thread may be making it: then it has no id, and nothing else is looked at. Or be in it: of all that
 * changes, only the alarm is looked at. */
static bool may_join(const mc_job_t *job)
{
    if (is_same(&job->entry.id, &(mc_job_id_t){{0}}))
        return false;
    const bool any_thread = job->threads && is_alone(job);
    return (pthread_equal(job->entry.maker, pthread_self()) || any_thread) && !job->unusable &&
           job->entry.n_closing == 0 && job->monitor && !atomic_load(job->failure.alarm) &&
           mc_monitor_is_joined(job->monitor);
}

bool mc_jobs_offer(mc_job_offer_t offer[MC_JOBS_OFFERED], mc_home_t *home)
{
    int n = 0;
    memset(offer, 0, MC_JOBS_OFFERED * sizeof *offer);
    pthread_mutex_lock(&lock);
    for (const mc_job_t *job = first; job && n < MC_JOBS_OFFERED; job = job->entry.next)
        if (may_join(job)) {
            offer[n++] = (mc_job_offer_t){.id = job->entry.id, .rank = job->rank};
            *home = *job->home;
        }
    pthread_mutex_unlock(&lock);
    return n > 0;
}

mc_job_t *mc_jobs_hold(const mc_job_offer_t *offer)
{
    pthread_mutex_lock(&lock);
    mc_job_t *job = first;
    while (job &&
           !(is_same(&job->entry.id, &offer->id) && job->rank == offer->rank && may_join(job)))
        job = job->entry.next;
    if (job)
        job->entry.n_joining++;
    pthread_mutex_unlock(&lock);
    return job;
}

void mc_jobs_release(mc_job_t *job)
{
    pthread_mutex_lock(&lock);
    job->entry.n_joining--;
    pthread_mutex_unlock(&lock);
}

/* All ranks are in a creation that is under way, so that it ends soon. */
void mc_jobs_close(mc_job_t *job)
{
    pthread_mutex_lock(&lock);
    job->entry.n_closing++;
    while (job->entry.n_joining > 0) {
        pthread_mutex_unlock(&lock);
        sched_yield();
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
}

void mc_jobs_reopen(mc_job_t *job)
{
    pthread_mutex_lock(&lock);
    job->entry.n_closing--;
    pthread_mutex_unlock(&lock);
}

/* One that another thread is making has no id, and nothing else of it is looked at. */
static bool has_lost(const mc_job_t *job, mc_news_t *news)
{
    return !is_same(&job->entry.id, &(mc_job_id_t){{0}}) && job->entry.of_environment &&
           !job->unusable && job->monitor && mc_news_fatal(mc_monitor_board(job->monitor), news) &&
           news->gone;
}

int mc_jobs_check_ranks(void)
{
    mc_news_t news;
    pthread_mutex_lock(&lock);
    const mc_job_t *job = first;
    while (job && !has_lost(job, &news))
        job = job->entry.next;
    pthread_mutex_unlock(&lock);
    return job ? mc_fail(MESHCOLL_ERR_PEER,
                         "a mesh cannot be made of all ranks: in one that they have, %s", news.text)
               : MESHCOLL_OK;
}

/* Handles that are gone --------------------------------------------------------------------------- */

/* `meshes` is their list. */
static mc_job_t gone = {
    .unusable = true,
    .failure = {.status = MESHCOLL_ERR_INVALID_ARG,
                .alarm = &mc_no_alarm,
                .why = "the mesh that this one was made from was destroyed, and this "
                       "one with it"},
};

static void free_from(meshcoll_t *h)
{
    for (meshcoll_t *next; h; h = next) {
        next = h->entry.next;
        free(h);
    }
}

/* Keeps the newest, as many as a job has contexts. */
static void shorten(void)
{
    meshcoll_t *h = gone.meshes;
    for (int i = 1; h && i < MC_CONTEXTS; i++)
        h = h->entry.next;
    if (!h)
        return;
    free_from(h->entry.next);
    h->entry.next = NULL;
}

void mc_handle_bury(meshcoll_t *h)
{
    const int32_t rank = h->rank;
    const mc_mesh_t mesh = h->mesh;
    const mc_device_ops_t *const device = h->job->device;
    memset(h, 0, sizeof *h);
    h->rank = rank;
    h->mesh = mesh;
    h->text = mc_mesh_text(&h->mesh, h->text_room);
    h->job = &gone;
    h->hooks = &mc_no_hooks;
    pthread_mutex_lock(&lock);
    if (!gone.device) /* the same of all jobs */
        gone.device = device;
    h->entry.next = gone.meshes;
    gone.meshes = h;
    shorten();
    pthread_mutex_unlock(&lock);
}

bool mc_handle_is_buried(const meshcoll_t *h)
{
    return h->job == &gone;
}

void mc_handle_unbury(meshcoll_t *h)
{
    pthread_mutex_lock(&lock);
    meshcoll_t **at = &gone.meshes;
    while (*at && *at != h)
        at = &(*at)->entry.next;
    if (*at) {
        *at = h->entry.next;
        free(h);
    }
    pthread_mutex_unlock(&lock);
}
