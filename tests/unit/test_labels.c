/* What the planner's search leaves out on paper: loads drawn at random that it says are cheaper are so, whatever is added
 * to both. */
#include "compose/planner/labels.h"

#include "support/places.h"
#include "support/random.h"

enum { PARTS = 5 };

static void draw(mc_random_t *r, double *load)
{
    for (int32_t k = 0; k < PARTS; k++)
        load[k] = mc_random_below(r, 4) ? (double)mc_random_below(r, 1000) * 1e-7 : 0;
}

static double price_of(const double *load)
{
    double busy = 0;
    for (int32_t k = 1; k < PARTS; k++)
        busy = load[k] > busy ? load[k] : busy;
    return load[0] + busy;
}

static bool expect_cheaper(mc_random_t *r)
{
    double a[PARTS], b[PARTS];
    draw(r, a);
    draw(r, b);
    for (int32_t k = 0; k < PARTS; k++)
        a[k] = mc_random_below(r, 3) ? (a[k] < b[k] ? a[k] : b[k]) : a[k];
    const double margin = mc_random_below(r, 2) ? 1e-6 : 0;
    if (!mc_load_cheaper(PARTS, a, b, margin))
        return false;
    for (int i = 0; i < 20; i++) {
        double more[PARTS], with_a[PARTS], with_b[PARTS];
        draw(r, more);
        for (int32_t k = 0; k < PARTS; k++) {
            with_a[k] = a[k] + (i ? more[k] : 0);
            with_b[k] = b[k] + (i ? more[k] : 0);
        }
        cr_expect_leq(price_of(with_a) + margin, price_of(with_b) + 1e-15);
    }
    return true;
}

Test(labels, leave_out_nothing_that_may_be_cheaper)
{
    enum { CASES = 60000, LEAST = 300 };
    mc_random_t random = mc_random_of(5, 0), *const r = &random;
    int n_cheaper = 0;
    for (int k = 0; k < CASES; k++)
        n_cheaper += expect_cheaper(r);
    cr_expect_gt(n_cheaper, LEAST, "few are cheaper: %d", n_cheaper);
}
