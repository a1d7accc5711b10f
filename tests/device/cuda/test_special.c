/* Calls on device memory that need more than buffers and a count: a scalar. */
#include "rig.h"

/* A scaled sum: of twice the numbers, by a half. */
static void rank_scaled(meshcoll_t *mesh)
{
    const float half = 0.5f;
    meshcoll_op_t op;
    NEED(meshcoll_op_premul(&half, MESHCOLL_FLOAT32, &op) == MESHCOLL_OK);
    for (size_t count = 7; count < 20000; count = count * 50 + 1) {
        const mc_case_t c = {.collective = MESHCOLL_ALLREDUCE,
                             .datatype = MESHCOLL_FLOAT32,
                             .op = op,
                             .count = count,
                             .in_place = true};
        rig_case_t r;
        rig_open(mesh, &c, NULL, &r);
        rig_fill(&r, NULL);
        for (size_t i = 0; i < count; i++)
            ((float *)r.host.in)[i] *= 2;
        NEED(cuMemcpyHtoDAsync_v2((mc_cu_address_t)(uintptr_t)r.args.in, r.host.in,
                                  count * sizeof half, NULL) == 0);
        NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_OK);
        NEED(rig_check(&r, NULL));
        rig_close(&r);
    }
    meshcoll_op_free(op);
}

bool test_scaled(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2", .slot = "4096"};
    return rig_run(&rig, rank_scaled);
}
