/* Can a learner be in such a state? */
#ifndef TESTS_SUPPORT_LEARNERS_H
#define TESTS_SUPPORT_LEARNERS_H

#include "runtime/adapt/learner.h"

static inline bool is_candidate(const mc_learner_t *l, int32_t c)
{
    return c >= 0 && c < l->n;
}

/* ERR_INVALID_ARG with what is wrong. */
static inline int mc_learner_check(const mc_learner_t *l)
{
    const bool is_known = (unsigned)l->phase < MC_LEARN_PHASES && (unsigned)l->round < MC_TRIALS;
    const bool counts = l->n >= 1 && l->n <= MC_CANDIDATES && is_candidate(l, l->best) &&
                        l->n_turns >= 0 && l->n_turns <= l->n;
    if (!is_known || !counts)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "a learner: %d candidates of which number %d is used, %d take turns, phase "
                       "%d, round %d",
                       l->n, l->best, l->n_turns, (int)l->phase, (int)l->round);
    for (int32_t i = 0; i < l->n_turns; i++)
        if (!is_candidate(l, l->turn[i]))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "a learner: %d takes turns, but there are %d",
                           l->turn[i], l->n);
    for (int32_t c = 0; c < l->n; c++)
        if (l->n_times[c] < 0 || l->n_times[c] > MC_LEARN_LONG || l->took[c] < 0)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "a learner: %d times of candidate %d",
                           l->n_times[c], c);
    return MESHCOLL_OK;
}

#endif
