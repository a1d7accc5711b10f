/* Progress: polling the transports of jobs, advancing their running requests, and sleeping on
 * the descriptors of transports. The caller holds the job's lock, where it has one (threads.h).
 * Polls return the number of events. */
#ifndef MC_RUNTIME_PROGRESS_H
#define MC_RUNTIME_PROGRESS_H

#include "runtime/handle/handle.h"

#include <poll.h>

/* How often a waiting rank polls, then yields, before it sleeps.
 *
 * On a core of its own a rank polls about as long as a wake-up would take. While it yields it keeps
 * nobody from working, and a yield costs less than waking an idle core: it yields for some
 * milliseconds, in which a peer copies tens of MiB.
 *
 * Where ranks share cores (oversubscription), yielding takes time from working ranks, so that ranks
 * sleep early. Threads of the library that share the core of their rank do so, too.
 *
 * Measurements: docs/lab-notes/constants.md. */
enum {
    MC_WAIT_POLLS = 1000,
    MC_WAIT_POLLS_SHARED = 1,
    MC_WAIT_YIELDS = 8192,
    MC_WAIT_YIELDS_SHARED = 64
};

typedef struct {
    uint32_t idle; /* polls since the last event */
    bool in_vain;  /* the last sleep ended at once although nothing had happened */
} mc_waiting_t;

static inline uint32_t mc_wait_polls(const mc_job_t *job)
{
    return job->oversubscribed ? MC_WAIT_POLLS_SHARED : MC_WAIT_POLLS;
}

static inline uint32_t mc_wait_yields(const mc_job_t *job)
{
    return job->oversubscribed ? MC_WAIT_YIELDS_SHARED : MC_WAIT_YIELDS;
}

/* The longest sleep: bounds the delay where a transport does not signal an event. */
enum { MC_SLEEP_MS = 10 };
/* After every so many yields, each of which costs about as much, and at every sleep a rank runs its hook (callback.h) and
 * looks after peers and time limits: beside other programs each yield may take milliseconds. */
enum { MC_LOOK_YIELDS = 16 };
static inline bool mc_wait_is_due(uint32_t idle, uint32_t awake)
{
    return idle > awake || idle % MC_LOOK_YIELDS == 0;
}
/* Nothing wakes it when the hook has something to do: its first sleep is as short as poll() offers,
 * and each further one is longer by as much. */
static inline int mc_wait_sleep_ms(const meshcoll_t *h, uint32_t sleeps)
{
    return h->hook.function && sleeps < MC_SLEEP_MS ? (int)sleeps : MC_SLEEP_MS;
}
/* Descriptors watched by one sleep; with more of them it sleeps blindly, for a fixed time. */
enum { MC_SLEEP_FDS = 16 * MC_MAX_DIMS };

typedef struct {
    struct pollfd fd[MC_SLEEP_FDS + 1]; /* one more to wake the sleeper by */
    nfds_t n;
    bool blind, ready; /* some transport has no descriptor; events are pending already */
} mc_sleep_t;

/* Adds the descriptors of a job, and those of the thread's other jobs without a lock that run
 * requests. */
void mc_sleep_watch(mc_sleep_t *s, const mc_job_t *job);
void mc_sleep_watch_busy(mc_sleep_t *s, const mc_job_t *job);
/* Sleeps until an event, or for `most_ms` at most; -1: without limit. Returns whether a descriptor
 * signals an event. */
bool mc_sleep(mc_sleep_t *s, int most_ms);

/* Progresses this job and all others that run requests in this thread: a peer may wait for one
 * of those before it can complete what this rank waits for. Returns the number of events. */
uint32_t mc_job_progress(mc_job_t *job);
/* Sleeps until a transport of these jobs has an event, or for a short time; returns whether one
 * signals an event. A transport may signal without having any (UCX does until a peer answers a new
 * connection). Pass `blind` after such a sleep, to sleep for a fixed time: otherwise the rank would
 * spin on the core of the peer it waits for. */
bool mc_job_sleep(mc_job_t *job, bool blind, int most_ms);
/* To be called while this rank waits and nothing happens. A few times per second it checks that the
 * peers of running requests are alive, on all these jobs (failure.h). */
void mc_job_check_peers(mc_job_t *job);

/* Ends a turn of a wait without a lock after which this rank does not poll again at once: it runs
 * the hook, yields or sleeps. */
void mc_wait_idle(meshcoll_t *h, mc_waiting_t *w);

/* One turn of a wait on a handle with a lock: progresses it, yields or sleeps. The lock is held on
 * entry and return, and released in between. */
void mc_threads_turn(meshcoll_t *h, mc_waiting_t *w);

/* A turn of a test, under the lock. Where it finds nothing and ranks share cores it yields, without the lock: what
 * is missing may come from a rank that waits for this core. */
void mc_test_turn(meshcoll_t *h);

/* Polls the transports of a job and advances what has an event. */
uint32_t mc_job_poll_all(mc_job_t *job);
/* Wakes sleeping peers to which the job's transports have sent. */
void mc_job_wake_peers(mc_job_t *job);
/* Does this thread run requests on jobs without a lock other than `job`? */
bool mc_job_others_run(const mc_job_t *job);

#endif
