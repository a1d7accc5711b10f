/*
 * What all meshes of a job share in this process: transports, connections, the greeter, the lock, the list of
 * running requests, the state of failure, the monitor. Made once, by the first mesh; it goes with the last. Ranks
 * here, of transports and in tags are mesh ranks of that first mesh, whichever mesh a message belongs to.
 */
#ifndef MC_HANDLE_JOB_H
#define MC_HANDLE_JOB_H

#include "base/notice.h"
#include "mesh/mesh.h"
#include "runtime/handle/device.h"
#include "runtime/handle/family.h"
#include "runtime/handle/hooks.h"
#include "runtime/place/boxes.h"
#include "runtime/place/settings.h"
#include "transport/shm/shm.h"

#include <pthread.h>
#include <stdatomic.h>

/* The same on all ranks of a job, and of no other. Zero: none. */
typedef struct {
    uint64_t at[2];
} mc_job_id_t;

typedef struct mc_job mc_job_t;

/* In the list of this process's jobs (jobs/jobs.h), under its lock. */
typedef struct {
    mc_job_t *next;
    mc_job_id_t id;
    pthread_t maker;     /* the thread that made it */
    uint32_t n_closing;  /* meshes that are being destroyed, maybe the last one: none joins it */
    uint32_t n_joining;  /* meshes that are being made of its ranks */
    bool of_environment; /* of all ranks that the launcher has started */
} mc_job_entry_t;

/* Of a transport (progress/flush.h), by numbers of flushes asked for: the last, and those up to which the flush in flight,
 * and the last complete one, serve. */
typedef struct {
    uint64_t asked, begun, done;
    bool in_flight, given_up;
} mc_flushing_t;

/* What a request awaits: flushes of transports (bits; 0: nothing) that began when it had asked for its own. */
typedef struct {
    uint64_t number;
    uint32_t transports;
    uint32_t idle; /* polls without an event since then, in which it might have given up */
} mc_flush_t;

/* Its transports and what they lead to (connect/connections.h). */
typedef struct {
    char tls[MC_MAX_DIMS][MC_TLS_TEXT];
    char devices[MC_DEVICES_TEXT];  /* that lead to other machines; "": UCX's choice */
    char where[MC_TRANSPORT_WHERE]; /* this rank is: "10.0.0.1, eth0"; "": not known */
    mc_shm_access_t access;
    mc_transport_t *transport[MC_MAX_DIMS]; /* by dimension; NULL for extent 1 */
    mc_transport_t *polled[MC_MAX_DIMS];    /* those with connections */
    int32_t n_polled;
    mc_flushing_t flushing[MC_MAX_DIMS]; /* of those polled */
    uint64_t n_flushes;                  /* asked for so far */
    uint32_t n_flushing;                 /* in flight */
    /* By rank as gathered, `address_stride` bytes apart; then a byte for each rank. */
    char *addresses;
    size_t address_stride;
    mc_peer_t **peer; /* ascending by rank */
    uint32_t n_peers, peer_capacity;
    struct mc_greeter *greeter; /* of new connections; NULL: none needed it yet */
} mc_connections_t;

/* See progress/failure.h. */
typedef struct {
    int status;                /* of the first run that failed, after which none starts; else 0 */
    double at;                 /* when it failed (mc_now) */
    char why[400];             /* its error text */
    const _Atomic bool *alarm; /* of the monitor's board: the job failed somewhere */
    int64_t check_at;          /* ms; time of the next check that peers are alive */
    bool misses_peer;          /* the last check found a peer gone */
    uint64_t n_runs;           /* that have failed, alone or with all */
} mc_failure_t;

/* Of all meshes: requests that run, the oldest first; of these, those to advance at the next poll, and those that wait
 * for a connection (progress/busy.h). */
typedef struct {
    mc_list_t running, ready, connecting;
    mc_job_t *next; /* in the thread's list of jobs with running requests */
} mc_job_requests_t;

struct mc_job {
    int32_t rank;
    mc_mesh_t mesh;
    mc_order_t order;
    int32_t *machine; /* by rank, the lowest rank on its machine; NULL: all are in one process */
    mc_settings_t settings; /* of the first mesh */
    double crowd;           /* ranks to a core of this rank's */
    bool oversubscribed;    /* more than one: ranks share cores */

    mc_job_entry_t entry;
    struct mc_calibrated *calibrated; /* links measured at creation; NULL: none were */
    struct mc_home *home; /* where this process runs, as was found when it was made (jobs/jobs.h) */
    bool unusable; /* made by a process that has forked this one, or gone: only forgetting works */

    meshcoll_t *meshes;  /* the newest first */
    mc_family_t *family; /* NULL: no mesh was made but the first */

    /* allgather is NULL where all ranks are in one process */
    meshcoll_oob_t oob;
    void (*free_context)(void *context);

    mc_connections_t connections;
    mc_job_requests_t requests;
    mc_failure_t failure;
    struct mc_monitor *monitor; /* NULL: all ranks are in one process */

    const mc_job_hooks_t *hooks;
    struct mc_published *waits; /* what this rank waits for (diagnose/waits/requests.h) */
    struct mc_server *server;   /* tells meshcoll status; NULL: does not */
    bool can_ask;               /* what other ranks wait for: all have monitors */
    bool is_calibrating;        /* in calls that the program has not made: long waits are told */
    mc_notice_t notice;         /* of these */

    struct mc_threads *threads; /* NULL: one thread at a time, no lock */

    struct mc_talk *talk;                  /* where headers arrive; NULL: nobody listens yet */
    uint32_t (*move_messages)(mc_job_t *); /* after each poll; NULL: none so far */
    const mc_device_ops_t *device;
    struct mc_gpu_job *gpu; /* the device's; NULL: none was needed */
};

#endif
