/* Starting, waiting for and releasing requests of any kind, and those that are runs of plans: making, planning and
 * binding them. The caller holds the mesh's lock. */
#ifndef MC_CALL_REQUEST_H
#define MC_CALL_REQUEST_H

#include "runtime/handle/run.h"
#include "runtime/progress/callback.h"

/* Adds it to its mesh's list of all requests. */
void mc_request_enlist(meshcoll_t *h, meshcoll_request_t *r);
/* Starts a run. Where it fails, the request is still the caller's; a failure that is not the request's alone ends the
 * mesh. One that is released may be gone. */
int mc_request_start(meshcoll_request_t *r);
/* Is it running for this thread? In its own callback it is not. */
static inline bool mc_runs(meshcoll_request_t *r)
{
    return r->running && !((!r->mesh || r->mesh->n_restricted > 0) && mc_callback_leave(r));
}
/* Of public calls: is there a request, of a mesh that is there? And is it its caller's? One that serves a call is so
 * only until the call is complete. */
int mc_request_check(const meshcoll_request_t *r, const char *function);
int mc_request_check_owned(const meshcoll_request_t *r, const char *function);
/* Waits until it has ended; returns its status, with its text. */
int mc_request_await(meshcoll_request_t *r);
/* Waits until it has ended, and returns its status to its owner, who loses it unless it is persistent. */
int mc_request_complete(meshcoll_request_t *r);
/* Releases a request for its owner: at once, or when it has ended. */
void mc_request_drop(meshcoll_request_t *r);

/* Workspaces ------------------------------------------------------------------------------------ */

/* A workspace for the duration of a call; it grows on demand and is reused, first in, first out: a loop
 * that repeats the same calls gives each the workspace it had before, so that nothing is bound again.
 * NULL: out of memory. */
mc_workspace_t *mc_fresh_memory(void);
static inline mc_workspace_t *mc_take_memory(meshcoll_t *h)
{
    mc_workspace_t *const w = h->memory.first;
    if (!w)
        return mc_fresh_memory();
    h->memory.first = w->next;
    return w;
}
/* NULL is allowed. */
static inline void mc_return_memory(meshcoll_t *h, mc_workspace_t *workspace)
{
    if (!workspace)
        return;
    workspace->next = NULL;
    if (h->memory.first)
        h->memory.last->next = workspace;
    else
        h->memory.first = workspace;
    h->memory.last = workspace;
}

/* Before a handle is freed. */
void mc_free_memory(meshcoll_t *h);

/* Runs of plans --------------------------------------------------------------------------------- */

mc_operands_t mc_operands_of(const meshcoll_args_t *a);

/* Makes a run for a call that is chosen, with its number, but neither planned nor wired. */
int mc_run_make(meshcoll_t *h, const mc_request_kind_t *kind, const mc_call_t *call,
                mc_run_t **run);
/* Gives one that is not planned another strategy; the caller keeps the text of the last one. */
int mc_run_choose(mc_run_t *r, const mc_ranked_t *choice);
/* Plans and wires it for a call of at least one element; it is to be signed after that. */
int mc_run_plan(mc_run_t *r, const mc_call_t *call);
/* Takes its plan away, while it does not run; it keeps its digest. */
void mc_run_unplan(mc_run_t *r);
/* Binds it to the arguments of a call, in its own workspace or in one of the mesh's; does nothing where the last binding
 * still holds. `forwarded` as in mc_operands_t. */
int mc_run_bind(mc_run_t *r, const meshcoll_args_t *args, const mc_forwarded_t *forwarded);
/* Binds the same operands in other buffers, which overlap as the last ones do, in its present
 * workspace, which it has if it needs any. Not for a call with tables of counts or a scaled sum. */
int mc_run_move(mc_run_t *r, const void *in, void *out);

/* Of kinds of requests that are runs. */
#define MC_RUN \
    .is_run = true, .start = mc_run_begin, .advance = mc_run_advance, .cancel = mc_run_cancel
int mc_run_begin(meshcoll_request_t *r);
int mc_run_advance(meshcoll_request_t *r, uint32_t events);
void mc_run_cancel(meshcoll_request_t *r, int status);
/* Frees a run that has nothing in flight. */
void mc_run_destroy(meshcoll_request_t *r);

/* What ranks agree on while nobody waits for it: an allreduce by MAX, of the library's own, that is made once and runs
 * many times. It has memory of its own, so that requests of calls keep theirs. Its strategy depends on the mesh and its
 * links alone, and so is the same on all ranks. */
enum { MC_MAXIMA = 14, MC_TOLD_BYTES = (MC_MAXIMA - MC_LEAD_WORDS) * sizeof(int64_t) };
typedef struct {
    mc_run_t run; /* first */
    mc_list_node_t spare;
    uint32_t which; /* of those of its kind */
    /* Of the barrier of a lead: up to which call it settles; and the lead, which may outlive the request. */
    uint32_t settles;
    mc_lead_t *lead;
    int64_t words[MC_MAXIMA];
} mc_maxima_t;
#define MC_OF_MAXIMA                                                                  \
    .bytes = sizeof(mc_maxima_t), .is_internal = true, .waits = MC_WAIT_LEAD, MC_RUN, \
    .release = mc_maxima_release
void mc_maxima_release(meshcoll_request_t *r);
/* Takes a spare one for a kind of them, or makes one. */
int mc_maxima_take(meshcoll_t *h, const mc_request_kind_t *kind, mc_maxima_t **maxima);
/* Starts it with an operation number; it runs when *reached has come to `awaited`, and waits in `reaching`. */
int mc_maxima_start(mc_maxima_t *x, uint32_t number, const uint32_t *reached, uint32_t awaited,
                    mc_list_t *reaching);

/* Records the runs of a request into a timeline of its plan, from the next start on; NULL: stops. */
void mc_run_record(meshcoll_request_t *r, mc_timeline_t *timeline);

#endif
