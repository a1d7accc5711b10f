/* Digests of calls: those that differ in one thing, or in datatype and operation, are told apart. */
#include "runtime/handle/digest.h"

#include <criterion/criterion.h>

static uint32_t digest_of(const meshcoll_t *h, const meshcoll_args_t *a)
{
    return mc_tag_digest(mc_tag(0, 0, mc_digest_of(h, a, false)));
}

Test(digest, tells_datatypes_and_operations)
{
    static bool seen[1 << MC_TAG_DIGEST_BITS];
    const meshcoll_t h = {.context.creation = 7};
    for (int type = 0; type < MESHCOLL_DATATYPES; type++)
        for (int op = 0; op <= MESHCOLL_OPS; op++) {
            const meshcoll_args_t a = {.collective = MESHCOLL_ALLREDUCE,
                                       .datatype = (meshcoll_datatype_t)type,
                                       .op = (meshcoll_op_t)op};
            const uint32_t d = digest_of(&h, &a);
            cr_assert_not(seen[d], "type %d, operation %d", type, op);
            seen[d] = true;
        }
}

Test(digest, tells_roots)
{
    enum { ROOTS = 1 << 12 };
    const meshcoll_t h = {.context.creation = 1};
    meshcoll_args_t a = {.collective = MESHCOLL_BCAST}, b = a;
    for (int r = 1; r < ROOTS; r++) {
        b.root = r;
        a.root = r & (r - 1);
        cr_assert_neq(digest_of(&h, &a), digest_of(&h, &b), "%d and %d", a.root, b.root);
        a.root = r - 1;
        cr_assert_neq(digest_of(&h, &a), digest_of(&h, &b), "%d and %d", a.root, b.root);
    }
}

Test(digest, tells_collectives_barriers_and_creations)
{
    const meshcoll_t h = {.context.creation = 1}, next = {.context.creation = 2};
    meshcoll_args_t a = {.datatype = MESHCOLL_INT32}, b = a;
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        for (int d = 0; d < c; d++) {
            a.collective = (meshcoll_collective_t)c;
            b.collective = (meshcoll_collective_t)d;
            cr_assert_neq(digest_of(&h, &a), digest_of(&h, &b), "%d and %d", c, d);
        }
    a.collective = MESHCOLL_ALLREDUCE;
    cr_expect_neq(mc_digest_of(&h, &a, true), mc_digest_of(&h, &a, false));
    cr_expect_neq(digest_of(&h, &a), digest_of(&next, &a));
}

/* What need not be the same on all ranks does not count. */
Test(digest, leaves_out_what_is_no_part_of_the_call)
{
    const meshcoll_t h = {0};
    meshcoll_args_t a = {.collective = MESHCOLL_ALLGATHER}, b = a;
    b.op = MESHCOLL_MAX;
    b.root = 3;
    cr_expect_eq(digest_of(&h, &a), digest_of(&h, &b));
    a.counts_at_root = b.counts_at_root = 1;
    b.count = 7;
    cr_expect_eq(digest_of(&h, &a), digest_of(&h, &b));
    a.counts_at_root = b.counts_at_root = 0;
    a.count = 6;
    cr_expect_neq(digest_of(&h, &a), digest_of(&h, &b));
    a.count = b.count;
    a.collective = b.collective = MESHCOLL_REDUCE;
    b.root = 0;
    a.op = (meshcoll_op_t)(MESHCOLL_OPS + 5);
    b.op = (meshcoll_op_t)(MESHCOLL_OPS + 9);
    cr_expect_eq(digest_of(&h, &a), digest_of(&h, &b),
                 "users' operations are numbered by each rank");
}

Test(digest, other_calls_differ_in_it_alone)
{
    const uint64_t own = mc_tag(3, 17, 5) | mc_tag_context(9) | mc_tag_phase(2);
    cr_expect(mc_tag_differs(mc_tag(4, 17, 6) | mc_tag_context(9) | MC_TAG_LAST, own));
    cr_expect(mc_tag_differs(mc_tag(4, 17, 6) | mc_tag_context(9) | MC_TAG_CREDIT, own));
    cr_expect_not(mc_tag_differs(mc_tag(4, 17, 5) | mc_tag_context(9), own), "the same call");
    cr_expect_not(mc_tag_differs(mc_tag(4, 18, 6) | mc_tag_context(9), own), "another number");
    cr_expect_not(mc_tag_differs(mc_tag(4, 17, 6) | mc_tag_context(8), own), "another mesh");
    cr_expect_not(
        mc_tag_differs(mc_tag_data(4, 17 << MC_TAG_SEQ_BITS | 6) | mc_tag_context(9), own),
        "data of a tagged message");
}
