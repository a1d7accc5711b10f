/* The arithmetic of leads: epochs, what opens them, and what calls count. */
#include "runtime/call/leads.h"
#include "runtime/handle/lead.h"

#include <criterion/criterion.h>

static mc_lead_t fresh(void)
{
    return (mc_lead_t){.left = MC_LEAD_EPOCH, .n_numbers = 1};
}

/* As mc_lead_call counts; returns whether a barrier is due. */
static bool count(mc_lead_t *l, int64_t bytes)
{
    if ((l->left -= bytes) >= 0)
        return false;
    const bool ends = mc_lead_count(l, bytes);
    (void)mc_lead_settle(l);
    return ends;
}

Test(lead, an_epoch_ends_with_its_bytes)
{
    mc_lead_t l = fresh();
    for (int i = 0; i < 8; i++)
        cr_expect_not(count(&l, MC_LEAD_EPOCH / 8), "call %d", i);
    cr_expect_eq(l.left, 0);
    cr_expect(count(&l, 1));
    cr_expect_eq(l.epoch, 1u);
    cr_expect_eq(l.left, MC_LEAD_EPOCH - 1, "the call counts in the epoch that it begins");
}

Test(lead, the_third_epoch_waits_for_the_first_barrier)
{
    mc_lead_t l = fresh();
    cr_expect_not(count(&l, MC_LEAD_EPOCH));
    cr_expect(count(&l, MC_LEAD_EPOCH));
    cr_expect_not(l.blocked, "the second one waits for nothing");
    cr_expect(count(&l, 1000));
    cr_expect(l.blocked);
    cr_expect_lt(l.left, 0, "each call asks now");
    cr_expect_not(count(&l, 1000), "and counts");
    cr_expect(l.blocked);
    mc_lead_reach(&l, 0);
    cr_expect_not(l.blocked);
    cr_expect_eq(l.left, MC_LEAD_EPOCH - 2000);
}

/* What has completed on a rank must not change where epochs end. */
Test(lead, epochs_end_alike_whatever_is_complete)
{
    mc_lead_t slow = fresh(), fast = fresh();
    uint32_t seed = 1;
    for (int i = 0; i < 10000; i++) {
        seed = seed * 1664525 + 1013904223;
        const int64_t bytes = (int64_t)(seed >> 8);
        const bool ends = count(&fast, bytes);
        cr_assert_eq(count(&slow, bytes), ends, "call %d", i);
        cr_assert_eq(slow.epoch, fast.epoch);
        if (ends)
            mc_lead_reach(&fast, fast.epoch - 1);
        cr_assert_not(fast.blocked);
        if (seed % 7 == 0 && slow.epoch - slow.synced > 0)
            mc_lead_reach(&slow, slow.synced);
    }
    cr_expect_gt(fast.epoch, 100u);
}

/* Two barriers may be in flight, and the later one may complete first. */
Test(lead, barriers_complete_in_any_order)
{
    mc_lead_t l = fresh();
    count(&l, MC_LEAD_EPOCH + 1);
    count(&l, MC_LEAD_EPOCH + 1);
    cr_expect(l.blocked);
    mc_lead_reach(&l, 1);
    mc_lead_reach(&l, 0);
    cr_expect_eq(l.synced, 2u);
    cr_expect_not(l.blocked);
}

Test(lead, epochs_wrap)
{
    mc_lead_t l = fresh();
    l.epoch = UINT32_MAX;
    l.synced = UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(count(&l, MC_LEAD_EPOCH + 1), true);
        cr_expect_not(l.blocked, "epoch %d", i);
        mc_lead_reach(&l, l.epoch - 1);
    }
    cr_expect_eq(l.epoch, 3u);
}

Test(lead, what_calls_count)
{
    const meshcoll_t h = {.mesh = {.size = 4}};
    const size_t count = 1 << 20;
    meshcoll_args_t a = {
        .collective = MESHCOLL_BCAST, .count = count, .datatype = MESHCOLL_FLOAT32};
    cr_expect_eq(mc_lead_bytes(&h, &a), 4 << 20);
    a.collective = MESHCOLL_SCATTER;
    cr_expect_eq(mc_lead_bytes(&h, &a), 16 << 20, "blocks of all ranks");
    a.counts = &count;
    cr_expect_eq(mc_lead_bytes(&h, &a), 4 << 20, "the count of a v-variant is their sum");
    a.counts_at_root = 1;
    cr_expect_eq(mc_lead_bytes(&h, &a), MC_LEAD_EPOCH / 4, "whatever a rank knows");
    a = (meshcoll_args_t){
        .collective = MESHCOLL_ALLREDUCE, .count = 1, .datatype = MESHCOLL_FLOAT32};
    cr_expect_eq(mc_lead_bytes(&h, &a), MC_LEAD_LEAST);
    a.collective = MESHCOLL_REDUCE;
    cr_expect_eq(mc_lead_bytes(&h, &a), 4 * MC_LEAD_LEAST, "the root may receive from all");
    a.count = 0;
    cr_expect_eq(mc_lead_bytes(&h, &a), MC_LEAD_LEAST, "as it takes a number");
    a.count = SIZE_MAX / 16;
    cr_expect_eq(mc_lead_bytes(&h, &a), MC_LEAD_MOST);
}

Test(lead, numbers_are_its_own)
{
    cr_expect_geq((int)MC_FIRST_BARRIER, MC_CALL_NUMBERS + 2 * MC_PERSISTENT_NUMBERS);
    cr_expect_leq((int)(MC_FIRST_BARRIER + MC_BARRIER_NUMBERS), (int)MC_TAG_MESSAGE);
}
