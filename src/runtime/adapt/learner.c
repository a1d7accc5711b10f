#include "runtime/adapt/learner.h"

/* Of the fastest of a round: who is in the next one. The times of the first round are medians of few. */
static const double FEW_WITHIN = 1.25;
/* Another one is compared for longer after a look if it is faster by more than this; and a time that has changed by this
 * factor makes all take turns again. */
static const double LOOK_GAIN = 0.95, LOOK_CHANGE = 1.5;

/* What is more counts as this: sums of many ranks stay within 63 bits. */
static const int64_t MOST_NS = INT64_C(1) << 40;

/* Each of the last words counts the ranks that know a time, for so many candidates. */
enum { COUNT_BITS = 21, COUNTS = 3 };
_Static_assert(COUNTS *(MC_LEARN_WORDS - MC_CANDIDATES) == MC_CANDIDATES, "each has a count");
_Static_assert(COUNTS *COUNT_BITS < 64, "they fit in a word");

mc_learner_t mc_learner(const mc_ranked_t *first, int64_t ns)
{
    return (mc_learner_t){.phase = ns > 0 ? MC_LEARN_SETTLED : MC_LEARN_QUIET_CALLS,
                          .until_look = MC_LOOK_FIRST,
                          .round = MC_TRIAL_FIRST,
                          .n = 1,
                          .candidate = {*first},
                          .mean = {ns},
                          .n_turns = 1};
}

static void enter(mc_learner_t *l, mc_learn_phase_t phase)
{
    l->phase = phase;
    l->calls = 0;
}

static void begin_round(mc_learner_t *l, mc_trial_t round)
{
    for (int32_t c = 0; c < l->n; c++)
        l->n_times[c] = 0;
    l->round = round;
    enter(l, MC_LEARN_TURNS);
}

/* What is used at present goes last: it was used until now, and is again after the round. */
static void begin_all(mc_learner_t *l)
{
    l->n_turns = 0;
    for (int32_t c = 0; c < l->n; c++)
        if (c != l->best)
            l->turn[l->n_turns++] = c;
    l->turn[l->n_turns++] = l->best;
    begin_round(l, MC_TRIAL_ALL);
}

static bool knows(const mc_learner_t *l, const mc_strategy_t *s)
{
    bool known = false;
    for (int32_t c = 0; c < l->n; c++)
        known = known || mc_strategy_equal(&l->candidate[c].strategy, s);
    return known;
}

void mc_learner_offer(mc_learner_t *l, const mc_ranked_t *candidate, int32_t n)
{
    for (int32_t i = 0; i < n && l->n < MC_CANDIDATES; i++)
        if (!knows(l, &candidate[i].strategy))
            l->candidate[l->n++] = candidate[i];
    if (l->n > 1)
        begin_all(l);
    else
        enter(l, MC_LEARN_SETTLED);
}

static uint32_t turn_of(const mc_learner_t *l)
{
    const bool few = l->round == MC_TRIAL_FIRST || l->round == MC_TRIAL_FEW;
    return few ? MC_LEARN_LONG : MC_LEARN_SHORT;
}

bool mc_learner_repeats(const mc_learner_t *l)
{
    return l->phase == MC_LEARN_TURNS && l->calls % turn_of(l) > 0;
}

/* The others in turn. If there are none, none was offered, or there are none, or no rank had a time. */
static void begin_look(mc_learner_t *l)
{
    if (l->n == 1) {
        l->n_turns = 1;
        l->turn[0] = 0;
        begin_round(l, MC_TRIAL_FIRST);
        return;
    }
    do
        l->other = (l->other + 1) % l->n;
    while (l->other == l->best);
    l->turn[0] = l->other;
    l->turn[1] = l->best;
    l->n_turns = 2;
    begin_round(l, MC_TRIAL_LOOK);
}

static mc_learn_turn_t settled(mc_learner_t *l)
{
    l->calls = l->until_look;
    if (l->until_look < MC_LOOK_SELDOM)
        l->until_look *= 2;
    return (mc_learn_turn_t){.candidate = l->best, .calls = l->calls};
}

static mc_learn_turn_t next_turn(mc_learner_t *l)
{
    const uint32_t turn = turn_of(l), call = l->calls++;
    if (call < (uint32_t)l->n_turns * turn)
        return (mc_learn_turn_t){l->turn[call / turn], call % turn > 0, false, 1};
    enter(l, MC_LEARN_AGREES);
    return (mc_learn_turn_t){l->best, false, true, MC_LEARN_AGREEING};
}

mc_learn_turn_t mc_learner_next(mc_learner_t *l)
{
    if (l->phase == MC_LEARN_QUIET_CALLS) {
        begin_round(l, MC_TRIAL_FIRST);
        return (mc_learn_turn_t){.calls = MC_LEARN_QUIET};
    }
    if (l->phase == MC_LEARN_SETTLED && l->calls == 0)
        return settled(l);
    if (l->phase == MC_LEARN_SETTLED)
        begin_look(l);
    return next_turn(l);
}

void mc_learner_note(mc_learner_t *l, int32_t candidate, int64_t ns)
{
    if (ns > 0 && l->phase == MC_LEARN_TURNS && l->n_times[candidate] < MC_LEARN_LONG)
        l->time[candidate][l->n_times[candidate]++] = ns < MOST_NS ? ns : MOST_NS;
}

/* Of an even number the lower one: what disturbs a call makes it longer. */
static int64_t median(const int64_t *time, int32_t n)
{
    int64_t sorted[MC_LEARN_LONG];
    for (int32_t i = 0; i < n; i++) {
        int32_t at = i;
        for (; at > 0 && sorted[at - 1] > time[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = time[i];
    }
    return sorted[(n - 1) / 2];
}

void mc_learner_tell(const mc_learner_t *l, int64_t words[MC_LEARN_WORDS])
{
    for (int32_t w = 0; w < MC_LEARN_WORDS; w++)
        words[w] = 0;
    for (int32_t c = 0; c < l->n; c++) {
        if (l->n_times[c] == 0)
            continue;
        words[c] = median(l->time[c], l->n_times[c]);
        words[MC_CANDIDATES + c / COUNTS] += INT64_C(1) << c % COUNTS * COUNT_BITS;
    }
}

/* ns; 0: some rank does not know it. */
static int64_t mean_of(const int64_t words[MC_LEARN_WORDS], int32_t c, int32_t ranks)
{
    const int64_t counts = words[MC_CANDIDATES + c / COUNTS] >> c % COUNTS * COUNT_BITS;
    const bool all = (counts & ((INT64_C(1) << COUNT_BITS) - 1)) == ranks;
    return all ? words[c] / ranks : 0;
}

/* Sorts the turns by time, without those of which none is known; returns how many are left. */
static int32_t rank_turns(mc_learner_t *l)
{
    int32_t n = 0;
    for (int32_t i = 0; i < l->n_turns; i++) {
        const int32_t c = l->turn[i];
        int32_t at = n;
        if (l->mean[c] == 0)
            continue;
        for (; at > 0 && l->mean[l->turn[at - 1]] > l->mean[c]; at--)
            l->turn[at] = l->turn[at - 1];
        l->turn[at] = c;
        n++;
    }
    return l->n_turns = n;
}

static void settle_all(mc_learner_t *l)
{
    const int32_t known = rank_turns(l);
    if (known > 0)
        l->best = l->turn[0];
    while (l->n_turns > 1 &&
           (double)l->mean[l->turn[l->n_turns - 1]] > FEW_WITHIN * (double)l->mean[l->best])
        l->n_turns--;
    if (l->n_turns > MC_LEARN_FEW)
        l->n_turns = MC_LEARN_FEW;
    if (l->n_turns > 1)
        begin_round(l, MC_TRIAL_FEW);
}

static void settle_few(mc_learner_t *l)
{
    if (rank_turns(l) > 0)
        l->best = l->turn[0];
}

static void settle_look(mc_learner_t *l, int64_t before)
{
    const int64_t now = l->mean[l->best], other = l->mean[l->other];
    if (now == 0 || other == 0)
        return;
    const double change = before > 0 ? (double)now / (double)before : 1;
    if (change > LOOK_CHANGE || change < 1 / LOOK_CHANGE)
        begin_all(l);
    else if ((double)other < LOOK_GAIN * (double)now)
        begin_round(l, MC_TRIAL_FEW);
}

void mc_learner_agree(mc_learner_t *l, const int64_t words[MC_LEARN_WORDS], int32_t ranks)
{
    const int64_t before = l->mean[l->best];
    for (int32_t i = 0; i < l->n_turns; i++)
        l->mean[l->turn[i]] = mean_of(words, l->turn[i], ranks);
    enter(l, MC_LEARN_SETTLED);
    if (l->round == MC_TRIAL_FIRST && l->mean[l->best] > 0)
        enter(l, MC_LEARN_WANTS);
    else if (l->round == MC_TRIAL_ALL)
        settle_all(l);
    else if (l->round == MC_TRIAL_FEW)
        settle_few(l);
    else if (l->round == MC_TRIAL_LOOK)
        settle_look(l, before);
}

static bool is_candidate(const mc_learner_t *l, int32_t c)
{
    return c >= 0 && c < l->n;
}

int mc_learner_check(const mc_learner_t *l)
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
        if (l->n_times[c] < 0 || l->n_times[c] > MC_LEARN_LONG || l->mean[c] < 0)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "a learner: %d times of candidate %d",
                           l->n_times[c], c);
    return MESHCOLL_OK;
}

void mc_learner_print(const mc_learner_t *l, const mc_mesh_t *mesh, mc_text_t *text)
{
    for (int32_t c = 0; c < l->n; c++) {
        mc_text_add(text, "    %c ", c == l->best ? '*' : ' ');
        if (l->mean[c] > 0)
            mc_text_add(text, "%10.1f us", (double)l->mean[c] / 1e3);
        else
            mc_text_add(text, "%13s", "not timed");
        mc_text_add(text, ", predicted %10.1f us  ", l->candidate[c].seconds * 1e6);
        mc_strategy_print(&l->candidate[c].strategy, mesh, text);
        mc_text_add(text, "\n");
    }
}
