/* What calls have learned: kept for the next job, and shown. */
#include "base/table.h"
#include "runtime/call/adapt.h"

#include <math.h>

void mc_adapt_leave(meshcoll_t *h, mc_study_t *study)
{
    mc_list_remove(&study->node);
    if (h && h->calls.adapt)
        mc_lessons_keep(&h->calls.adapt->past, &study->lesson);
}

/* Of calls and persistent requests, for each key one. */
static mc_lessons_t all_of(const mc_adapt_t *t)
{
    mc_lessons_t all = t->lessons;
    for (const mc_list_node_t *n = t->studies.first; n; n = n->next)
        mc_lessons_show(&all, &((mc_study_t *)((char *)n - offsetof(mc_study_t, node)))->lesson);
    for (int32_t i = 0; i < t->past.n; i++)
        mc_lessons_show(&all, t->past.lesson[i]);
    return all;
}

/* A network that became slower makes its calls so much longer (docs/lab-notes/calibration.md). */
static const double SLOWER = 3;

bool mc_adapt_is_slow(const meshcoll_t *h)
{
    const mc_lessons_t all = h->calls.adapt ? all_of(h->calls.adapt) : (mc_lessons_t){0};
    uint64_t most = 0;
    double longest = 0, others = 0; /* the time of calls, divided by what is predicted */
    for (int32_t i = 0; i < all.n; i++) {
        const mc_learner_t *const l = &all.lesson[i]->learner;
        const uint64_t bytes = all.lesson[i]->key.bytes;
        const double ratio = (double)l->took[l->best] * 1e-9 / l->candidate[l->best].seconds;
        const mc_choice_key_t *const key = &all.lesson[i]->key;
        if (key->memory || mc_moves[key->collective].rooted || !(ratio > 0))
            continue;
        if (bytes > most) {
            others = fmax(others, longest);
            longest = 0;
            most = bytes;
        }
        double *const of = bytes == most ? &longest : &others;
        *of = fmax(*of, ratio);
    }
    return others > 0 && longest > SLOWER && longest > others;
}

void mc_adapt_print(const meshcoll_t *h, mc_text_t *text)
{
    static const char *const phase[MC_LEARN_PHASES] = {
        "first calls", "candidates take turns", "ranks agree", "candidates come next", "settled"};
    static const char *const memory[] = {"", ", on device memory", ", on registered memory"};
    const mc_lessons_t all = h->calls.adapt ? all_of(h->calls.adapt) : (mc_lessons_t){0};
    for (int32_t i = 0; i < all.n; i++) {
        const mc_lesson_t *const lesson = all.lesson[i];
        if (lesson->learner.n < 2)
            continue;
        mc_text_add(text, "  %s of %llu bytes", meshcoll_collective_name(lesson->key.collective),
                    (unsigned long long)lesson->key.bytes);
        if (mc_moves[lesson->key.collective].rooted)
            mc_text_add(text, ", root %d", mc_comm_rank_of(&h->order, lesson->key.root));
        mc_text_add(text, "%s%s: %s%s\n", memory[lesson->key.memory],
                    lesson->key.ordered ? ", in one order of sums" : "",
                    phase[lesson->learner.phase],
                    lesson->links_off ? "; its links are off by more than 2" : "");
        mc_learner_print(&lesson->learner, &h->mesh, text);
    }
}

void mc_adapt_save(const meshcoll_t *h, mc_text_t *text)
{
    const mc_adapt_t *const t = h->calls.adapt;
    const mc_lessons_t all = t ? all_of(t) : (mc_lessons_t){0};
    if (t)
        mc_known_print(&all, &t->known, &h->mesh, text);
}

int mc_adapt_load(meshcoll_t *h, const char *text)
{
    return h->calls.adapt ? mc_known_parse(text, &h->mesh, &h->calls.adapt->known) : MESHCOLL_OK;
}
