/*
 * The learners of a mesh, by the keys of its calls. Ranks have the same learners in the same states, as all that
 * happens to them follows from the sequence of calls: a learner comes with the first call of its key that takes a
 * number; counts calls while it is not settled; and goes where there is no room for a new one, the one that has not
 * counted a call for longest. One that is settled stays, because ranks that find its calls bound (call/cache.h) do not
 * ask for it, and others do; those that no call has come back to since the last look go at the next one.
 */
#ifndef MC_RUNTIME_LESSONS_H
#define MC_RUNTIME_LESSONS_H

#include "runtime/adapt/learner.h"
#include "runtime/choose/choice.h"

/* LESSONS: of a mesh. LOOK: calls of the mesh until the first look; from one to the next twice as many, at most
 * SELDOM. */
enum { MC_LESSONS = 64, MC_LOOK_FIRST = 512, MC_LOOK_SELDOM = 8192 };

typedef struct {
    mc_choice_key_t key;
    mc_learner_t learner;
    uint32_t last;      /* when it counted a call last, in such calls of all */
    uint32_t agreement; /* the number of the agreement that it began last, from 1 on */
    bool has_sums;      /* of that one */
    int64_t sums[MC_LEARN_WORDS];
    struct {
        uint32_t number; /* of the call that is timed; UINT32_MAX: none is */
        int32_t candidate;
        /* When it started, when its start returned, and when the caller began to wait for it; 0: not yet. */
        double started, left, awaited;
        bool blocks;
    } timed;
} mc_lesson_t;

typedef struct {
    mc_lesson_t *lesson[MC_LESSONS];
    int32_t n;
    uint32_t n_counted;  /* calls that learners have counted */
    uint32_t until_look; /* calls of the mesh from the last look to the next */
} mc_lessons_t;

void mc_lessons_init(mc_lessons_t *t);
void mc_lessons_free(mc_lessons_t *t);

/* NULL: there is none. */
mc_lesson_t *mc_lessons_find(const mc_lessons_t *t, const mc_choice_key_t *key);
/* Adds one; `ns` as of mc_learner. NULL: all are settled, or there is no memory, which is an error: `status`. */
mc_lesson_t *mc_lessons_add(mc_lessons_t *t, const mc_choice_key_t *key, const mc_ranked_t *first,
                            int64_t ns, int *status);
/* Those that are settled begin a look, and those that no call has come back to since the last one go. */
void mc_lessons_look(mc_lessons_t *t);

#endif
