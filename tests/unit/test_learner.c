/* What calls learn: by ranks that are simulated, with times that are made up. */
#include "support/learners.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, N = 5, FIRST_CALLS = MC_LEARN_QUIET + MC_LEARN_LONG + MC_LEARN_AGREEING };

typedef struct {
    mc_learner_t rank[RANKS];
    double seconds[MC_CANDIDATES]; /* what a candidate takes, as yet */
    double late[RANKS];            /* how late a rank arrives at each call */
    double rate[RANKS];            /* of its clock */
    double noise;                  /* at most this part of a time */
    bool misses[RANKS];            /* it never has an honest time */
    uint32_t left[RANKS];          /* calls until it is asked */
    int32_t candidate[RANKS];      /* of the last call */
    uint64_t random;
    uint32_t calls, trials[MC_CANDIDATES], agreements;
    int64_t words[RANKS][MC_LEARN_WORDS];
    double spent; /* by the collectives of all calls */
} job_t;

static mc_mesh_t mesh;
static mc_ranked_t offered[MC_CANDIDATES];

static void begin(job_t *j, const double seconds[N])
{
    static const char *const text[N] = {
        "allreduce:doubling(x)", "reduce_scatter:ring(x) allgather:ring(x)",
        "reduce:mst(x) bcast:mst(x)", "reduce_scatter:halving(x) allgather:doubling(x)",
        "allreduce:fullmesh(x)"};
    *j = (job_t){.random = 1, .noise = 0.1};
    cr_assert_eq(mc_mesh_parse("x=8", &mesh), 0);
    for (int32_t c = 0; c < N; c++) {
        cr_assert_eq(mc_strategy_parse(text[c], MESHCOLL_ALLREDUCE, &mesh, &offered[c].strategy),
                     0);
        offered[c].seconds = 1e-5 * (1 + 0.1 * c);
        j->seconds[c] = seconds[c];
    }
    for (int r = 0; r < RANKS; r++) {
        j->rank[r] = mc_learner(&offered[0], 0);
        j->rate[r] = 1;
        j->left[r] = 1;
    }
}

/* xorshift64* */
static double random_part(job_t *j)
{
    j->random ^= j->random >> 12;
    j->random ^= j->random << 25;
    j->random ^= j->random >> 27;
    return (double)((j->random * UINT64_C(0x2545f4914f6cdd1d)) >> 11) / 0x1p53;
}

static void agree(job_t *j)
{
    int64_t most[MC_LEARN_WORDS];
    memcpy(most, j->words[0], sizeof most);
    for (int r = 1; r < RANKS; r++)
        for (int w = 0; w < MC_LEARN_WORDS; w++)
            most[w] = j->words[r][w] > most[w] ? j->words[r][w] : most[w];
    for (int r = 0; r < RANKS; r++)
        mc_learner_agree(&j->rank[r], most);
    j->agreements++;
}

/* A rank waits for the last one, and then for the collective. */
static void time_call(job_t *j, const mc_learn_turn_t *turn)
{
    double last = 0, late[RANKS];
    const double takes = j->seconds[turn->candidate] * (1 + j->noise * random_part(j));
    for (int r = 0; r < RANKS; r++) {
        late[r] = j->late[r] * (1 + j->noise * random_part(j));
        last = late[r] > last ? late[r] : last;
    }
    for (int r = 0; r < RANKS && turn->timed; r++)
        if (!j->misses[r])
            mc_learner_note(&j->rank[r], turn->candidate,
                            (int64_t)((last - late[r] + takes) * j->rate[r] * 1e9));
    j->spent += takes;
}

/* Is it that of the call before, as it is for calls that find their request bound? */
static mc_learn_turn_t ask(job_t *j, int r)
{
    mc_learner_t *const l = &j->rank[r];
    if (--j->left[r] > 0)
        return (mc_learn_turn_t){.candidate = j->candidate[r], .calls = j->left[r]};
    if (l->phase == MC_LEARN_WANTS)
        mc_learner_offer(l, offered, N);
    const bool repeats = mc_learner_repeats(l);
    const mc_learn_turn_t turn = mc_learner_next(l);
    cr_assert(!repeats || (turn.timed && turn.candidate == j->candidate[r]));
    cr_assert_eq(mc_learner_check(l), 0, "%s", meshcoll_last_error());
    if (turn.agrees)
        mc_learner_tell(l, j->words[r]);
    j->left[r] = turn.calls;
    j->candidate[r] = turn.candidate;
    return turn;
}

static void call(job_t *j)
{
    mc_learn_turn_t first = {0};
    if (j->left[0] == 1 && mc_learner_waits(&j->rank[0]))
        agree(j);
    for (int r = 0; r < RANKS; r++) {
        const mc_learn_turn_t turn = ask(j, r);
        if (r == 0)
            first = turn;
        cr_assert(turn.candidate == first.candidate && turn.agrees == first.agrees &&
                      turn.timed == first.timed && turn.calls == first.calls,
                  "call %u: rank %d takes %d, rank 0 %d", j->calls, r, turn.candidate,
                  first.candidate);
    }
    j->trials[first.candidate]++;
    time_call(j, &first);
    j->calls++;
}

static void calls(job_t *j, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        call(j);
}

static const double wrong_links[N] = {50e-6, 30e-6, 20e-6, 45e-6, 60e-6};

Test(learner, finds_the_fastest_where_the_links_are_wrong)
{
    job_t j;
    begin(&j, wrong_links);
    calls(&j, 200);
    cr_expect_eq(j.rank[0].phase, MC_LEARN_SETTLED);
    cr_expect_eq(j.rank[0].best, 2);
    cr_expect_eq(j.agreements, 2, "the others were slower by more than a quarter");
    j.spent = 0;
    calls(&j, 1000);
    cr_expect_leq(j.spent, 1000 * 1.1 * wrong_links[2]);
}

Test(learner, takes_the_planners_in_the_first_calls)
{
    job_t j;
    begin(&j, wrong_links);
    calls(&j, FIRST_CALLS);
    cr_expect_eq(j.trials[0], FIRST_CALLS);
    calls(&j, 1);
    cr_expect_eq(j.trials[1], 1);
}

/* Noise of a tenth, and a second round: of those that are alike it may be any. */
Test(learner, compares_those_that_are_close_for_longer)
{
    static const double close[N] = {30e-6, 21e-6, 20e-6, 24e-6, 60e-6};
    job_t j;
    begin(&j, close);
    calls(&j, 200);
    cr_expect_eq(j.agreements, 3);
    cr_expect_eq(j.rank[0].phase, MC_LEARN_SETTLED);
    cr_expect(j.rank[0].best == 2 || j.rank[0].best == 1);
    cr_expect_leq(j.trials[4], MC_LEARN_SHORT, "it was slow");
}

/* The others wait 50 times what the collective takes. */
Test(learner, finds_it_where_a_rank_is_late)
{
    for (int slow = 0; slow < RANKS; slow += RANKS - 1) {
        job_t j;
        begin(&j, wrong_links);
        j.late[slow] = 1e-3;
        calls(&j, 200);
        cr_expect_eq(j.rank[0].phase, MC_LEARN_SETTLED);
        cr_expect_eq(j.rank[0].best, 2, "rank %d was late: %d", slow, j.rank[0].best);
    }
}

Test(learner, agrees_whatever_a_clock_tells)
{
    static const double rates[] = {1e6, -1, 1e-6, 0, 3};
    for (size_t i = 0; i < MC_COUNT(rates); i++) {
        job_t j;
        begin(&j, wrong_links);
        j.rate[3] = rates[i];
        calls(&j, 400);
        cr_expect_eq(j.rank[0].phase, MC_LEARN_SETTLED);
        for (int r = 1; r < RANKS; r++)
            cr_expect_eq(j.rank[r].best, j.rank[0].best);
    }
}

Test(learner, keeps_the_planners_where_a_rank_has_no_time)
{
    job_t j;
    begin(&j, wrong_links);
    j.misses[5] = true;
    calls(&j, 400);
    cr_expect_eq(j.rank[0].phase, MC_LEARN_SETTLED);
    cr_expect_eq(j.rank[0].best, 0);
    cr_expect_eq(j.rank[0].took[0], 0);
    cr_expect_eq(j.trials[0], 400, "a trial would tell nothing");
}

/* It is due at the next call; what it finds is compared for longer. */
static void look(job_t *j)
{
    for (int r = 0; r < RANKS; r++)
        j->left[r] = 1;
    calls(j, 2 * (2 * MC_LEARN_LONG + MC_LEARN_AGREEING + 1));
}

Test(learner, notices_in_a_look_that_another_is_faster)
{
    job_t j;
    begin(&j, wrong_links);
    calls(&j, 200);
    j.seconds[1] = 15e-6; /* the one in use has not changed */
    for (int i = 0; i < N - 1; i++)
        look(&j);
    cr_expect_eq(j.rank[0].best, 1);
    cr_expect_eq(j.rank[0].phase, MC_LEARN_SETTLED);
}

Test(learner, still_knows_what_a_round_could_not_time)
{
    job_t j;
    begin(&j, wrong_links);
    calls(&j, 200);
    const int64_t took = j.rank[0].took[2];
    j.misses[3] = true;
    for (int i = 0; i < N; i++)
        look(&j);
    cr_expect_eq(j.rank[0].best, 2);
    cr_expect_eq(j.rank[0].took[2], took);
}

Test(learner, looks_at_none_that_was_far_slower)
{
    job_t j;
    begin(&j, wrong_links);
    calls(&j, 200);
    const uint32_t before[] = {j.trials[1], j.trials[4]};
    for (int i = 0; i < N; i++)
        look(&j);
    cr_expect_eq(j.rank[0].best, 2);
    cr_expect_gt(j.trials[1], before[0]);
    cr_expect_eq(j.trials[4], before[1]);
}

Test(learner, tries_all_again_where_its_own_time_has_changed)
{
    job_t j;
    begin(&j, wrong_links);
    calls(&j, 200);
    cr_assert_eq(j.rank[0].best, 2);
    for (int c = 0; c < N; c++)
        j.seconds[c] = 1e-3 * (1 + (c + 2) % N); /* now 3 is the fastest */
    look(&j);
    calls(&j, 100);
    cr_expect_eq(j.rank[0].best, 3);
}

Test(learner, of_one_candidate_has_nothing_to_do)
{
    mc_learner_t l;
    mc_ranked_t one;
    job_t j;
    begin(&j, wrong_links);
    one = offered[1];
    l = mc_learner(&one, 0);
    cr_expect_eq(mc_learner_next(&l).calls, MC_LEARN_QUIET);
    for (int i = 0; i <= MC_LEARN_LONG; i++) {
        mc_learner_note(&l, 0, 1000 + i);
        const mc_learn_turn_t turn = mc_learner_next(&l);
        cr_expect_eq(turn.agrees, i == MC_LEARN_LONG);
        cr_expect_eq(turn.calls, i < MC_LEARN_LONG ? 1 : MC_LEARN_AGREEING);
        if (turn.agrees)
            mc_learner_tell(&l, j.words[0]);
    }
    cr_assert(mc_learner_waits(&l));
    mc_learner_agree(&l, j.words[0]);
    cr_assert_eq(l.phase, MC_LEARN_WANTS);
    mc_learner_offer(&l, &one, 1);
    cr_expect_eq(l.phase, MC_LEARN_SETTLED);
    cr_expect_eq(mc_learner_next(&l).candidate, 0);
}

/* What an earlier job has found is used at once, and compared in the first look. */
Test(learner, begins_with_what_is_known)
{
    job_t j;
    begin(&j, wrong_links);
    for (int r = 0; r < RANKS; r++)
        j.rank[r] = mc_learner(&offered[1], 30000);
    calls(&j, 50);
    cr_expect_eq(j.rank[0].phase, MC_LEARN_SETTLED);
    cr_expect_eq(j.trials[0], 50, "it is the learner's first");
    look(&j);
    calls(&j, 150);
    cr_expect(
        mc_strategy_equal(&j.rank[0].candidate[j.rank[0].best].strategy, &offered[2].strategy));
}

Test(learner, check_refuses_what_cannot_be)
{
    job_t j;
    begin(&j, wrong_links);
    calls(&j, FIRST_CALLS + 2);
    mc_learner_t l = j.rank[0];
    cr_assert_eq(mc_learner_check(&l), 0);
    l.best = l.n;
    cr_expect_eq(mc_learner_check(&l), MESHCOLL_ERR_INVALID_ARG);
    l = j.rank[0];
    l.turn[0] = -1;
    cr_expect_eq(mc_learner_check(&l), MESHCOLL_ERR_INVALID_ARG);
    l = j.rank[0];
    l.n_times[0] = MC_LEARN_LONG + 1;
    cr_expect_eq(mc_learner_check(&l), MESHCOLL_ERR_INVALID_ARG);
}

/* One rank has no time when all tell them. */
static void begin_late(job_t *j)
{
    begin(j, wrong_links);
    for (int r = 0; r < RANKS; r++)
        j->rank[r].is_late = true;
    j->misses[3] = true;
    calls(j, FIRST_CALLS + 1);
    cr_assert_eq(j->agreements, 1);
    cr_expect_eq(j->trials[0], FIRST_CALLS + 1, "nobody goes on to the candidates");
}

Test(learner, tells_times_again_that_come_late)
{
    job_t j;
    begin_late(&j);
    mc_learner_note(&j.rank[3], 0, 50000);
    calls(&j, 2 * MC_LEARN_AGREEING);
    cr_expect_eq(j.trials[0], j.calls, "it was told before");
    j.misses[3] = false;
    calls(&j, 4 * MC_LEARN_AGREEING);
    cr_expect_lt(j.trials[0], j.calls);
    calls(&j, 200);
    cr_expect_eq(j.rank[0].best, 2);
    cr_expect_eq(j.agreements, 4, "two, and two more for times that came late");
}

Test(learner, does_not_await_late_times_for_ever)
{
    job_t j;
    begin_late(&j);
    calls(&j, 2 * MC_LOOK_FIRST);
    cr_expect_eq(j.rank[0].phase, MC_LEARN_SETTLED);
    cr_expect_eq(j.trials[0], j.calls);
    cr_expect_eq(j.agreements, 6, "after 16, 32, …, 512 calls");
}
