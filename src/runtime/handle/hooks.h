/*
 * What watches calls that do not know of it (runtime/diagnose): waits with their time limits, MESHCOLL_CHECK and
 * MESHCOLL_EXPLAIN. A job has the table of the first, a mesh that of the others, with NULL where nothing is asked
 * for. The rooms below reach it by these tables only.
 */
#ifndef MC_HANDLE_HOOKS_H
#define MC_HANDLE_HOOKS_H

#include "compose/strategy/strategy.h"

struct mc_call;
struct mc_job;
struct mc_record;
struct mc_run;

/* How a call on device memory runs; all 0: on host memory. */
typedef struct {
    uint32_t blocks, tracks, slots, slot_bytes, passes; /* slots: of each peer and block */
    uint32_t by_gpu, by_host; /* peers whose messages lie in GPUs' memory, in the host's */
    const char *why_host; /* of those on other machines: "…, as WHY"; static; NULL: none is there */
    uint32_t sent, direct; /* messages of a pass; of these go straight to registered memory */
} mc_on_gpu_t;

/* Of a mesh. The caller holds its lock. NULL: nothing is to be done. */
typedef struct {
    /* Of plans. `made` may leave something in r->watch; then each binding for a call is followed by `bound`, and each
     * successful run by `ran`. `freed`: the request or the mesh goes. */
    int (*made)(struct mc_run *r);
    int (*bound)(struct mc_run *r, const meshcoll_args_t *args);
    void (*ran)(struct mc_run *r);
    void (*freed)(struct mc_run *r);

    /* Calls on device memory: finds the record of one, NULL where there are too many; and a run of it took so long,
     * negative: unknown. */
    int (*on_gpu)(meshcoll_t *h, const meshcoll_args_t *args, const mc_strategy_t *strategy,
                  const mc_on_gpu_t *gpu, struct mc_record **record);
    void (*took)(const meshcoll_t *h, struct mc_record *record, double seconds);

    /* Compares a call with those of the other ranks, by an operation with its number for that (0: not this one). Its
     * request `r` is held until that has ended; NULL: this rank waits for it. ERR_MISMATCH. */
    int (*compare)(meshcoll_t *h, const struct mc_call *call, struct mc_run *r);
    /* A call was refused with `status` and the thread's last error: both are left. */
    int (*refused)(meshcoll_t *h, const struct mc_call *call, int status);
    /* Compares a group at its end, before any of its calls starts, by an operation with that number. So many calls were
     * made in it; `why`: the first of those that were refused; NULL: none was. */
    int (*compare_group)(meshcoll_t *h, uint32_t number, uint32_t n_made, const char *why);
} mc_hooks_t;

static const mc_hooks_t mc_no_hooks = {0};

/* What ends of a new connection tell each other of the calls for which they connect. */
enum { MC_GREETING_BYTES = 200 };
typedef struct {
    uint64_t at[MC_GREETING_BYTES / sizeof(uint64_t)];
} mc_greeting_note_t;

/* Of a job. */
typedef struct {
    /* While it waits, some times a second: has another rank made another call? Has a request run for too long? */
    int (*differs)(struct mc_job *job);
    int (*watches)(struct mc_job *job, int64_t now_ms);
    /* A request has ended that was seen running; the job has failed. */
    void (*ended)(const meshcoll_request_t *r);
    void (*broke)(const struct mc_job *job);
    void (*introduces)(const meshcoll_t *h, mc_greeting_note_t *note);
    /* OK, or ERR_MISMATCH; `peer` is a rank of the job. */
    int (*meets)(const struct mc_job *job, int32_t peer, const mc_greeting_note_t *own,
                 const mc_greeting_note_t *theirs);
} mc_job_hooks_t;

#endif
