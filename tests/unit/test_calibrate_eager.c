/* Up to which size messages are copied, found from exchanges whose times are made up. */
#include "runtime/calibrate/eager.h"
#include "transport/shm/shm_memory.h"

#include <criterion/criterion.h>

typedef struct {
    mc_transport_t t;
    size_t copied; /* faster up to here */
    double now;    /* runs so far */
} links_t;

static int run(void *context, size_t bytes, int32_t runs, double *seconds)
{
    links_t *const l = context;
    const bool copies = l->t.eager >= bytes;
    cr_assert_gt(runs, 0);
    *seconds = (copies == (bytes <= l->copied) ? 1 : 2) * 1e-6;
    l->now++;
    return MESHCOLL_OK;
}

static double found(size_t copied, size_t most, int runs)
{
    links_t l = {.copied = copied};
    double bytes = -1;
    cr_assert_eq(mc_eager_find(&(mc_exchanges_t){&l.t, 2, most, run, &l, &l.now, runs}, &bytes),
                 MESHCOLL_OK);
    cr_expect_eq(l.t.eager, 0, "all messages are read meanwhile");
    return bytes;
}

Test(calibrate_eager, finds_the_longest_message_that_is_faster_copied)
{
    enum { KIB = 1024, MANY = 1000 };
    cr_expect_eq(found(512 * KIB, 1024 * KIB, MANY), 512 * KIB);
    cr_expect_eq(found(1 << 30, 512 * KIB, MANY), 512 * KIB, "no message is longer");
    cr_expect_eq(found(MC_SHM_EAGER, 512 * KIB, MANY), MC_SHM_EAGER);
    cr_expect_eq(found(20 * KIB, 512 * KIB, MANY), 16 * KIB);
    cr_expect_eq(found(0, 512 * KIB, MANY), 4 * KIB);
    cr_expect_eq(found(1 << 30, 16 * KIB, MANY), 16 * KIB);
    cr_expect_eq(found(1 << 30, 5 * KIB, MANY), -1, "all messages go in a page");
    cr_expect_eq(found(1 << 30, 512 * KIB, 1), -1, "only the board was filled");
}
