#include "runtime/progress/callback.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"

#include "base/system/descriptor.h"
#include "base/system/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { NAP_NS = 50 * 1000 };

/* Releases the lock between two polls. An unlocked mutex usually goes to the thread that has just
 * had it, so yield where another thread waits for it. */
static void step_aside(mc_threads_t *t, bool yields)
{
    mc_threads_unlock(t);
    if (yields || atomic_load_explicit(&t->knocking, memory_order_relaxed) > 0)
        sched_yield();
    mc_threads_lock(t);
}

/* Sleeping --------------------------------------------------------------------------------------- */

/* Sleeps on the transports' descriptors; returns whether a transport woke it, rather than a
 * thread. */
static bool sleep_on(mc_job_t *job, bool with_busy, int most_ms)
{
    mc_threads_t *const t = job->threads;
    uint64_t n_wakes;
    mc_sleep_t s;
    s.n = 0;
    s.blind = s.ready = false;
    mc_sleep_watch(&s, job);
    if (with_busy)
        mc_sleep_watch_busy(&s, job);
    s.fd[s.n++] = (struct pollfd){.fd = t->wake, .events = POLLIN};
    t->asleep = true;
    mc_threads_unlock(t);
    bool news = mc_sleep(&s, most_ms);
    mc_threads_lock(t);
    t->asleep = false;
    while (read(t->wake, &n_wakes, sizeof n_wakes) > 0)
        news = false;
    return news;
}

static void nap(mc_threads_t *t)
{
    mc_threads_unlock(t);
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    mc_threads_lock(t);
}

/* A transport may signal events all the time without having any. After a sleep in vain, sleep for a
 * fixed time instead of spinning. */
static void sleep_or_nap(mc_job_t *job, bool with_busy, int most_ms, bool *in_vain)
{
    if (*in_vain)
        nap(job->threads);
    *in_vain = !*in_vain && sleep_on(job, with_busy, most_ms);
}

/* Returns after `most_ms` at the latest; 0: without limit. */
static void wait_for_news(mc_threads_t *t, int most_ms)
{
    struct timespec end;
    t->n_waiting++;
    if (most_ms > 0) {
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_nsec += most_ms * 1000000L;
        end.tv_sec += end.tv_nsec / 1000000000L;
        end.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&t->news, &t->lock, &end);
    } else {
        pthread_cond_wait(&t->news, &t->lock);
    }
    t->n_waiting--;
}

/* Calls this thread's callbacks that are due; returns whether the lock was released for it. */
static bool run_callbacks(mc_threads_t *t)
{
    if (!mc_callbacks_are_due() || !mc_callbacks_are_mine())
        return false;
    mc_threads_unlock(t);
    mc_callbacks_run();
    mc_threads_lock(t);
    return true;
}

void mc_threads_turn(meshcoll_t *h, mc_waiting_t *w)
{
    mc_job_t *const job = h->job;
    mc_threads_t *const t = job->threads;
    const uint32_t looks = mc_wait_polls(job), awake = looks + mc_wait_yields(job);
    w->idle = mc_job_progress(job) > 0 ? 0 : w->idle + 1;
    w->in_vain = w->in_vain && w->idle > 0;
    if (run_callbacks(t))
        return;
    if (h->hook.function && w->idle > looks && mc_hook_run(h)) {
        w->idle = looks;
    } else if (w->idle <= looks) {
        step_aside(t, false);
    } else if (mc_threads_others_run(job)) {
        nap(t);
    } else if (!t->has_thread && w->idle <= awake) {
        step_aside(t, true);
    } else if (!t->has_thread && !t->asleep) {
        sleep_or_nap(job, true, mc_wait_sleep_ms(h, w->idle - awake), &w->in_vain);
        mc_threads_notify(t); /* a thread that waits on `news` may have to take over */
    } else if (mc_job_others_run(job)) {
        nap(t);
    } else {
        wait_for_news(t, h->hook.function ? mc_wait_sleep_ms(h, w->idle - looks) : 0);
    }
    if (w->idle > looks && mc_wait_is_due(w->idle, awake))
        mc_job_check_peers(job);
}

/* The progress thread ---------------------------------------------------------------------------- */

/* How often the progress thread looks before it sleeps. It shares the core of its rank: while no thread of
 * that waits, looks and yields after every event would take time from what the program computes. */
static uint32_t looks_awake(const mc_job_t *job)
{
    if (job->threads->n_waiting == 0)
        return 1;
    return mc_wait_polls(job) + MC_WAIT_YIELDS_SHARED;
}

static void *progress(void *context)
{
    mc_job_t *const job = context;
    mc_threads_t *const t = job->threads;
    bool in_vain = false;
    mc_threads_lock(t);
    for (uint32_t idle = 0; !t->stop;) {
        const uint32_t looks = mc_wait_polls(job), awake = looks_awake(job);
        idle = mc_job_poll_all(job) > 0 ? 0 : idle + 1;
        in_vain = in_vain && idle > 0;
        if (idle > awake)
            mc_job_check_peers(job);
        run_callbacks(t);
        if (idle > 0 && !job->requests.running.first)
            sleep_or_nap(job, false, -1, &in_vain);
        else if (idle > awake)
            sleep_or_nap(job, false, MC_SLEEP_MS, &in_vain);
        else
            step_aside(t, idle > looks);
    }
    mc_threads_unlock(t);
    return NULL;
}

/* Starts the progress thread with all signals blocked: the program's signals are not for it. */
static int start_thread(mc_job_t *job)
{
    job->threads->has_thread = true;
    const int error = mc_thread_start(&job->threads->thread, progress, job);
    if (error) {
        job->threads->has_thread = false;
        return mc_fail(MESHCOLL_ERR_SYSTEM,
                       "the progress thread could not be started: %s; raise the limit of threads "
                       "(ulimit -u, or that of the container)",
                       strerror(error));
    }
    return MESHCOLL_OK;
}

/* Opening and closing ---------------------------------------------------------------------------- */

/* Reads one of two words; NULL means the first. */
static int parse(const char *text, const char *name, const char *no, const char *yes, bool *is_yes)
{
    if (text && strcmp(text, no) != 0 && strcmp(text, yes) != 0)
        return mc_fail(MESHCOLL_ERR_PARSE, "%s: expected \"%s\" or \"%s\", got \"%s\"", name, no,
                       yes, text);
    *is_yes = text && strcmp(text, yes) == 0;
    return MESHCOLL_OK;
}

/* Its timed waits must not depend on changes of the date. */
static void init_news(mc_threads_t *t)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&t->news, &attributes);
    pthread_condattr_destroy(&attributes);
}

static int open_threads(mc_job_t *job, bool has_thread)
{
    mc_threads_t *const t = calloc(1, sizeof *t);
    if (!t)
        return mc_fail_memory("a lock");
    t->wake = mc_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (t->wake < 0) {
        free(t);
        return mc_fail(MESHCOLL_ERR_SYSTEM, "no descriptor to wake threads: %s", strerror(errno));
    }
    pthread_mutex_init(&t->lock, NULL);
    init_news(t);
    job->threads = t;
    const int status = has_thread ? start_thread(job) : MESHCOLL_OK;
    if (status)
        mc_threads_close(job);
    else if (!has_thread)
        mc_threads_enter(job);
    return status;
}

int mc_threads_open(mc_job_t *job, const mc_settings_t *settings)
{
    bool has_thread = false, multiple = false;
    int status = parse(settings->progress, "MESHCOLL_PROGRESS", "none", "thread", &has_thread);
    if (!status)
        status = parse(settings->threads, "MESHCOLL_THREADS", "single", "multiple", &multiple);
    if (status || !(has_thread || multiple))
        return status;
    return open_threads(job, has_thread);
}

void mc_threads_close(mc_job_t *job)
{
    mc_threads_t *const t = job->threads;
    if (!t)
        return;
    if (t->has_thread) {
        mc_threads_lock(t);
        t->stop = true;
        mc_threads_wake(t);
        mc_threads_unlock(t);
        pthread_join(t->thread, NULL);
    }
    mc_threads_leave(job);
    pthread_cond_destroy(&t->news);
    pthread_mutex_destroy(&t->lock);
    close(t->wake);
    free(t);
    job->threads = NULL;
}
