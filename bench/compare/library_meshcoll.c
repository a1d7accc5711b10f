/* meshcoll by its public functions. MPI only starts the program and opens the gate. */
#include "library.h"

#include <meshcoll/mpi.h>

static meshcoll_t *mesh;
static meshcoll_request_t *request; /* NULL: blocking calls */

static void check(int status)
{
    if (status != MESHCOLL_OK)
        die("meshcoll: ", meshcoll_last_error());
}

void library_open(const char *text)
{
    const meshcoll_params_t params = {.size = sizeof params, .mesh = text};
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh));
}

void library_close(void)
{
    meshcoll_destroy(mesh);
}

void library_version(char *text, int room)
{
    snprintf(text, (size_t)room, "meshcoll %s", meshcoll_version());
}

static void *in_of(const call_t *c)
{
    return c->kind == BCAST && !c->in ? c->out : c->in;
}

static void *out_of(const call_t *c)
{
    return c->kind == BCAST ? in_of(c) : c->out;
}

static int run_blocking(const call_t *c)
{
    const size_t n = (size_t)c->count;
    void *const in = in_of(c), *const out = out_of(c);
    switch (c->kind) {
    case BCAST:
        return meshcoll_bcast(mesh, in, out, n, MESHCOLL_FLOAT32, 0);
    case REDUCE:
        return meshcoll_reduce(mesh, in, out, n, MESHCOLL_FLOAT32, MESHCOLL_SUM, 0);
    case SCATTER:
        return meshcoll_scatter(mesh, in, out, n, MESHCOLL_FLOAT32, 0);
    case GATHER:
        return meshcoll_gather(mesh, in, out, n, MESHCOLL_FLOAT32, 0);
    case ALLGATHER:
        return meshcoll_allgather(mesh, in, out, n, MESHCOLL_FLOAT32);
    case REDUCE_SCATTER:
        return meshcoll_reduce_scatter(mesh, in, out, n, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    case ALLTOALL:
        return meshcoll_alltoall(mesh, in, out, n, MESHCOLL_FLOAT32);
    case ALLREDUCE:
        return meshcoll_allreduce(mesh, in, out, n, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    default:
        return meshcoll_barrier(mesh);
    }
}

static const meshcoll_collective_t collective[KINDS] = {
    [BCAST] = MESHCOLL_BCAST,         [REDUCE] = MESHCOLL_REDUCE,
    [SCATTER] = MESHCOLL_SCATTER,     [GATHER] = MESHCOLL_GATHER,
    [ALLGATHER] = MESHCOLL_ALLGATHER, [REDUCE_SCATTER] = MESHCOLL_REDUCE_SCATTER,
    [ALLREDUCE] = MESHCOLL_ALLREDUCE, [ALLTOALL] = MESHCOLL_ALLTOALL,
};

void library_prepare(const call_t *call, bool persistent)
{
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = collective[call->kind],
                                  .in = in_of(call),
                                  .out = out_of(call),
                                  .count = (size_t)call->count,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM};
    if (persistent)
        check(call->kind == BARRIER ? meshcoll_barrier_init(mesh, &request)
                                    : meshcoll_init(mesh, &args, &request));
}

void library_run(const call_t *call)
{
    if (!request) {
        check(run_blocking(call));
        return;
    }
    check(meshcoll_start(request));
    check(meshcoll_wait(request));
}

void library_done(void)
{
    meshcoll_free(request);
    request = NULL;
}

void library_print(FILE *to)
{
    if (request)
        fprintf(to, ", \"strategy\": \"%s\", \"predicted_s\": %.9g",
                meshcoll_request_strategy(request), meshcoll_request_predicted(request));
}

void library_barrier(void)
{
    check(meshcoll_barrier(mesh));
}

void library_share(char *one)
{
    check(meshcoll_bcast(mesh, one, one, 1, MESHCOLL_INT8, 0));
}
