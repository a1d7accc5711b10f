/* Fingerprints of calls: what they compare, and how a disagreement reads. */
#include "runtime/diagnose/fingerprint.h"

#include <criterion/criterion.h>
#include <string.h>

enum { MANY = 9, ROOM = 512 };

static const meshcoll_args_t sum = {.collective = MESHCOLL_ALLREDUCE,
                                    .count = 10,
                                    .datatype = MESHCOLL_FLOAT32,
                                    .op = MESHCOLL_SUM};

static mc_fingerprint_t take(const meshcoll_args_t *a, uint32_t number)
{
    static const meshcoll_t h = {.text = "gpu=9", .mesh = {.size = MANY}};
    const mc_call_t asking = {.args = *a, .number.own = number};
    return mc_fingerprint_of(&h, &asking);
}

static void expect_told(const mc_fingerprint_t *all, const int32_t *rank, int32_t n,
                        const char *wanted)
{
    char buffer[ROOM];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_fingerprint_print(all, rank, n, &text);
    cr_expect_str_eq(buffer, wanted);
}

Test(fingerprint, two_ends_agree)
{
    meshcoll_args_t max = sum;
    max.op = MESHCOLL_MAX;
    const mc_fingerprint_t a = take(&sum, 3), b = take(&max, 3), later = take(&max, 4),
                           none = mc_fingerprint_of(&(meshcoll_t){.text = "gpu=9"}, NULL);
    cr_expect(mc_fingerprint_agree(&a, &a));
    cr_expect_not(mc_fingerprint_agree(&a, &b));
    cr_expect(mc_fingerprint_agree(&a, &later), "they connect at different calls");
    cr_expect(mc_fingerprint_agree(&a, &none), "one is the library's own");
    cr_expect(mc_fingerprint_agree(&none, &b));
}

Test(fingerprint, each_field_counts)
{
    const size_t table[MANY] = {10};
    const mc_fingerprint_t first = take(&sum, 3);
    meshcoll_args_t other[6];
    for (size_t i = 0; i < MC_COUNT(other); i++)
        other[i] = sum;
    other[0].op = MESHCOLL_MIN;
    other[1].count = 11;
    other[2].datatype = MESHCOLL_INT32;
    other[3].collective = MESHCOLL_REDUCE_SCATTER;
    other[4].strategy = "flat-ring";
    other[5].counts = table;
    for (size_t i = 0; i < MC_COUNT(other); i++) {
        const mc_fingerprint_t f = take(&other[i], 3);
        cr_expect_not(mc_fingerprint_agree(&first, &f), "%zu", i);
    }
}

/* Every process numbers its own. */
Test(fingerprint, operations_of_users_are_alike)
{
    meshcoll_args_t one = sum, two = sum;
    one.op = (meshcoll_op_t)(MESHCOLL_OPS + 1);
    two.op = (meshcoll_op_t)(MESHCOLL_OPS + 2);
    const mc_fingerprint_t a = take(&one, 3), b = take(&two, 3);
    cr_expect(mc_fingerprint_agree(&a, &b));
}

Test(fingerprint, ranks_are_told_as_ranges)
{
    mc_fingerprint_t all[MANY];
    const meshcoll_t h = {.text = "gpu=9"};
    const mc_call_t barrier = {.number.own = 3, .is_barrier = true, .args = sum};
    meshcoll_args_t bcast = sum;
    bcast.collective = MESHCOLL_BCAST;
    bcast.root = 2;
    for (int i = 0; i < MANY; i++)
        all[i] = take(&sum, 3);
    all[1] = mc_fingerprint_of(&h, &barrier);
    all[8] = take(&bcast, 3);
    expect_told(
        all, NULL, MANY,
        "call 3: ranks 0, 2-7 asked for allreduce of 10 float32, sum; rank 1 for a barrier; "
        "rank 8 for bcast of 10 float32, root 2");
    const int32_t rank[] = {4, 7};
    expect_told(all, rank, 2,
                "call 3: rank 4 asked for allreduce of 10 float32, sum; rank 7 for a barrier");
}

Test(fingerprint, a_refusal_says_why)
{
    const meshcoll_t h = {.text = "gpu=9"};
    mc_fail(MESHCOLL_ERR_INVALID_ARG, "in is NULL");
    const mc_fingerprint_t all[] = {mc_fingerprint_refused(&h, 5), take(&sum, 5), take(&sum, 5)};
    expect_told(all, NULL, 3,
                "call 5: rank 0 was refused: in is NULL; ranks 1-2 asked for allreduce of 10 "
                "float32, sum");
}

/* However many ranks disagree, the text stays within its buffer. */
Test(fingerprint, a_long_text_is_cut)
{
    enum { RANKS = 200 };
    static mc_fingerprint_t all[RANKS];
    char buffer[64];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    for (int i = 0; i < RANKS; i++) {
        meshcoll_args_t a = sum;
        a.count = (size_t)(i % 3);
        all[i] = take(&a, 0);
    }
    mc_fingerprint_print(all, NULL, RANKS, &text);
    cr_expect_lt(strlen(buffer), sizeof buffer);
}
