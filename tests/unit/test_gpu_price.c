/* Which calls on device memory have messages with flags in their data. */
#include "gpu/launch/price.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <math.h>

/* Two slots that hold any message. */
static const mc_gpu_layout_t roomy = {
    .ranks = 8, .blocks = 16, .slot_bytes = 1 << 24, .ll_bytes = 1 << 24};

static mc_links_t links_of(void)
{
    mc_mesh_t mesh;
    mc_links_t links;
    cr_assert_eq(mc_mesh_parse("gpu=8", &mesh), MESHCOLL_OK);
    cr_assert_eq(mc_links_parse("dgx-h100", &mesh, &links), MESHCOLL_OK);
    return links;
}

static mc_gpu_load_t load_of(const char *strategy, meshcoll_collective_t collective)
{
    const case_t c = {"gpu=8", collective, 0, strategy};
    mc_gpu_load_t load = {0};
    const mc_device_tracks_t one = {.n = 1};
    const mc_links_t links = links_of();
    plans_t p;
    plans_of(&p, &c);
    for (int32_t r = 0; r < 8; r++)
        mc_gpu_load_add(&load, &one, &links, p.plan[r]);
    plans_free(&p);
    return load;
}

static double seconds(const mc_gpu_load_t *v, const mc_gpu_layout_t *l, double chunk, bool ll)
{
    mc_mesh_t mesh;
    mc_links_t links;
    cr_assert_eq(mc_mesh_parse("gpu=8", &mesh), MESHCOLL_OK);
    cr_assert_eq(mc_links_parse("dgx-h100", &mesh, &links), MESHCOLL_OK);
    return mc_gpu_protocol_seconds(v, l, chunk, mc_gpu_slowest(&links, &mesh), ll);
}

/* A message costs 0.6 us and twice its bytes, or 3.4 us and its bytes, at 370 GB/s. */
Test(gpu_price, short_messages_have_flags_in_their_data)
{
    const mc_gpu_load_t v =
        load_of("reduce_scatter:ring(gpu) allgather:ring(gpu)", MESHCOLL_ALLREDUCE);
    const double even = 2.8e-6 * 370e9;
    cr_expect_eq(v.messages, 8 * 14);
    cr_expect_eq(v.chunks, 8 * 14);
    cr_expect_eq(v.widest, 1);
    cr_expect_float_eq(seconds(&v, &roomy, 1000, true), 14 * (0.6e-6 + 2000 / 370e9), 1e-12);
    cr_expect_float_eq(seconds(&v, &roomy, 1000, false), 14 * (3.4e-6 + 1000 / 370e9), 1e-12);
    cr_expect_lt(seconds(&v, &roomy, even * 0.99, true), seconds(&v, &roomy, even * 0.99, false));
    cr_expect_gt(seconds(&v, &roomy, even * 1.01, true), seconds(&v, &roomy, even * 1.01, false));
}

/* Each pass costs its messages' steps again; a message of several chunks needs room for all of them. */
Test(gpu_price, passes_count)
{
    const mc_gpu_load_t v = load_of("alltoall:bruck(gpu)", MESHCOLL_ALLTOALL);
    mc_gpu_layout_t small = roomy;
    cr_expect_gt(v.widest, 1);
    cr_expect_gt(v.chunks, v.messages);
    small.ll_bytes = v.widest * 2 * MC_DEVICE_WORD * 4; /* four words of each chunk in a pass */
    const double one = seconds(&v, &small, 16 * 4 * MC_DEVICE_WORD, true);
    const double two = seconds(&v, &small, 16 * 4 * MC_DEVICE_WORD + 1, true);
    cr_expect_float_eq(two - one, (double)v.messages / 8 * 0.6e-6, 1e-9);
    small.ll_bytes = v.widest * 2 * MC_DEVICE_WORD - 1;
    cr_expect(isinf(seconds(&v, &small, 1, true)));
    small.ll_bytes = 0;
    cr_expect(isinf(seconds(&v, &small, 1, true)));
}
