/* The proxy and its ends; who uses what. */
#ifndef MC_PROXY_STATE_H
#define MC_PROXY_STATE_H

#include "gpu/proxy/proxy.h"

#include <pthread.h>

/*
 * May slots of messages to other machines lie in memory of the GPU, where UCX and the network card
 * read and write them? Only where the user says so, and where it is sure that a kernel that runs
 * sees what has arrived: the GPU orders such writes, or the driver has a call that waits for them.
 * Each rank's own choice: its peers need not make the same.
 */
typedef struct {
    mc_cu_context_t context; /* of the memory; NULL: it may not */
    int (*flush)(void);      /* before a kernel is told of what has arrived; NULL: needs nothing */
    const char *why_not;     /* "…, as WHY_NOT"; static; NULL: it may */
} mc_gpudirect_t;

/* As MESHCOLL_GPU_DIRECT says, for the GPU whose context is current. ERR_PARSE, ERR_DEVICE. */
int mc_gpudirect_find(mc_gpudirect_t *direct);

struct mc_proxy_end {
    meshcoll_t *mesh;
    uint32_t blocks, slot_bytes;
    bool direct;                     /* slots may lie in memory of the GPU */
    unsigned char *is_direct;        /* by mesh rank: the same of others */
    const char *why_host;            /* mc_proxy_why_host */
    mc_route_t *routes;              /* all that were made */
    _Atomic uint64_t given, settled; /* launches, of each route by itself */

    /* The thread's. */
    mc_proxy_end_t *next;
    bool listed;
    mc_route_t *active; /* routes that have something to do */
    uint64_t taken;     /* launches that it knows of */
    uint64_t flushed;   /* of them: moved when the flush in flight began */
};

typedef struct mc_proxy {
    mc_arena_t arena;
    mc_job_t *job;
    pthread_t thread;
    bool has_thread;
    mc_gpudirect_t direct; /* its context is current in the thread */
    int wake;              /* an eventfd */
    _Atomic bool stop, has_orders;

    pthread_mutex_t lock;            /* of these */
    mc_route_launch_t *first, *last; /* from the program's threads to the proxy's */
    mc_proxy_end_t *leaving;         /* which the thread is to forget */
    pthread_cond_t left;             /* it has */
    bool asleep;
    mc_transport_t *transport[MC_MAX_DIMS]; /* NULL: not needed so far */
    char **address;                         /* by rank of the job; NULL: not known */
    size_t *address_bytes;

    /* The thread's. */
    mc_transport_t *polled[MC_MAX_DIMS]; /* those with connections */
    bool flushing[MC_MAX_DIMS];          /* of them: is a flush in flight? */
    int32_t n_polled, n_flushes;
    mc_peer_t **peer; /* by rank of the job */
    mc_io_queue_t finished;
    mc_proxy_end_t *ends; /* with launches so far */
    int64_t checked;      /* when it was last looked for messages of other calls, in ns */
    bool over;            /* the mesh failed: nothing is moved any more */
} mc_proxy_t;

/* The thread: with all signals blocked. ERR_NO_MEMORY. */
int mc_proxy_thread_start(mc_proxy_t *proxy);
/* Waits for its end. */
void mc_proxy_thread_stop(mc_proxy_t *proxy);

/* Wakes it where it sleeps; the lock is held. */
void mc_proxy_wake(mc_proxy_t *proxy);

#endif
