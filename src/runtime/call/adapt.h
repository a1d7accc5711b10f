/*
 * Calls that learn (adapt/lessons.h): who takes part, the clock, and what ranks combine.
 *
 * A call that finds its request bound knows nothing of this: it is bound only once its learner has settled, and looks
 * begin with calls of certain numbers. Any other call asks its learner, whether it is blocking, nonblocking or of a
 * group, so that ranks may differ in that. Not those that have tables of counts or a strategy of their own, or
 * whose strategy is forced; nor users' operations, persistent requests and calls on device memory, which take the
 * planner's choice.
 *
 * Ranks agree by the sums of what they timed: an allreduce that nobody waits for, begun at the same call on all ranks,
 * and used from a later call on, the same on all ranks too. Should it not be complete by then, a blocking call waits for
 * it. A nonblocking one must not, as other ranks may wait for what its caller does next: it is deferred, and makes its
 * plan when the agreement is complete. Calls that learn after it follow it, so that learners see all calls in their
 * order.
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
    mc_list_t spare;       /* that run no more */
    mc_list_t deferred;    /* calls, in their order */
} mc_adapt_t;

/* `mode`: that of MESHCOLL_ADAPT, NULL where it is not set. */
int mc_adapt_open(meshcoll_t *h, const char *mode);
void mc_adapt_free(meshcoll_t *h);
/* What its calls have learned, to be kept for the next job: the text of adapt/known.h, empty where they learn nothing.
 * It is the same on all ranks after the same calls. */
void mc_adapt_save(const meshcoll_t *h, mc_text_t *text);
/* Takes it in, before the first call: the same text on all ranks. Does nothing where calls do not learn. On an error, as
 * of a text of other extents, it takes in nothing. */
int mc_adapt_load(meshcoll_t *h, const char *text);
/* The strategy that is known for a call that does not learn itself, as of a persistent request; `choice` stays as it is
 * where there is none. */
void mc_adapt_recall(const meshcoll_t *h, const mc_choice_key_t *key, mc_ranked_t *choice);

/* DEFERRED: by mc_adapt_defer, as it must not wait. TIMED: by mc_adapt_time. */
typedef enum { MC_ADAPT_CHOSEN, MC_ADAPT_TIMED, MC_ADAPT_DEFERRED } mc_adapted_t;
/* Chooses for a call that has its number and no request yet. `e` has its key. */
int mc_adapt_choose(meshcoll_t *h, const mc_call_args_t *asked, mc_choice_entry_t *e,
                    mc_adapted_t *adapted);
/* The call that is served by c, and about to start, is timed. */
void mc_adapt_time(mc_cached_t *c, bool blocks);
/* Makes a request that plans, and starts, when it is known how. It is held as one whose calls are compared. */
int mc_adapt_defer(meshcoll_t *h, const mc_call_args_t *asked, mc_run_t **run);
/* May calls of this key find their request bound, from now on? */
bool mc_adapt_settled(const meshcoll_t *h, const mc_choice_key_t *key);
/* After a call has its choice, bound ones too: is a look due with the call of that number? */
static inline bool mc_adapt_is_due(const meshcoll_t *h, uint32_t number)
{
    enum { SHIFT = 33 - MC_TAG_OPERATION_BITS }; /* numbers wrap */
    return (int32_t)((number - h->calls.look_at) << SHIFT) >= 0;
}
void mc_adapt_look(meshcoll_t *h, uint32_t number);
/* What was learned: for each key with candidates a line, and one for each of them. */
void mc_adapt_print(const meshcoll_t *h, mc_text_t *text);
/* Is it an agreement that no call waits for? */
bool mc_adapt_is_unawaited(const meshcoll_request_t *r);

#endif
