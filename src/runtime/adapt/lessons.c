#include "runtime/adapt/lessons.h"

#include <stdlib.h>

void mc_lessons_init(mc_lessons_t *t)
{
    *t = (mc_lessons_t){.others = MC_LESSONS_OTHERS};
}

void mc_lessons_free(mc_lessons_t *t)
{
    for (int32_t i = 0; i < t->n; i++)
        free(t->lesson[i]);
    mc_lessons_init(t);
}

mc_lesson_t mc_lesson(const mc_choice_key_t *key, const mc_ranked_t *first, int64_t ns)
{
    return (mc_lesson_t){
        .key = *key, .learner = mc_learner(first, ns), .left = 1, .seen = UINT64_MAX};
}

static int32_t place_of(const mc_lessons_t *t, const mc_choice_key_t *key)
{
    int32_t i = 0;
    while (i < t->n && !mc_choice_key_same(&t->lesson[i]->key, key))
        i++;
    return i;
}

mc_lesson_t *mc_lessons_find(const mc_lessons_t *t, const mc_choice_key_t *key)
{
    const int32_t i = place_of(t, key);
    return i < t->n ? t->lesson[i] : NULL;
}

mc_lesson_t *mc_lessons_add(mc_lessons_t *t, const mc_choice_key_t *key, const mc_ranked_t *first,
                            int64_t ns, int *status)
{
    *status = MESHCOLL_OK;
    if (t->n == MC_LESSONS)
        return NULL;
    mc_lesson_t *const lesson = malloc(sizeof *lesson);
    if (!lesson) {
        *status = mc_fail_memory("what calls learn");
        return NULL;
    }
    *lesson = mc_lesson(key, first, ns);
    t->lesson[t->n++] = lesson;
    return lesson;
}

static bool has_time(const mc_lesson_t *lesson)
{
    return lesson->learner.took[lesson->learner.best] > 0;
}

void mc_lessons_keep(mc_lessons_t *t, const mc_lesson_t *lesson)
{
    const int32_t i = place_of(t, &lesson->key);
    if (!has_time(lesson) || i == MC_LESSONS)
        return;
    mc_lesson_t *const kept = i < t->n ? t->lesson[i] : malloc(sizeof *kept);
    if (!kept)
        return;
    *kept = *lesson;
    t->lesson[i] = kept;
    t->n += i == t->n;
}

void mc_lessons_show(mc_lessons_t *t, mc_lesson_t *lesson)
{
    const int32_t i = place_of(t, &lesson->key);
    if (i == MC_LESSONS || (i < t->n && has_time(t->lesson[i])))
        return;
    t->lesson[i] = lesson;
    t->n += i == t->n;
}

bool mc_lessons_sweep(mc_lessons_t *t)
{
    const int32_t before = t->n;
    t->n = 0;
    t->others = MC_LESSONS_OTHERS;
    for (int32_t i = 0; i < before; i++) {
        mc_lesson_t *const lesson = t->lesson[i];
        const uint64_t seen = lesson->asked_for - lesson->left;
        if (lesson->seen == seen) {
            free(lesson);
            continue;
        }
        lesson->seen = seen;
        t->lesson[t->n++] = lesson;
    }
    return t->n < before;
}
