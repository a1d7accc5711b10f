/*
 * What has run on a mesh, for people: which strategy each distinct call took and why, what was
 * predicted, and what it took. Calls are told apart by collective, exact bytes, root, strategy and
 * who chose it. Memory is taken when requests are made and bound; a run only reads its timeline.
 */
#ifndef MC_RUNTIME_EXPLAIN_H
#define MC_RUNTIME_EXPLAIN_H

#include "runtime/handle/request.h"

/* Medians are those of a call's last so many runs. */
enum { MC_EXPLAINED_RUNS = 64, MC_EXPLAINED_CALLS = 512 };

typedef enum {
    MC_BY_PLANNER,
    MC_BY_CALL,        /* meshcoll_args_t.strategy */
    MC_BY_MESH,        /* meshcoll_set_strategy */
    MC_BY_ENVIRONMENT, /* MESHCOLL_STRATEGY_… */
    MC_BY_BARRIER      /* the planner's, whatever is forced */
} mc_chooser_t;

typedef struct {
    meshcoll_collective_t collective;
    int32_t root;
    uint64_t bytes; /* of the whole vector */
    mc_strategy_t strategy;
    mc_chooser_t chooser;
    bool in_order; /* and `aligned`, as it was chosen: choice.h */
    const mc_numbering_t *aligned;
    uint64_t n_runs;
    double total; /* seconds of all runs */
    double least;
    /* the last runs, in a ring; each: seconds of the whole, of each phase, of the flush at the end */
    double sample[];
} mc_call_t;

typedef struct mc_explain {
    char *path;    /* NULL: stderr */
    double factor; /* between predicted and measured, from which on is warned */
    char *links;   /* as they were given; NULL: the default */
    char *links_from;
    mc_call_t **call;
    uint32_t n_calls, capacity;
    uint64_t n_left_out; /* runs of calls beyond MC_EXPLAINED_CALLS */
} mc_explain_t;

/* Of a request. */
typedef struct mc_watch {
    mc_timeline_t timeline;
    mc_call_t *call; /* NULL: there were too many */
    bool forced;     /* by its own arguments */
} mc_watch_t;

/* NULL where MESHCOLL_EXPLAIN is not given or says off; ERR_PARSE with the grammar. */
int mc_explain_create(const mc_settings_t *settings, mc_explain_t **explain);
void mc_explain_destroy(mc_explain_t *explain);

/* A request with a plan and an executor, of a mesh that explains; `strategy` of its arguments. */
int mc_explain_watch(meshcoll_request_t *r, const char *strategy);
void mc_explain_forget(mc_watch_t *watch);
/* Before each binding for a call: whether its arguments force a strategy. */
void mc_explain_forced(meshcoll_request_t *r, const char *strategy);
/* After each binding: which call it is now. */
int mc_explain_bound(meshcoll_request_t *r);
/* After each run that went well. */
void mc_explain_ran(meshcoll_request_t *r);

/* How many doubles a run of a call has. */
static inline uint32_t mc_call_width(const mc_call_t *call)
{
    return 2 + (uint32_t)call->strategy.n_phases;
}

/*
 * Seconds of each phase of one run: from where its first step begins to where its last one ends, on
 * this rank. A send begins when it is handed to the transport, local work when it runs, and a receive
 * when it is posted and this rank is through with the earlier phases of the segment. 0 for phases
 * without steps here. Phases of several segments overlap and do not add up. Behind them, in
 * seconds[n_phases]: from the last step's end to the run's, in which what was sent leaves.
 */
void mc_explain_phases(const mc_plan_t *plan, const mc_timeline_t *timeline, int32_t n_phases,
                       double *seconds);

/* The report; the caller's to free. */
int mc_explain_text(const meshcoll_t *h, char **text);
/* Rank 0's report, to where MESHCOLL_EXPLAIN says. */
void mc_explain_print(const meshcoll_t *h);

#endif
