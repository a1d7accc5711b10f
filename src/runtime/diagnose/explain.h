/*
 * A report of what ran on a mesh: which strategy each distinct call used and why, its predicted and
 * its measured time. Calls are distinguished by collective, exact bytes, root, strategy and who
 * chose it. Memory is allocated when requests are made and bound; a run only reads its timeline.
 */
#ifndef MC_DIAGNOSE_EXPLAIN_H
#define MC_DIAGNOSE_EXPLAIN_H

#include "runtime/handle/run.h"

/* Medians are over the last runs of a call; further calls are only counted. */
enum { MC_EXPLAINED_RUNS = 64, MC_EXPLAINED_CALLS = 512 };

typedef enum {
    MC_BY_PLANNER,
    MC_BY_CALL,        /* meshcoll_args_t.strategy */
    MC_BY_MESH,        /* meshcoll_set_strategy */
    MC_BY_ENVIRONMENT, /* MESHCOLL_STRATEGY_… */
    MC_BY_BARRIER,     /* the planner, whatever strategy is forced */
    MC_BY_COUNTS       /* the one that does without those of other ranks */
} mc_chooser_t;

typedef struct mc_record {
    meshcoll_collective_t collective;
    int32_t root;
    uint64_t bytes; /* of the whole vector */
    mc_strategy_t strategy;
    mc_chooser_t chooser;
    mc_on_gpu_t gpu;
    bool in_order; /* `in_order` and `aligned`: constraints of the choice, see choice.h */
    const mc_numbering_t *aligned;
    uint64_t n_runs;
    uint64_t n_untimed; /* further ones */
    double total;       /* seconds of all runs */
    double least;
    /* a ring of the last runs; each: seconds of the whole, of each phase, and of the final flush */
    double sample[];
} mc_record_t;

typedef struct mc_explain {
    char *path;    /* NULL: stderr */
    double factor; /* a ratio of predicted to measured time above which the report warns */
    char *links;   /* as given; NULL: the default */
    char *links_from;
    mc_record_t **call;
    uint32_t n_calls, capacity;
    uint64_t n_left_out; /* runs of calls beyond MC_EXPLAINED_CALLS */
} mc_explain_t;

/* The records of a request. */
typedef struct mc_watch {
    mc_timeline_t timeline;
    mc_record_t *call; /* NULL: there are too many calls */
} mc_watch_t;

/* Reads the setting. *explain stays unset where MESHCOLL_EXPLAIN is not given or says off;
 * ERR_PARSE, ERR_NO_MEMORY. */
int mc_explain_create(const mc_settings_t *settings, mc_explain_t **explain);
void mc_explain_destroy(mc_explain_t *explain);
/* The mesh has other links than its settings gave. ERR_NO_MEMORY. */
int mc_explain_links(const meshcoll_t *h, const char *links, const char *from);

/* The hooks of a mesh that records (hooks.h). */
int mc_explain_made(mc_run_t *r);
int mc_explain_bound(mc_run_t *r, const meshcoll_args_t *args);
void mc_explain_ran(mc_run_t *r);
void mc_explain_freed(mc_run_t *r);
int mc_explain_on_gpu(meshcoll_t *h, const meshcoll_args_t *args, const mc_strategy_t *strategy,
                      const mc_on_gpu_t *gpu, mc_record_t **call);
void mc_explain_took(const meshcoll_t *h, mc_record_t *call, double seconds);

/* Returns the number of doubles in a sample of a call. */
static inline uint32_t mc_call_width(const mc_record_t *call)
{
    return 2 + (uint32_t)call->strategy.n_phases;
}

/*
 * Computes the seconds of each phase of one run on this rank, from the start of its first step to
 * the end of its last one. A send starts when it is handed to the transport, local work when it
 * runs. A receive starts once it is posted and this rank has finished the earlier phases of the
 * segment. 0 for phases without steps here. Phases of several segments overlap and do not add up.
 * seconds[n_phases] is the time from the last step's end to the run's end, in which sends are
 * flushed.
 */
void mc_explain_phases(const mc_plan_t *plan, const mc_timeline_t *timeline, int32_t n_phases,
                       double *seconds);

/* Prints rank 0's report to the destination MESHCOLL_EXPLAIN names; other ranks do nothing. */
void mc_explain_print(const meshcoll_t *h);

#endif
