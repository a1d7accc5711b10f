/* The list of refused calls: which are known, what a barrier settles, and counts that wrap. */
#include "runtime/handle/lead.h"

#include "base/base.h"

#include <criterion/criterion.h>

Test(refusals, know_what_was_refused)
{
    mc_refusals_t f = {0};
    cr_expect(mc_refusals_know(&f, 0));
    cr_expect_not(mc_refusals_know(&f, 1));
    for (uint32_t made = 3; made < 200; made += made % 10 == 5 ? 3 : 1)
        cr_assert_eq(mc_refusals_add(&f, made), MESHCOLL_OK);
    cr_expect(mc_refusals_know(&f, 3) && mc_refusals_know(&f, 5) && mc_refusals_know(&f, 8));
    cr_expect_not(mc_refusals_know(&f, 2) || mc_refusals_know(&f, 6) || mc_refusals_know(&f, 7));
    cr_expect_leq(f.n, 21u, "those that follow each other are one");
    mc_refusals_free(&f);
    cr_expect_eq(f.n, 0u);
}

/* What was refused before the barrier began is settled; what came since is not. */
Test(refusals, are_settled_up_to_a_barrier)
{
    mc_refusals_t f = {0};
    cr_assert_eq(mc_refusals_add(&f, 5), MESHCOLL_OK);
    cr_expect_neq(f.hash, f.begun);
    const uint32_t up_to = mc_refusals_begin(&f, 6);
    cr_expect_eq(f.hash, f.begun);
    cr_assert_eq(mc_refusals_add(&f, 8), MESHCOLL_OK);
    mc_refusals_settle(&f, up_to);
    cr_expect_eq(f.n, 1u);
    cr_expect(mc_refusals_know(&f, 4) && mc_refusals_know(&f, 5) && mc_refusals_know(&f, 8));
    cr_expect_not(mc_refusals_know(&f, 6), "accepted, and begun with the barrier");
    mc_refusals_settle(&f, mc_refusals_begin(&f, 9));
    cr_expect_eq(f.n, 0u);
    cr_expect_not(mc_refusals_know(&f, 9));
    mc_refusals_free(&f);
}

Test(refusals, counts_wrap)
{
    mc_refusals_t f = {0};
    mc_refusals_settle(&f, UINT32_MAX - 4);
    cr_assert_eq(mc_refusals_add(&f, UINT32_MAX), MESHCOLL_OK);
    cr_assert_eq(mc_refusals_add(&f, 0), MESHCOLL_OK);
    cr_assert_eq(mc_refusals_add(&f, 1), MESHCOLL_OK);
    cr_expect_eq(f.n, 1u);
    cr_expect(mc_refusals_know(&f, UINT32_MAX) && mc_refusals_know(&f, 0) &&
              mc_refusals_know(&f, 1));
    cr_expect_not(mc_refusals_know(&f, 2) || mc_refusals_know(&f, UINT32_MAX - 1));
    mc_refusals_free(&f);
}

/* Equal on ranks that were refused the same, and only on those. */
Test(refusals, hash_tells_the_sequence)
{
    mc_refusals_t a = {0}, b = {0}, c = {0};
    for (uint32_t made = 1; made < 50; made += 7) {
        cr_assert_eq(mc_refusals_add(&a, made), MESHCOLL_OK);
        cr_assert_eq(mc_refusals_add(&b, made), MESHCOLL_OK);
        cr_assert_eq(mc_refusals_add(&c, made + (made > 40)), MESHCOLL_OK);
    }
    cr_expect_eq(a.hash, b.hash);
    cr_expect_neq(a.hash, c.hash);
    mc_refusals_free(&a);
    mc_refusals_free(&b);
    mc_refusals_free(&c);
}

/* The barrier of an epoch that a refusal has ended holds back the runs of the next one. */
Test(refusals, hold_back_the_next_epoch)
{
    mc_lead_t l = {.left = MC_LEAD_EPOCH};
    mc_lead_end(&l);
    cr_expect_lt(l.left, 0);
    cr_assert(mc_lead_count(&l, MC_LEAD_LEAST));
    l.needed++;
    cr_expect_not(mc_lead_settle(&l));
    l.left -= MC_LEAD_LEAST;
    cr_expect_lt(l.left, 0, "each call finds it closed");
    cr_expect_not(mc_lead_count(&l, MC_LEAD_LEAST));
    cr_expect_not(mc_lead_settle(&l));
    mc_lead_reach(&l, 0);
    cr_expect(mc_lead_settle(&l));
    cr_expect_eq(l.left, MC_LEAD_EPOCH - 2 * MC_LEAD_LEAST);
}
