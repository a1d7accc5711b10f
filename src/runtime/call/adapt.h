/*
 * Calls that learn (adapt/lessons.h): who takes part, the clock, and what ranks combine.
 *
 * A call that finds its request bound counts in its learner (`left` in cache.h), and asks it only where that is due:
 * requests are bound to one candidate, and unbound where another one is used next. Any other call counts too, whether it
 * is blocking, nonblocking or of a group, so that ranks may differ in that. Not those that have a strategy of their own,
 * or whose strategy is forced; nor persistent requests and calls on device memory, which take the planner's choice.
 *
 * Ranks agree by an allreduce of maxima that nobody waits for: it begins at the same call on all ranks, and its result is
 * used from a later call on, the same on all ranks too. Should it not be complete by then, a blocking call waits for
 * it. A nonblocking one must not, as other ranks may wait for what its caller does next: it is deferred, and makes its
 * plan when the agreement is complete. Calls that learn after it follow it, and find none bound, so that learners see
 * all calls in their order.
 *
 * An agreement runs when the one before it is complete, so that all share one operation number.
 */
#ifndef MC_CALL_ADAPT_H
#define MC_CALL_ADAPT_H

#include "runtime/adapt/known.h"
#include "runtime/call/cache.h"
#include "runtime/call/call.h"

typedef struct mc_adapt {
    mc_lessons_t lessons;
    mc_known_list_t known; /* from an earlier job */
    uint32_t begun, done;  /* agreements */
    uint32_t n_awaited;    /* blocking calls that wait for one */
    mc_list_t pending;     /* agreements that wait for the one before them */
    mc_list_t deferred;    /* calls, in their order */
    bool serves_deferred;  /* an agreement that one of them begins may be complete at once */
    bool has_told;         /* that links are off */
    struct {
        const meshcoll_request_t *request; /* of the call that is timed; NULL: none is */
        mc_lesson_t *lesson;
        int32_t candidate;
        /* When it started, when its start returned, and when the caller began to wait for it; 0: not yet. */
        double started, left, awaited;
        bool blocks;
    } timed;
} mc_adapt_t;

/* `mode`: that of MESHCOLL_ADAPT, NULL where it is not set. */
int mc_adapt_open(meshcoll_t *h, const char *mode);
void mc_adapt_free(meshcoll_t *h);
/* Have links become slower? The longest calls take far longer than predicted, and are off by more than all shorter ones:
 * where ranks arrive late, or other work runs, short calls are off most. */
bool mc_adapt_is_slow(const meshcoll_t *h);
/* What its calls have learned, to be kept for the next job: the text of adapt/known.h, empty where they learn nothing.
 * It is the same on all ranks after the same calls. */
void mc_adapt_save(const meshcoll_t *h, mc_text_t *text);
/* Takes it in, once, before the first call: the same text on all ranks. Does nothing where calls do not learn. On an
 * error, as of a text of other extents, it takes in nothing. */
int mc_adapt_load(meshcoll_t *h, const char *text);
/* The strategy that is known for a call that does not learn itself, as of a persistent request; `choice` stays as it is
 * where there is none. */
void mc_adapt_recall(const meshcoll_t *h, const mc_choice_key_t *key, mc_ranked_t *choice);

/* Chooses for a call that has its number and no request yet. One that is timed is to be passed to mc_adapt_time, and one
 * that is deferred to mc_adapt_defer. */
int mc_adapt_choose(meshcoll_t *h, mc_call_t *call);
/* The call that is served by c, and about to start, is timed. */
void mc_adapt_time(mc_cached_t *c, bool blocks);
/* Makes a request that plans, and starts, when it is known how. It is held as one whose calls are compared. */
int mc_adapt_defer(meshcoll_t *h, const mc_call_t *call, mc_run_t **run);
/* One that is bound to c has counted to 0. Returns c, timed, if it stays so; NULL: it chooses anew. */
mc_cached_t *mc_adapt_bound(meshcoll_t *h, mc_cached_t *c, bool blocks);
/* What was learned: for each key with candidates a line, and one for each of them. */
void mc_adapt_print(const meshcoll_t *h, mc_text_t *text);
/* Is it an agreement that no call waits for? */
bool mc_adapt_is_unawaited(const meshcoll_request_t *r);

#endif
