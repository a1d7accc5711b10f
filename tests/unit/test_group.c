/* Groups: what is told to who misuses them, and what the links decide. Their results are tested over the
 * real transports, in tests/mpi/test_calls.c: the end of a group waits. */
#include "runtime/call/call.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <string.h>

enum { MANY = 100 };

static meshcoll_t *open_mesh(const char *mesh, const char *links)
{
    static meshcoll_t *rank[16];
    const meshcoll_params_t params = {.size = sizeof params, .links = links};
    cr_assert_eq(mc_inproc_create(mesh, &params, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    for (int r = 1; r < meshcoll_size(rank[0]); r++)
        meshcoll_destroy(rank[r]);
    return rank[0];
}

static int sum(meshcoll_t *mesh, int32_t *v, size_t count)
{
    return meshcoll_allreduce(mesh, v, v, count, MESHCOLL_INT32, MESHCOLL_SUM);
}

Test(group, misuse_is_told)
{
    int32_t v[2] = {1, 2};
    meshcoll_t *const mesh = open_mesh("x=1", NULL);
    cr_expect_eq(meshcoll_group_begin(NULL), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_group_end(NULL), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_group_end(mesh), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_not_null(strstr(meshcoll_last_error(), "no group is open"));
    cr_assert_eq(meshcoll_group_begin(mesh), MESHCOLL_OK);
    cr_expect_eq(meshcoll_group_begin(mesh), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_not_null(strstr(meshcoll_last_error(), "do not nest"));
    meshcoll_t *part;
    cr_expect_eq(meshcoll_split(mesh, "x", &part), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_not_null(strstr(meshcoll_last_error(), "a group is open"));
    cr_expect_eq(sum(mesh, v, 2), MESHCOLL_OK);
    cr_expect_eq(meshcoll_group_end(mesh), MESHCOLL_OK, "the group that was open still is");
    cr_expect_eq(meshcoll_group_end(mesh), MESHCOLL_ERR_INVALID_ARG);
    meshcoll_destroy(mesh);
}

Test(group, with_a_refused_call_starts_none)
{
    int32_t in = 3, out = 0;
    meshcoll_t *const mesh = open_mesh("x=1", NULL);
    cr_assert_eq(meshcoll_group_begin(mesh), MESHCOLL_OK);
    cr_expect_eq(meshcoll_allreduce(mesh, &in, &out, 1, MESHCOLL_INT32, MESHCOLL_SUM), MESHCOLL_OK);
    cr_expect_eq(meshcoll_allreduce(mesh, NULL, &out, 1, MESHCOLL_INT32, MESHCOLL_SUM),
                 MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_group_end(mesh), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_not_null(strstr(meshcoll_last_error(), "none was started"));
    cr_expect_eq(out, 0);
    cr_assert_eq(meshcoll_group_begin(mesh), MESHCOLL_OK);
    cr_expect_eq(meshcoll_allreduce(mesh, &in, &out, 1, MESHCOLL_INT32, MESHCOLL_SUM), MESHCOLL_OK);
    cr_expect_eq(meshcoll_group_end(mesh), MESHCOLL_OK, "the next one is whole again");
    cr_expect_eq(out, 3);
    meshcoll_destroy(mesh);
}

Test(group, open_at_the_end_is_told)
{
    int32_t v[2] = {1, 2};
    meshcoll_t *const mesh = open_mesh("x=1", NULL);
    cr_assert_eq(meshcoll_group_begin(mesh), MESHCOLL_OK);
    cr_expect_eq(sum(mesh, v, 2), MESHCOLL_OK);
    cr_expect_eq(sum(mesh, v, 0), MESHCOLL_OK);
    meshcoll_destroy(mesh);
    cr_expect_not_null(strstr(meshcoll_last_error(), "its 1 calls were not made"), "%s",
                       meshcoll_last_error());
}

/* More calls than its arrays had room for, and empty groups. */
Test(group, grows)
{
    int32_t in[MANY], out[MANY];
    meshcoll_request_t *request = NULL;
    meshcoll_t *const mesh = open_mesh("x=1", NULL);
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(meshcoll_group_begin(mesh), MESHCOLL_OK);
        cr_assert_eq(meshcoll_group_end(mesh), MESHCOLL_OK);
        memset(out, 0, sizeof out);
        cr_assert_eq(meshcoll_group_begin(mesh), MESHCOLL_OK);
        for (int i = 0; i < MANY; i++) {
            in[i] = i;
            request = (meshcoll_request_t *)&in;
            cr_assert_eq(meshcoll_iallreduce(mesh, &in[i], &out[i], 1, MESHCOLL_INT32,
                                             i % 2 ? MESHCOLL_MAX : MESHCOLL_SUM, &request),
                         MESHCOLL_OK);
            cr_expect_null(request);
        }
        cr_assert_eq(meshcoll_group_end(mesh), MESHCOLL_OK);
        for (int i = 0; i < MANY; i++)
            cr_expect_eq(out[i], i);
    }
    meshcoll_destroy(mesh);
}

/* Also one that nobody needs to know the mesh for to refuse it. */
Test(group, starts_none_where_a_call_lacked_counts_or_a_place)
{
    int32_t v[2] = {1, 2}, out[2] = {0, 0};
    meshcoll_t *const mesh = open_mesh("x=1", NULL);
    for (int what = 0; what < 4; what++) {
        meshcoll_request_t *request;
        cr_assert_eq(meshcoll_group_begin(mesh), MESHCOLL_OK);
        cr_expect_eq(meshcoll_bcast(mesh, v, out, 2, MESHCOLL_INT32, 0), MESHCOLL_OK);
        const int refused =
            what == 0   ? meshcoll_allgatherv(mesh, v, 1, v, NULL, NULL, MESHCOLL_INT32)
            : what == 1 ? meshcoll_iallgatherv(mesh, v, 1, v, NULL, NULL, MESHCOLL_INT32, &request)
            : what == 2 ? meshcoll_ibarrier(mesh, NULL)
                        : meshcoll_begin(mesh, NULL, &request);
        cr_expect_eq(refused, MESHCOLL_ERR_INVALID_ARG);
        cr_expect_eq(meshcoll_group_end(mesh), MESHCOLL_ERR_INVALID_ARG, "call %d", what);
        cr_expect_eq(out[0], 0, "call %d", what);
    }
    cr_expect_eq(meshcoll_bcast(mesh, v, out, 2, MESHCOLL_INT32, 0), MESHCOLL_OK);
    cr_expect_eq(out[1], 2);
    meshcoll_destroy(mesh);
}

static size_t largest_packed(meshcoll_t *mesh)
{
    size_t largest = 0;
    for (size_t count = 1; count < (size_t)1 << 30; count *= 2) {
        const meshcoll_args_t a = {.size = sizeof a,
                                   .collective = MESHCOLL_ALLREDUCE,
                                   .count = count,
                                   .datatype = MESHCOLL_FLOAT32};
        if (mc_group_packs(mesh, &a))
            largest = count;
    }
    return largest;
}

/* Small calls are packed, large ones are not, and a longer gap packs more. */
Test(group, the_links_decide_what_is_packed)
{
    meshcoll_t *const slow = open_mesh("x=8", "x=alpha:10us;beta:10GB/s;gamma:10GB/s");
    meshcoll_t *const fast = open_mesh("x=8", "x=alpha:10us;gap:1us;beta:10GB/s;gamma:10GB/s");
    meshcoll_t *const none = open_mesh("x=1", "x=alpha:10us;beta:10GB/s;gamma:10GB/s");
    cr_expect_gt(largest_packed(fast), 0u);
    cr_expect_gt(largest_packed(slow), largest_packed(fast));
    cr_expect_lt(largest_packed(slow), (size_t)1 << 29);
    cr_expect_eq(largest_packed(none), 0u, "one rank has no messages to save");
    const meshcoll_args_t forced = {.size = sizeof forced,
                                    .collective = MESHCOLL_ALLREDUCE,
                                    .count = 1,
                                    .datatype = MESHCOLL_FLOAT32,
                                    .strategy = "flat-ring"};
    cr_expect_not(mc_group_packs(slow, &forced));
    meshcoll_destroy(slow);
    meshcoll_destroy(fast);
    meshcoll_destroy(none);
}
