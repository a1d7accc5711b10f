/* Calls on device memory that need more than buffers and a count: a scalar, the counts of others. */
#include "rig.h"

#include <string.h>

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

/* An alltoallv whose blocks pass through ranks that do not know their sizes. */
enum { PASSING = 4, MOST_PASSING = 64 };

static size_t passing_count(int from, int to)
{
    return (size_t)((from * 3 + to * 5) % 7);
}

typedef struct {
    meshcoll_t *mesh;
    size_t in_counts[PASSING], out_counts[PASSING], n_in, n_out;
    mc_cu_address_t in, out;
    int32_t host[MOST_PASSING];
} passing_t;

static void passing_open(passing_t *p, meshcoll_t *mesh)
{
    *p = (passing_t){.mesh = mesh};
    for (int r = 0; r < PASSING; r++) {
        p->in_counts[r] = passing_count(rig_rank, r);
        p->out_counts[r] = passing_count(r, rig_rank);
        for (size_t k = 0; k < p->in_counts[r]; k++)
            p->host[p->n_in++] = rig_rank * 1000 + r * 100 + (int)k;
        p->n_out += p->out_counts[r];
    }
    NEED(cuMemAlloc_v2(&p->in, sizeof p->host) == 0 && cuMemAlloc_v2(&p->out, sizeof p->host) == 0);
    NEED(cuMemcpyHtoDAsync_v2(p->in, p->host, sizeof p->host, NULL) == 0);
    NEED(cuStreamSynchronize(NULL) == 0);
}

static void passing_check(passing_t *p)
{
    size_t i = 0;
    NEED(cuMemcpyDtoHAsync_v2(p->host, p->out, sizeof p->host, NULL) == 0);
    NEED(cuStreamSynchronize(NULL) == 0);
    for (int r = 0; r < PASSING; r++)
        for (size_t k = 0; k < p->out_counts[r]; k++)
            NEED(p->host[i++] == r * 1000 + rig_rank * 100 + (int)k);
    memset(p->host, 0, sizeof p->host);
    NEED(cuMemcpyHtoDAsync_v2(p->out, p->host, sizeof p->host, NULL) == 0);
    NEED(cuStreamSynchronize(NULL) == 0);
}

static void rank_passing(meshcoll_t *mesh)
{
    static passing_t p;
    mc_cu_stream_t stream;
    meshcoll_request_t *request;
    NEED(cuStreamCreate(&stream, MC_CU_STREAM_NON_BLOCKING) == 0);
    passing_open(&p, mesh);
    const void *const in = (const void *)(uintptr_t)p.in;
    void *const out = (void *)(uintptr_t)p.out;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLTOALL,
                                  .in = in,
                                  .out = out,
                                  .datatype = MESHCOLL_INT32,
                                  .strategy = "hierarchical",
                                  .counts = p.out_counts,
                                  .in_counts = p.in_counts};
    NEED(meshcoll_set_strategy(mesh, MESHCOLL_ALLTOALL, "hierarchical") == MESHCOLL_OK);
    for (int again = 0; again < 3; again++) {
        NEED(meshcoll_alltoallv(mesh, in, p.in_counts, NULL, out, p.out_counts, NULL,
                                MESHCOLL_INT32) == MESHCOLL_OK);
        passing_check(&p);
    }
    NEED(meshcoll_init(mesh, &args, &request) == MESHCOLL_OK);
    for (int again = 0; again < 3; again++) {
        NEED(meshcoll_enqueue_request(request, stream) == MESHCOLL_OK);
        NEED(cuStreamSynchronize(stream) == 0);
        passing_check(&p);
    }
    meshcoll_free(request);
    NEED(meshcoll_enqueue(mesh, &args, stream) == MESHCOLL_ERR_UNSUPPORTED);
    NEED(strstr(meshcoll_last_error(), "have to wait for their counts"));
}

bool test_passing(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=2", .blocks = "2", .slot = "256"};
    return rig_run(&rig, rank_passing);
}
