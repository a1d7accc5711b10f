/* What calls have learned, for people and for the next job. */
#include "runtime/call/adapt.h"

void mc_adapt_print(const meshcoll_t *h, mc_text_t *text)
{
    static const char *const phase[MC_LEARN_PHASES] = {
        "first calls", "candidates take turns", "ranks agree", "candidates come next", "settled"};
    const mc_lessons_t *const t = h->calls.adapt ? &h->calls.adapt->lessons : NULL;
    for (int32_t i = 0; t && i < t->n; i++) {
        const mc_lesson_t *const lesson = t->lesson[i];
        if (lesson->learner.n < 2)
            continue;
        mc_text_add(text, "  %s of %llu bytes", meshcoll_collective_name(lesson->key.collective),
                    (unsigned long long)lesson->key.bytes);
        if (mc_moves[lesson->key.collective].rooted)
            mc_text_add(text, ", root %d", mc_comm_rank_of(&h->order, lesson->key.root));
        mc_text_add(text, "%s: %s%s\n", lesson->key.ordered ? ", in one order of sums" : "",
                    phase[lesson->learner.phase],
                    lesson->links_off ? "; its links are off by more than 2" : "");
        mc_learner_print(&lesson->learner, &h->mesh, text);
    }
}

void mc_adapt_save(const meshcoll_t *h, mc_text_t *text)
{
    if (h->calls.adapt)
        mc_known_print(&h->calls.adapt->lessons, &h->calls.adapt->known, &h->mesh, text);
}

int mc_adapt_load(meshcoll_t *h, const char *text)
{
    return h->calls.adapt ? mc_known_parse(text, &h->mesh, &h->calls.adapt->known) : MESHCOLL_OK;
}
