/*
 * What calls of one kind learn: which of a few strategies is the fastest where they run (after STAR-MPI: Faraj, Yuan and
 * Lowenthal, A Study of Process Arrival Patterns, 2006). It knows no ranks, clocks or messages.
 *
 * The first calls take the planner's choice, and nothing disturbs them. The next ones are timed. If all ranks could time
 * some of them, the candidates take turns then, each for some calls in a row, of which the first is not timed, as it
 * makes the plan and finds the connections of the one before busy. The ranks combine what they timed, which takes some
 * calls more, and at a call that is the same on all ranks the slow ones drop out; the rest take longer turns, and the
 * fastest is used from then on. A later look compares it with one other that was not far slower, for longer if it seems
 * faster, and starts anew where its own time has changed.
 *
 * Times that a GPU takes come late: the agreement is repeated, up to some times, until all ranks have told a time of each.
 *
 * All that a learner does follows from how many calls there were and from what ranks combined, so it does the same on
 * all ranks. Only the times that a rank has noted are its own. It is asked at some calls, and tells at which one next:
 * those between do as the last one asked.
 *
 * A time is that of one rank, from the start of a call there to its end there. In a call without a root what counts is
 * the median of the rank where it is least: that of the one that arrives last, which waits for no other. In a call with
 * a root some ranks only send and leave, and may be several calls ahead: there it is the mean of the rank where it is
 * most, as such a rank goes at the pace of all.
 */
#ifndef MC_RUNTIME_LEARNER_H
#define MC_RUNTIME_LEARNER_H

#include "compose/planner/planner.h"

enum {
    MC_CANDIDATES = 6,
    MC_LEARN_QUIET = 32, /* first calls */
    MC_LEARN_SHORT = 3,  /* calls of a turn */
    MC_LEARN_LONG = 8, /* where few take turns: before any trial, and when the slow ones are out */
    MC_LEARN_FEW = 3,  /* so many */
    MC_LEARN_AGREEING = 16, /* calls from the start of an agreement until its result is used */
    /* calls from when it has settled until it looks first, and from one look to the next, twice as many each time, at
     * most */
    MC_LOOK_FIRST = 512,
    MC_LOOK_SELDOM = 8192,
    MC_LEARN_WORDS = 2 * MC_CANDIDATES /* what ranks combine, by MAX */
};

typedef enum {
    MC_LEARN_QUIET_CALLS, /* the first call is to come */
    MC_LEARN_TURNS,       /* candidates take turns */
    MC_LEARN_AGREES,      /* ranks combine their times */
    MC_LEARN_WANTS,       /* candidates are to be offered */
    MC_LEARN_SETTLED,     /* the fastest is used */
    MC_LEARN_PHASES
} mc_learn_phase_t;

/* FIRST: the planner's choice alone. LOOK: the one in use and one other. */
typedef enum { MC_TRIAL_FIRST, MC_TRIAL_ALL, MC_TRIAL_FEW, MC_TRIAL_LOOK, MC_TRIALS } mc_trial_t;

typedef struct {
    mc_learn_phase_t phase;
    mc_trial_t round;
    uint32_t calls;      /* of turns: seen in this round; settled: until the look */
    uint32_t until_look; /* when it settles */
    bool is_late;        /* times may come when a round is over: the agreement is repeated then, */
    uint32_t agreeing;   /* and takes twice as many calls each time */
    int32_t n, best;     /* candidates, the planner's first; which is used */
    mc_ranked_t candidate[MC_CANDIDATES]; /* with what the links predict */
    int64_t took[MC_CANDIDATES];          /* ns; 0: not known */
    int32_t n_turns, turn[MC_CANDIDATES]; /* who takes turns in this round */
    int32_t other;                        /* whom the last look compared */
    /* This rank's own, of this round. */
    int32_t n_times[MC_CANDIDATES];
    int64_t time[MC_CANDIDATES][MC_LEARN_LONG];
} mc_learner_t;

/* `ns`: an earlier job has found it the fastest, and that it takes so long; 0: none has. */
mc_learner_t mc_learner(const mc_ranked_t *first, int64_t ns);

/* Before the next call of one that WANTS: `n` candidates, of which those that it knows, and those for which there is no
 * room, are left out. */
void mc_learner_offer(mc_learner_t *l, const mc_ranked_t *candidate, int32_t n);
/* Must the next call at which it is asked wait for an agreement? */
static inline bool mc_learner_waits(const mc_learner_t *l)
{
    return l->phase == MC_LEARN_AGREES;
}

/* What the call does at which it is asked. */
typedef struct {
    int32_t candidate;
    bool timed;     /* this call alone */
    bool agrees;    /* before it starts, this rank begins the agreement */
    uint32_t calls; /* it is asked next so many calls later */
} mc_learn_turn_t;
mc_learn_turn_t mc_learner_next(mc_learner_t *l);
/* Will it be a timed call of the same candidate as the call before? */
bool mc_learner_repeats(const mc_learner_t *l);

/* A timed call of this round took so long; what is not positive is left out, as of a clock that was set. */
void mc_learner_note(mc_learner_t *l, int32_t candidate, int64_t ns);
/* What this rank tells, and what follows from the maximum of each word. */
void mc_learner_tell(const mc_learner_t *l, int64_t words[MC_LEARN_WORDS]);
void mc_learner_agree(mc_learner_t *l, const int64_t words[MC_LEARN_WORDS]);

/* A line for each candidate: what is predicted, what was measured, and what is used. */
void mc_learner_print(const mc_learner_t *l, const mc_mesh_t *mesh, mc_text_t *text);

#endif
