/*
 * Calls that learn (adapt/lessons.h): who takes part, the clock, and what ranks combine.
 *
 * A call that finds its request bound counts in its learner (`left` in cache.h), and asks it only where that is due:
 * requests are bound to one candidate, and unbound where another one is used next. Any other call counts too, whether it
 * is blocking, nonblocking or of a group, so that ranks may differ in that. Not those that have a strategy of their own,
 * or whose strategy is forced.
 *
 * Ranks agree by an allreduce of maxima that nobody waits for: it begins at the same call on all ranks, and its result is
 * used from a later call on, the same on all ranks too. Should it not be complete by then, this call is deferred, with
 * the plan that it will most likely have: it must not wait, as other ranks may wait for what its caller does next. Calls
 * that learn after it, as those that callbacks begin, follow it, and find none bound, so that learners see all calls in
 * their order. One on device memory waits in its place among them.
 *
 * An agreement runs when the one before it is complete, so that all share one operation number.
 *
 * Calls on device memory have lessons of their own. A GPU times them, and their times come when their streams are there,
 * so ranks tell them until all have come. Candidates are those that every rank can run with the memory that its calls
 * have taken so far. What is captured or persistent uses what was learned, and does not count.
 *
 * Persistent requests may be started in any order, so each learns for itself, by the number of its starts (start.c). Its
 * agreements are barriers of its lead, each at the start that begins an epoch for it. A start that must wait for one is
 * deferred alone.
 */
#ifndef MC_CALL_ADAPT_H
#define MC_CALL_ADAPT_H

#include "runtime/adapt/known.h"
#include "runtime/call/args.h"
#include "runtime/call/cache.h"
#include "runtime/call/call.h"

/* What a persistent request learns. */
typedef struct mc_study {
    mc_lesson_t lesson; /* `left` lies in the request; its words are its lead's too */
    mc_kept_call_t kept;
    char *text[MC_CANDIDATES]; /* of those that it has used; the request's is one of them */
    mc_list_node_t node;
} mc_study_t;

/* That of a lead with words. */
static inline mc_study_t *mc_study_of(const mc_lead_t *lead)
{
    return (mc_study_t *)((char *)lead->words - offsetof(mc_study_t, lesson.words));
}

typedef struct mc_adapt {
    mc_lessons_t lessons;
    mc_list_t studies;
    mc_lessons_t past;     /* of persistent requests that are freed, of each key the last */
    mc_known_list_t known; /* from an earlier job */
    uint32_t begun, done;  /* agreements */
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
/* Do calls of this key learn? By what is the same on all ranks. */
bool mc_adapt_learns(const meshcoll_t *h, const mc_choice_key_t *key);
/* `choice` is the planner's: puts the strategy there that an earlier job has found the fastest, and returns how many ns
 * it took. 0: there is none, or another version's, whose planner chose another order of sums; `choice` stays. */
int64_t mc_adapt_recall(const meshcoll_t *h, const mc_choice_key_t *key, mc_ranked_t *choice);
/* The turn of the next call of a lesson, which has the words that it waits for. */
int mc_adapt_ask(meshcoll_t *h, mc_lesson_t *lesson, mc_learn_turn_t *turn);

/* Chooses for a call that has its number and no request yet. One that is timed is to be passed to mc_adapt_time, and one
 * that is deferred to mc_adapt_defer. One on device memory is counted before, as it may wait. */
int mc_adapt_choose(meshcoll_t *h, mc_call_t *call);
/* The call that is served by c, and about to start, is timed; or the run of a request, of that kind then. */
void mc_adapt_time(mc_cached_t *c, bool blocks);
void mc_adapt_time_as(mc_run_t *r, const mc_request_kind_t *kind, bool blocks);
#define MC_TIMED                                                                                 \
    .is_run = true, .start = mc_timed_begin, .advance = mc_run_advance, .cancel = mc_run_cancel, \
    .finish = mc_timed_end, .awaited = mc_timed_await
int mc_timed_begin(meshcoll_request_t *r);
int mc_timed_end(meshcoll_request_t *r);
void mc_timed_await(meshcoll_request_t *r);
/* Of a call that is timed on a GPU: what it took there; less than 0: it is not known. */
void mc_adapt_note(const meshcoll_t *h, const mc_choice_key_t *key, int32_t candidate,
                   double seconds);
/* Its request is freed. */
void mc_adapt_leave(meshcoll_t *h, mc_study_t *study);
/* Takes a request that starts, planned anew if need be, when it is known how. It is held as one whose calls are
 * compared. */
int mc_adapt_defer(meshcoll_t *h, const mc_call_t *call, mc_cached_t **request);
/* One that is bound to c has counted to 0. Returns c, timed, if it stays so; NULL: it chooses anew. */
mc_cached_t *mc_adapt_bound(meshcoll_t *h, mc_cached_t *c, bool blocks);
/* What was learned: for each key with candidates a line, and one for each of them. */
void mc_adapt_print(const meshcoll_t *h, mc_text_t *text);
/* Is it an agreement that no call waits for? */
bool mc_adapt_is_unawaited(const meshcoll_request_t *r);

#endif
