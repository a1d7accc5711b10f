#include "runtime/crowd.h"

#include <criterion/criterion.h>
#include <sched.h>

/* Eight ranks in two machines, ranks of which may run on cores [first, first + n). */
static double crowd(const int32_t *machine, const int first[8], int n)
{
    cpu_set_t set[8];
    cr_assert_eq(mc_crowd_set_bytes(), sizeof set[0]);
    for (int r = 0; r < 8; r++) {
        CPU_ZERO(&set[r]);
        for (int c = 0; c < n; c++)
            CPU_SET(first[r] + c, &set[r]);
    }
    return mc_crowd_of(set, machine, 8, 5);
}

Test(crowd, counts_the_ranks_of_a_core)
{
    static const int32_t one[8] = {0}, two[8] = {0, 0, 0, 0, 4, 4, 4, 4};
    static const int free_[8] = {0}, bound[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const int paired[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    cr_expect_float_eq(crowd(one, free_, 2), 4, 1e-12, "eight on two cores");
    cr_expect_float_eq(crowd(one, free_, 16), 0.5, 1e-12, "eight on sixteen");
    cr_expect_float_eq(crowd(two, free_, 2), 2, 1e-12, "the other machine's do not count");
    cr_expect_float_eq(crowd(one, bound, 1), 1, 1e-12, "each has its own");
    cr_expect_float_eq(crowd(one, paired, 1), 2, 1e-12, "two share one");
    cr_expect_float_eq(crowd(one, bound, 2), 1, 1e-12, "two cores each, which overlap");
}
