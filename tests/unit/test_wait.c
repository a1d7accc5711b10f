/* Waiting, where a descriptor says all the time that there is news. */
#include "runtime/progress/threads.h"
#include "runtime/progress/wait.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

static uint32_t n_looks, n_armed, news;

static uint32_t look(mc_transport_t *t)
{
    (void)t;
    n_looks++;
    return news;
}

static int arm(mc_transport_t *t)
{
    (void)t;
    n_armed++;
    return MESHCOLL_OK;
}

static const mc_transport_ops_t ops = {.progress = look, .arm = arm};

static mc_transport_t readable(void)
{
    return (mc_transport_t){.ops = &ops, .fd = eventfd(1, EFD_CLOEXEC)};
}

Test(wait, sleeps_blindly_after_a_sleep_in_vain)
{
    mc_transport_t t = readable();
    meshcoll_t h = {.root = &h, .oversubscribed = true, .polled = {&t}, .n_polled = 1};
    mc_waiting_t w = {0};
    const uint32_t awake = mc_wait_polls(&h) + mc_wait_yields(&h);
    for (uint32_t i = 0; i < awake; i++)
        mc_wait_turn(&h, &w);
    cr_assert_eq(n_armed, 0);
    for (int i = 0; i < 10; i++)
        mc_wait_turn(&h, &w);
    cr_assert_eq(n_looks, awake + 10);
    cr_assert_eq(n_armed, 5, "every other sleep has no look at the descriptor, got %u", n_armed);
    close(t.fd);
}

static uint32_t n_asked;
static bool lacks(const mc_transport_t *t)
{
    (void)t;
    n_asked++;
    return true;
}

Test(wait, asks_what_is_lacking_where_cores_are_shared_and_nobody_shares_the_mesh)
{
    const mc_transport_ops_t asked = {.progress = look, .arm = arm, .lacks = lacks};
    mc_transport_t t = {.ops = &asked, .fd = -1}, other = {.ops = &ops, .fd = -1};
    meshcoll_t h = {.root = &h, .oversubscribed = true, .polled = {&t, &t}, .n_polled = 1};
    mc_wait_begin(&h);
    cr_expect_eq(n_asked, 1);
    h.oversubscribed = false;
    mc_wait_begin(&h);
    h.oversubscribed = true;
    h.n_polled = 2;
    mc_wait_begin(&h);
    h.n_polled = 1;
    h.polled[0] = &other; /* it cannot tell */
    mc_wait_begin(&h);
    cr_expect_eq(n_asked, 1, "asked %u times", n_asked);
    cr_expect_eq(n_looks, 0);
}

Test(wait, looks_at_the_descriptor_again_after_news)
{
    mc_transport_t t = readable();
    meshcoll_t h = {.root = &h, .oversubscribed = true, .polled = {&t}, .n_polled = 1};
    mc_waiting_t w = {.in_vain = true, .idle = 1000};
    news = 1;
    mc_wait_turn(&h, &w);
    cr_assert(!w.in_vain);
    cr_assert_eq(w.idle, 0);
    close(t.fd);
}

Test(wait, naps_after_a_sleep_in_vain_where_threads_share_the_mesh)
{
    mc_transport_t t = readable();
    meshcoll_t h = {.root = &h, .oversubscribed = true, .polled = {&t}, .n_polled = 1};
    mc_waiting_t w = {0};
    const mc_settings_t settings = {.threads = "multiple"};
    cr_assert_eq(mc_threads_open(&h, &settings), MESHCOLL_OK);
    const uint32_t awake = mc_wait_polls(&h) + mc_wait_yields(&h);
    mc_lock(&h);
    for (uint32_t i = 0; i < awake + 10; i++)
        mc_wait_turn(&h, &w);
    mc_unlock(&h);
    cr_expect_eq(n_looks, awake + 10);
    cr_expect_eq(n_armed, 5, "every other sleep has no look at the descriptor, got %u", n_armed);
    mc_threads_close(&h);
    close(t.fd);
}

/* As while its rank greets a connection: nothing runs, and the socket is watched for room. */
Test(wait, the_progress_thread_naps_after_a_sleep_in_vain, .timeout = 60)
{
    enum { LOOKS = 100 };
    mc_transport_t t = readable();
    meshcoll_t h = {.root = &h, .oversubscribed = true, .polled = {&t}, .n_polled = 1};
    const mc_settings_t settings = {.progress = "thread"};
    cr_assert_eq(mc_threads_open(&h, &settings), MESHCOLL_OK);
    for (bool enough = false; !enough; sched_yield()) {
        mc_lock(&h);
        enough = n_looks >= LOOKS;
        mc_unlock(&h);
    }
    mc_threads_close(&h);
    cr_expect_leq(n_armed, n_looks / 2 + 1, "%u sleeps in %u looks", n_armed, n_looks);
    close(t.fd);
}
