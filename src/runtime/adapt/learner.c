#include "runtime/adapt/learner.h"

/* Of the fastest of a round: who is in the next one. The times of the first round are medians of few. */
static const double FEW_WITHIN = 1.25;
/* Another one is used, and after a look compared for longer, if it is faster by more than this; and a time that has
 * changed by this factor makes all take turns again. */
static const double GAIN = 0.95, LOOK_CHANGE = 1.5;
/* Looks leave out one that was slower by more. */
static const double FAR = 2;

/* What is more counts as this. */
static const int64_t MOST_NS = INT64_C(1) << 40;

mc_learner_t mc_learner(const mc_ranked_t *first, int64_t ns)
{
    return (mc_learner_t){.phase = ns > 0 ? MC_LEARN_SETTLED : MC_LEARN_QUIET_CALLS,
                          .until_look = MC_LOOK_FIRST,
                          .agreeing = MC_LEARN_AGREEING,
                          .round = MC_TRIAL_FIRST,
                          .n = 1,
                          .candidate = {*first},
                          .took = {ns},
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

/* May a look compare it with the one in use? */
static bool is_near(const mc_learner_t *l, int32_t c)
{
    return c != l->best && (double)l->took[c] < FAR * (double)l->took[l->best];
}

/* The near ones in turn, or the one in use alone. A learner of one candidate starts anew, as ranks may not have had a
 * time until now. */
static void begin_look(mc_learner_t *l)
{
    int32_t left = l->n;
    do
        l->other = (l->other + 1) % l->n;
    while (--left > 0 && !is_near(l, l->other));
    l->n_turns = 0;
    if (is_near(l, l->other))
        l->turn[l->n_turns++] = l->other;
    else
        l->other = l->best;
    l->turn[l->n_turns++] = l->best;
    begin_round(l, l->n > 1 ? MC_TRIAL_LOOK : MC_TRIAL_FIRST);
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
    return (mc_learn_turn_t){l->best, false, true, l->agreeing};
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
    const bool in_time = l->phase == MC_LEARN_TURNS || (l->is_late && l->phase == MC_LEARN_AGREES);
    if (ns > 0 && in_time && l->n_times[candidate] < MC_LEARN_LONG)
        l->time[candidate][l->n_times[candidate]++] = ns < MOST_NS ? ns : MOST_NS;
}

/* Of an even number the lower one: what disturbs a call makes it longer. */
static int64_t median(const int64_t *time, int32_t n)
{
    int64_t sorted[MC_LEARN_LONG] = {0};
    for (int32_t i = 0; i < n; i++) {
        int32_t at = i;
        for (; at > 0 && sorted[at - 1] > time[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = time[i];
    }
    return sorted[(n - 1) / 2];
}

static bool is_rooted(const mc_learner_t *l)
{
    return mc_moves[l->candidate[0].strategy.collective].rooted;
}

static int64_t mean(const int64_t *time, int32_t n)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += time[i];
    return sum / n;
}

void mc_learner_tell(const mc_learner_t *l, int64_t words[MC_LEARN_WORDS])
{
    for (int32_t c = 0; c < MC_CANDIDATES; c++) {
        const int32_t n = c < l->n ? l->n_times[c] : 0;
        const int64_t own = n == 0 ? 0 : is_rooted(l) ? mean(l->time[c], n) : median(l->time[c], n);
        words[c] = n > 0 ? own : INT64_MAX;
        words[MC_CANDIDATES + c] = -own;
    }
}

/* Of the ranks' times the most in a call with a root, else the least; 0: some rank does not know it. */
static int64_t combined(const mc_learner_t *l, const int64_t words[MC_LEARN_WORDS], int32_t c)
{
    if (words[c] > MOST_NS)
        return 0;
    return is_rooted(l) ? words[c] : -words[MC_CANDIDATES + c];
}

/* Sorts the turns by time, without those of which none is known; returns how many are left. */
static int32_t rank_turns(mc_learner_t *l)
{
    int32_t n = 0;
    for (int32_t i = 0; i < l->n_turns; i++) {
        const int32_t c = l->turn[i];
        int32_t at = n;
        if (l->took[c] == 0)
            continue;
        for (; at > 0 && l->took[l->turn[at - 1]] > l->took[c]; at--)
            l->turn[at] = l->turn[at - 1];
        l->turn[at] = c;
        n++;
    }
    return l->n_turns = n;
}

/* Of those that take turns, if it is faster than the one in use by more than what noise is. */
static int32_t take_fastest(mc_learner_t *l)
{
    const double now = (double)l->took[l->best];
    const int32_t known = rank_turns(l);
    if (known > 0 && (now == 0 || (double)l->took[l->turn[0]] < GAIN * now))
        l->best = l->turn[0];
    return known;
}

static void settle_all(mc_learner_t *l)
{
    if (take_fastest(l) == 0)
        return;
    const double fastest = (double)l->took[l->turn[0]];
    while ((double)l->took[l->turn[l->n_turns - 1]] > FEW_WITHIN * fastest)
        l->n_turns--;
    if (l->n_turns > MC_LEARN_FEW)
        l->n_turns = MC_LEARN_FEW;
    if (l->n_turns > 1)
        begin_round(l, MC_TRIAL_FEW);
}

static void settle_look(mc_learner_t *l, int64_t before)
{
    const int64_t now = l->took[l->best], other = l->took[l->other];
    if (now == 0 || other == 0)
        return;
    const double change = before > 0 ? (double)now / (double)before : 1;
    if (change > LOOK_CHANGE || change < 1 / LOOK_CHANGE)
        begin_all(l);
    else if ((double)other < GAIN * (double)now)
        begin_round(l, MC_TRIAL_FEW);
}

/* Not so often that a rank is further ahead of its GPU than a driver's queue is long. */
static bool tells_again(mc_learner_t *l, const int64_t words[MC_LEARN_WORDS])
{
    bool lacks = false;
    for (int32_t i = 0; i < l->n_turns; i++)
        lacks = lacks || combined(l, words, l->turn[i]) == 0;
    const bool again = l->is_late && lacks && l->agreeing < MC_LOOK_FIRST;
    l->agreeing = again ? 2 * l->agreeing : MC_LEARN_AGREEING;
    if (again) {
        enter(l, MC_LEARN_TURNS);
        l->calls = (uint32_t)l->n_turns * turn_of(l);
    }
    return again;
}

void mc_learner_agree(mc_learner_t *l, const int64_t words[MC_LEARN_WORDS])
{
    if (tells_again(l, words))
        return;
    const int64_t before = l->took[l->best];
    for (int32_t i = 0; i < l->n_turns; i++)
        l->took[l->turn[i]] = combined(l, words, l->turn[i]);
    enter(l, MC_LEARN_SETTLED);
    if (l->round == MC_TRIAL_FIRST && l->took[l->best] > 0)
        enter(l, MC_LEARN_WANTS);
    else if (l->round == MC_TRIAL_ALL)
        settle_all(l);
    else if (l->round == MC_TRIAL_FEW)
        (void)take_fastest(l);
    else if (l->round == MC_TRIAL_LOOK)
        settle_look(l, before);
    if (l->took[l->best] == 0) /* no rank, or not all, could time it: it is as it was */
        l->took[l->best] = before;
}

void mc_learner_print(const mc_learner_t *l, const mc_mesh_t *mesh, mc_text_t *text)
{
    for (int32_t c = 0; c < l->n; c++) {
        mc_text_add(text, "    %c ", c == l->best ? '*' : ' ');
        if (l->took[c] > 0)
            mc_text_add(text, "%10.1f us", (double)l->took[c] / 1e3);
        else
            mc_text_add(text, "%13s", "not timed");
        mc_text_add(text, ", predicted %10.1f us  ", l->candidate[c].seconds * 1e6);
        mc_strategy_print(&l->candidate[c].strategy, mesh, text);
        mc_text_add(text, "\n");
    }
}
