/*
 * The learners of a mesh, by the keys of its calls. Ranks have the same learners in the same states, as all that
 * happens to them follows from the sequence of calls: a learner comes with the first call of its key that finds room,
 * and counts all calls of the key. Calls that find no room are counted together, and after so many of them those
 * learners go that no call has come to meanwhile.
 */
#ifndef MC_RUNTIME_LESSONS_H
#define MC_RUNTIME_LESSONS_H

#include "runtime/adapt/learner.h"
#include "runtime/choose/choice.h"

/* LESSONS: of a mesh. OTHERS: calls without one until the idle ones go. */
enum { MC_LESSONS = 64, MC_LESSONS_OTHERS = 64 };

typedef struct {
    uint64_t left;      /* calls until the learner is asked; bound requests count it down */
    uint64_t asked_for; /* calls that it was asked for, of which `left` are to come */
    uint64_t seen;      /* of those that came, at the last sweep */
    int32_t candidate;  /* of the last call */
    uint32_t agreement; /* the number of the agreement that it began last, from 1 on */
    bool has_words;     /* of that one */
    int64_t words[MC_LEARN_WORDS];
    bool links_off; /* its calls took more than twice, or less than half, of what links predict */
    mc_choice_key_t key;
    mc_learner_t learner;
} mc_lesson_t;

typedef struct {
    mc_lesson_t *lesson[MC_LESSONS];
    int32_t n;
    uint64_t others; /* calls without a lesson until the next sweep */
} mc_lessons_t;

void mc_lessons_init(mc_lessons_t *t);
void mc_lessons_free(mc_lessons_t *t);

/* A fresh one; `ns` as of mc_learner. */
mc_lesson_t mc_lesson(const mc_choice_key_t *key, const mc_ranked_t *first, int64_t ns);
/* NULL: there is none. */
mc_lesson_t *mc_lessons_find(const mc_lessons_t *t, const mc_choice_key_t *key);
/* Adds a fresh one. NULL: there is no room, or no memory, which is an error: `status`. */
mc_lesson_t *mc_lessons_add(mc_lessons_t *t, const mc_choice_key_t *key, const mc_ranked_t *first,
                            int64_t ns, int *status);
/* A copy of one that has a time, in place of one of its key, if there is room. */
void mc_lessons_keep(mc_lessons_t *t, const mc_lesson_t *lesson);
/* Adds one itself, if there is room: in place of one of its key without a time, or if there is none. */
void mc_lessons_show(mc_lessons_t *t, mc_lesson_t *lesson);
/* Those that no call has come to since the last time go. Returns whether any has. */
bool mc_lessons_sweep(mc_lessons_t *t);

#endif
