/* Calls on device memory with operations that run on the host: users'. */
#include "rig.h"

#include <string.h>

enum { N = 700, MOST = 8 * N };

/* 2 x 2 matrices over numbers modulo 251: the product does not commute. */
typedef struct {
    uint8_t at[4];
} matrix_t;

static matrix_t times(matrix_t a, matrix_t b)
{
    matrix_t c;
    for (unsigned i = 0; i < 4; i++)
        c.at[i] =
            (uint8_t)((a.at[i & 2] * b.at[i & 1] + a.at[(i & 2) + 1] * b.at[(i & 1) + 2]) % 251);
    return c;
}

static void multiply(void *context, void *dst, const void *a, const void *b, size_t count,
                     meshcoll_datatype_t datatype)
{
    (void)datatype;
    ++*(size_t *)context;
    for (size_t i = 0; i < count; i++)
        ((matrix_t *)dst)[i] = times(((const matrix_t *)a)[i], ((const matrix_t *)b)[i]);
}

static matrix_t of(int rank, size_t i)
{
    return (matrix_t){{(uint8_t)(1 + rank), (uint8_t)i, (uint8_t)(2 * rank + 1), (uint8_t)(i / 3)}};
}

static matrix_t product(int size, size_t i)
{
    matrix_t p = of(0, i);
    for (int r = 1; r < size; r++)
        p = times(p, of(r, i));
    return p;
}

/* Device memory of a rank, what it should be, and the operation. */
typedef struct {
    meshcoll_t *mesh;
    int size;
    mc_cu_address_t in, out;
    meshcoll_datatype_t type;
    meshcoll_op_t op;
    size_t calls; /* of the operation */
    matrix_t host[MOST];
} staged_t;

static void open_staged(meshcoll_t *mesh, staged_t *s)
{
    *s = (staged_t){.mesh = mesh, .size = meshcoll_size(mesh)};
    NEED(cuMemAlloc_v2(&s->in, sizeof s->host) == 0 && cuMemAlloc_v2(&s->out, sizeof s->host) == 0);
    NEED(meshcoll_datatype_of(sizeof(matrix_t), &s->type) == MESHCOLL_OK);
    NEED(meshcoll_op_create(multiply, 0, &s->calls, &s->op) == MESHCOLL_OK);
}

static void fill(staged_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s->host[i] = of(rig_rank, i);
    NEED(cuMemcpyHtoD_v2(s->in, s->host, n * sizeof *s->host) == 0);
    NEED(cuMemsetD8Async(s->out, 0xee, sizeof s->host, NULL) == 0 &&
         cuStreamSynchronize(NULL) == 0);
}

/* [first, first + n) of the product is at `at`, and out of place nothing behind it was written. */
static void need_product(staged_t *s, mc_cu_address_t at, size_t first, size_t n)
{
    NEED(cuMemcpyDtoH_v2(s->host, at, (n + 1) * sizeof *s->host) == 0);
    for (size_t i = 0; i < n; i++) {
        const matrix_t p = product(s->size, first + i);
        NEED(memcmp(&s->host[i], &p, sizeof p) == 0);
    }
    NEED(at != s->out || s->host[n].at[0] == 0xee);
}

static void *pointer(mc_cu_address_t at)
{
    return (void *)(uintptr_t)at;
}

static meshcoll_args_t args_of(const staged_t *s, meshcoll_collective_t collective, bool in_place)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = collective,
                             .in = pointer(s->in),
                             .out = pointer(in_place ? s->in : s->out),
                             .count = N,
                             .datatype = s->type,
                             .op = s->op};
}

/* Blocking -----------------------------------------------------------------------------------------*/

static void run_blocking(staged_t *s)
{
    const size_t block = N * sizeof(matrix_t), rank = (size_t)rig_rank;
    const int root = s->size - 1;
    meshcoll_t *const mesh = s->mesh;
    for (int again = 0; again < 2; again++) { /* a call that is repeated is none of the host's */
        fill(s, N);
        NEED(meshcoll_allreduce(mesh, pointer(s->in), pointer(s->out), N, s->type, s->op) == 0);
        need_product(s, s->out, 0, N);
        NEED(meshcoll_allreduce(mesh, pointer(s->in), pointer(s->in), N, s->type, s->op) == 0);
        need_product(s, s->in, 0, N);
        fill(s, N);
        NEED(meshcoll_reduce(mesh, pointer(s->in), pointer(s->out), N, s->type, s->op, root) == 0);
        need_product(s, s->out, 0, rig_rank == root ? N : 0);
        fill(s, N * (size_t)s->size);
        NEED(meshcoll_reduce_scatter(mesh, pointer(s->in), pointer(s->out), N, s->type, s->op) ==
             0);
        need_product(s, s->out, rank * N, N);
        NEED(meshcoll_reduce_scatter(mesh, pointer(s->in), pointer(s->in + rank * block), N,
                                     s->type, s->op) == 0);
        need_product(s, s->in + rank * block, rank * N, N);
    }
    NEED((s->calls > 0) == (s->size > 1) && fake_calls("cuLaunchKernel") == 0);
}

/* Persistent ---------------------------------------------------------------------------------------*/

static void run_persistent(staged_t *s)
{
    const meshcoll_args_t a = args_of(s, MESHCOLL_ALLREDUCE, false);
    meshcoll_request_t *request;
    NEED(meshcoll_init(s->mesh, &a, &request) == MESHCOLL_OK);
    for (int again = 0; again < 3; again++) {
        fill(s, N);
        NEED(meshcoll_start(request) == MESHCOLL_OK && meshcoll_wait(request) == MESHCOLL_OK);
        need_product(s, s->out, 0, N);
    }
    NEED(meshcoll_enqueue_request(request, NULL) == MESHCOLL_ERR_UNSUPPORTED &&
         strstr(meshcoll_last_error(), "start it by meshcoll_start"));
    meshcoll_free(request);
}

/* Not in a stream; the mesh works on. */
static void run_refused(const staged_t *s)
{
    const meshcoll_args_t a = args_of(s, MESHCOLL_ALLREDUCE, false);
    NEED(meshcoll_enqueue(s->mesh, &a, NULL) == MESHCOLL_ERR_UNSUPPORTED &&
         strstr(meshcoll_last_error(), "there is no kernel for this operation (user of bytes)"));
    NEED(meshcoll_barrier(s->mesh) == MESHCOLL_OK);
}

static void rank_staged(meshcoll_t *mesh)
{
    static staged_t s;
    open_staged(mesh, &s);
    run_blocking(&s);
    run_persistent(&s);
    run_refused(&s);
    NEED(meshcoll_op_free(s.op) == MESHCOLL_OK);
    NEED(cuMemFree_v2(s.in) == 0 && cuMemFree_v2(s.out) == 0);
}

bool test_staged(void)
{
    const rig_t rigs[] = {{.mesh = "gpu=4", .tidy = true},
                          {.mesh = "box=2,gpu=2", .progress = "thread", .tidy = true},
                          {.mesh = "gpu=3", .check = "1", .tidy = true},
                          {.mesh = "gpu=1", .tidy = true}};
    bool good = true;
    for (size_t i = 0; i < sizeof rigs / sizeof rigs[0]; i++)
        good = rig_run(&rigs[i], rank_staged) && good;
    rig_image = NULL; /* no kernel is needed */
    good = rig_run(&rigs[0], rank_staged) && good;
    const rig_t apart = {.mesh = "box=2", .machines = "ab", .tidy = true};
    if (rig_can_part())
        good = rig_run(&apart, rank_staged) && good;
    else
        printf("not shown: ranks on several machines, which this user may not make\n");
    return good;
}

/* Order, and ends ----------------------------------------------------------------------------------*/

static void count(void *context, meshcoll_request_t *request, int status)
{
    (void)request;
    *(int *)context += status == MESHCOLL_OK ? 1 : 100;
}

/* A call follows what was enqueued on the mesh before it: the largest bytes of all ranks, by a slow kernel, and
 * then their power. */
static void run_in_order(staged_t *s)
{
    matrix_t most = {{0}}, power;
    mc_cu_stream_t stream;
    meshcoll_args_t a = args_of(s, MESHCOLL_ALLREDUCE, false);
    a.datatype = MESHCOLL_UINT8;
    a.op = MESHCOLL_MAX;
    a.count = N * sizeof(matrix_t);
    fill(s, N);
    NEED(cuStreamCreate(&stream, MC_CU_STREAM_NON_BLOCKING) == 0);
    fake_kernels(200 * 1000, 1);
    NEED(meshcoll_enqueue(s->mesh, &a, stream) == MESHCOLL_OK);
    NEED(meshcoll_allreduce(s->mesh, a.out, a.out, N, s->type, s->op) == MESHCOLL_OK);
    fake_kernels(0, 1);
    for (int r = 0; r < s->size; r++)
        for (int i = 0; i < 4; i++)
            most.at[i] = of(r, 0).at[i] > most.at[i] ? of(r, 0).at[i] : most.at[i];
    power = most;
    for (int r = 1; r < s->size; r++)
        power = times(power, most);
    NEED(cuMemcpyDtoH_v2(s->host, s->out, sizeof power) == 0);
    NEED(memcmp(s->host, &power, sizeof power) == 0);
}

/* The result is there when a callback is called. */
static void run_called_back(staged_t *s)
{
    const meshcoll_args_t a = args_of(s, MESHCOLL_ALLREDUCE, true);
    meshcoll_request_t *request;
    int called = 0;
    fill(s, N);
    NEED(meshcoll_init(s->mesh, &a, &request) == MESHCOLL_OK);
    NEED(meshcoll_set_callback(request, count, &called) == MESHCOLL_OK);
    NEED(meshcoll_start(request) == MESHCOLL_OK && meshcoll_wait(request) == MESHCOLL_OK);
    NEED(called == 1);
    need_product(s, s->in, 0, N);
    meshcoll_free(request);
}

static void rank_ends(meshcoll_t *mesh)
{
    static staged_t s;
    open_staged(mesh, &s);
    run_in_order(&s);
    run_called_back(&s);
    NEED(meshcoll_op_free(s.op) == MESHCOLL_OK);
}

bool test_staged_ends(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2"};
    return rig_run(&rig, rank_ends);
}

/* Faults: each copy fails in turn on one rank. Nobody waits for it. */
static void rank_fails(meshcoll_t *mesh)
{
    static staged_t s;
    open_staged(mesh, &s);
    fill(&s, N);
    NEED(meshcoll_allreduce(mesh, pointer(s.in), pointer(s.out), N, s.type, s.op) == MESHCOLL_OK);
    if (rig_rank == 0)
        fake_fail("cuMemcpyHtoDAsync_v2", 0, MC_CU_ERROR_INVALID_VALUE);
    int status = meshcoll_allreduce(mesh, pointer(s.in), pointer(s.out), N, s.type, s.op);
    NEED(status == (rig_rank == 0 ? MESHCOLL_ERR_DEVICE : MESHCOLL_OK));
    NEED(meshcoll_barrier(mesh) == MESHCOLL_OK);
    if (rig_rank == 0)
        fake_fail("cuMemcpyDtoHAsync_v2", 0, MC_CU_ERROR_INVALID_VALUE);
    status = meshcoll_allreduce(mesh, pointer(s.in), pointer(s.out), N, s.type, s.op);
    NEED(rig_rank == 0 ? status == MESHCOLL_ERR_DEVICE : status < 0);
    NEED(strstr(meshcoll_last_error(), "copy a vector to the host"));
}

bool test_staged_fails(void)
{
    const rig_t rig = {.mesh = "gpu=3", .timeout = "30"};
    return rig_run(&rig, rank_fails);
}
