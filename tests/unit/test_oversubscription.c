#include "runtime/place/oversubscription.h"
#include "runtime/place/places.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64 }; /* 4096 cores */

/* Eight ranks in two machines, ranks of which may run on cores [first, first + n). */
static double crowd(const int32_t *machine, const int first[8], int n)
{
    uint64_t set[8][WORDS] = {{0}};
    for (int r = 0; r < 8; r++)
        for (int c = first[r]; c < first[r] + n; c++)
            set[r][c / 64] |= UINT64_C(1) << c % 64;
    return mc_oversubscription_of(set[0], WORDS, WORDS, machine, 8, 5);
}

Test(crowd, counts_the_ranks_of_a_core)
{
    static const int32_t one[8] = {0}, two[8] = {0, 0, 0, 0, 4, 4, 4, 4};
    static const int free_[8] = {0}, bound[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const int paired[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    static const int many[8] = {0, 1024, 2048, 3000, 4095, 4095, 1, 2};
    cr_expect_float_eq(crowd(one, free_, 2), 4, 1e-12, "eight on two cores");
    cr_expect_float_eq(crowd(one, free_, 16), 0.5, 1e-12, "eight on sixteen");
    cr_expect_float_eq(crowd(two, free_, 2), 2, 1e-12, "the other machine's do not count");
    cr_expect_float_eq(crowd(one, bound, 1), 1, 1e-12, "each has its own");
    cr_expect_float_eq(crowd(one, paired, 1), 2, 1e-12, "two share one");
    cr_expect_float_eq(crowd(one, bound, 2), 1, 1e-12, "two cores each, which overlap");
    cr_expect_float_eq(crowd(one, many, 1), 2, 1e-12, "on a machine of thousands");
}

/* Boxes may be containers. */
Test(crowd, counts_the_ranks_of_a_kernel_whatever_their_boxes)
{
    static const int32_t each[4] = {0, 1, 2, 3};
    mc_location_t location[4] = {{.boot = "a"}, {.boot = "a"}, {.boot = "b"}, {.boot = "a"}};
    int32_t kernel[4];
    mc_kernels_find(location, sizeof *location, each, 4, 1, kernel);
    cr_expect(kernel[0] == 1 && kernel[1] == 1 && kernel[2] == 0 && kernel[3] == 1);
    location[1].boot[0] = '\0'; /* not known: the machine decides */
    mc_kernels_find(location, sizeof *location, each, 4, 1, kernel);
    cr_expect(kernel[0] == 0 && kernel[1] == 1 && kernel[2] == 0 && kernel[3] == 0);
}

Test(crowd, finds_the_cores_of_this_process)
{
    cpu_set_t set;
    size_t words;
    int n = 0;
    uint64_t *const cores = mc_cores_find(&words);
    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    cr_assert(cores && words > 0);
    for (size_t w = 0; w < words; w++)
        n += __builtin_popcountll(cores[w]);
    cr_expect_eq(n, CPU_COUNT(&set));
    cr_expect(words == 1 || cores[words - 1] != 0);
    free(cores);
}
