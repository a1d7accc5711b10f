/*
 * A request: a head, which is what lists, progress and the public calls know of it, and a kind behind it: a run of a
 * plan (run.h), a tagged message (message/transfer.h), the greeter of connections, the end of a job. What kinds differ
 * in is one constant table each.
 */
#ifndef MC_HANDLE_REQUEST_H
#define MC_HANDLE_REQUEST_H

#include "runtime/handle/handle.h"
#include "runtime/handle/wait.h"

/* What looks at a running request have seen (diagnose/waits/requests.h); times in ms. */
typedef struct {
    int64_t limit;     /* of a run; 0: the mesh's; negative: none */
    int64_t looked;    /* at the last look; 0: none yet in this run */
    int64_t moved;     /* at its last progress */
    int64_t waited;    /* for so long so far */
    uint64_t mark;     /* see mc_wait_mark */
    int32_t n_differs; /* of which another rank was in another call (diagnose/differ.h) */
} mc_watched_t;

/* The caller's (progress/callback.h). */
typedef struct {
    meshcoll_callback_t function; /* when a run has ended; NULL: none */
    void *context;
    meshcoll_request_t *next; /* whose callback is due after its own */
} mc_callback_t;

/* NULL: nothing to do. Where a run fails alone, `why` is set; else its failure is the mesh's. */
typedef struct {
    size_t bytes;         /* that mc_run_make allocates for one; of runs */
    bool is_internal;     /* runs for the library, and belongs to nobody */
    bool is_run;          /* begins with mc_run_t */
    bool blocks;          /* its start does */
    mc_wait_kind_t waits; /* of runs */

    /* Starts a run; OK: it has ended. */
    int (*start)(meshcoll_request_t *r);
    /* Progresses a run, at polls for which it is ready. `events`: of this poll so far. NULL: what completes it sets
     * its status. */
    int (*advance)(meshcoll_request_t *r, uint32_t events);
    /* The mesh has failed: nothing of the run may start any more. */
    void (*cancel)(meshcoll_request_t *r, int status);
    /* A run has ended, with r->status; before anybody learns of it. Returns its status from here on. The mesh is NULL
     * where it is being closed. */
    int (*finish)(meshcoll_request_t *r);
    /* What it waits for; `peer` is a rank of the mesh there. Of what is no run; NULL: for nothing of its own. */
    void (*describe)(const meshcoll_request_t *r, mc_wait_t *wait);
    void (*awaited)(meshcoll_request_t *r); /* the caller begins to wait for a run */
    void (*release)(meshcoll_request_t *r); /* nobody waits for it any more */
} mc_request_kind_t;

struct meshcoll_request {
    const mc_request_kind_t *kind;
    meshcoll_t *mesh;         /* NULL once the mesh is destroyed */
    mc_list_node_t of_mesh;   /* in the mesh's list of all requests */
    mc_list_node_t in_flight; /* in its job's list of running requests */
    /* In its job's list of those to advance, or in one of those that wait. What has ended at once may still be
     * in it. */
    mc_ready_t ready;
    uint32_t number; /* operation number of the next run, the same on all ranks */
    int status;      /* of the last run */
    const char *why; /* text of an error of this request alone; NULL: its errors end the mesh */
    bool persistent; /* made by meshcoll_init; else it serves calls, see numbers.h */
    bool taken;      /* serves a call at present */
    bool running;    /* until its owner may learn that the run has ended */
    bool active;     /* started, and its completion was not returned to the caller yet */
    bool released;   /* released by its owner, but kept because transports may still write to it */
    mc_callback_t callback;
    mc_watched_t watched;
};

static inline meshcoll_request_t *mc_request_in_flight(const mc_list_node_t *n)
{
    return n ? (meshcoll_request_t *)((char *)n - offsetof(meshcoll_request_t, in_flight)) : NULL;
}
static inline meshcoll_request_t *mc_request_next(const meshcoll_request_t *r)
{
    return mc_request_in_flight(r->in_flight.next);
}
static inline meshcoll_request_t *mc_request_ready(const mc_list_node_t *n)
{
    return n ? (meshcoll_request_t *)((char *)n - offsetof(meshcoll_request_t, ready)) : NULL;
}

static inline meshcoll_request_t *mc_request_of_mesh(const mc_list_node_t *n)
{
    return n ? (meshcoll_request_t *)((char *)n - offsetof(meshcoll_request_t, of_mesh)) : NULL;
}

#endif
