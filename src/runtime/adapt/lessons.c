#include "runtime/adapt/lessons.h"

#include <stdlib.h>

void mc_lessons_init(mc_lessons_t *t)
{
    *t = (mc_lessons_t){.until_look = MC_LOOK_FIRST};
}

void mc_lessons_free(mc_lessons_t *t)
{
    for (int32_t i = 0; i < t->n; i++)
        free(t->lesson[i]);
    mc_lessons_init(t);
}

mc_lesson_t *mc_lessons_find(const mc_lessons_t *t, const mc_choice_key_t *key)
{
    for (int32_t i = 0; i < t->n; i++)
        if (mc_choice_key_same(&t->lesson[i]->key, key))
            return t->lesson[i];
    return NULL;
}

/* Of those that are not settled; -1: all are. */
static int32_t find_oldest(const mc_lessons_t *t)
{
    int32_t oldest = -1;
    for (int32_t i = 0; i < t->n; i++) {
        const mc_lesson_t *const one = t->lesson[i];
        if (one->learner.phase != MC_LEARN_SETTLED &&
            (oldest < 0 || t->n_counted - one->last > t->n_counted - t->lesson[oldest]->last))
            oldest = i;
    }
    return oldest;
}

mc_lesson_t *mc_lessons_add(mc_lessons_t *t, const mc_choice_key_t *key, const mc_ranked_t *first,
                            int64_t ns, int *status)
{
    const int32_t at = t->n < MC_LESSONS ? t->n : find_oldest(t);
    *status = MESHCOLL_OK;
    if (at < 0)
        return NULL;
    mc_lesson_t *const lesson = at < t->n ? t->lesson[at] : malloc(sizeof *lesson);
    if (!lesson) {
        *status = mc_fail_memory("what calls learn");
        return NULL;
    }
    *lesson = (mc_lesson_t){.key = *key,
                            .learner = mc_learner(first, ns),
                            .last = ++t->n_counted,
                            .timed.number = UINT32_MAX};
    t->lesson[at] = lesson;
    t->n += at == t->n;
    return lesson;
}

/* No call has come since it began to look. */
static bool is_idle(const mc_learner_t *l)
{
    return l->phase == MC_LEARN_TURNS && l->calls == 0 &&
           (l->round == MC_TRIAL_LOOK || l->round == MC_TRIAL_FIRST);
}

void mc_lessons_look(mc_lessons_t *t)
{
    int32_t n = 0;
    for (int32_t i = 0; i < t->n; i++) {
        mc_lesson_t *const lesson = t->lesson[i];
        if (is_idle(&lesson->learner)) {
            free(lesson);
            continue;
        }
        mc_learner_look(&lesson->learner);
        t->lesson[n++] = lesson;
    }
    t->n = n;
}
