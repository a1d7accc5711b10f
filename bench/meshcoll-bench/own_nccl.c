/*
 * NCCL's own collectives on the same buffers. NCCL is opened at run time; what is used of it is declared here,
 * under names of our own, as of NCCL 2.10 and later. Gather, scatter and alltoall are sends and receives in a
 * group, as nccl-tests has them.
 */
#include "bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int result_t; /* 0: success */
typedef struct comm *comm_t;
typedef struct {
    char bytes[128];
} unique_t;

/* X(member, exported name, parameters) */
#define FUNCTIONS(X)                                                                               \
    X(version, ncclGetVersion, (int *))                                                            \
    X(unique, ncclGetUniqueId, (unique_t *))                                                       \
    X(init, ncclCommInitRank, (comm_t *, int, unique_t, int))                                      \
    X(destroy, ncclCommDestroy, (comm_t))                                                          \
    X(begin, ncclGroupStart, (void))                                                               \
    X(end, ncclGroupEnd, (void))                                                                   \
    X(bcast, ncclBroadcast, (const void *, void *, size_t, int, int, comm_t, void *))              \
    X(reduce, ncclReduce, (const void *, void *, size_t, int, int, int, comm_t, void *))           \
    X(allreduce, ncclAllReduce, (const void *, void *, size_t, int, int, comm_t, void *))          \
    X(allgather, ncclAllGather, (const void *, void *, size_t, int, comm_t, void *))               \
    X(reduce_scatter, ncclReduceScatter, (const void *, void *, size_t, int, int, comm_t, void *)) \
    X(send, ncclSend, (const void *, size_t, int, int, comm_t, void *))                            \
    X(receive, ncclRecv, (void *, size_t, int, int, comm_t, void *))

struct nccl {
#define MEMBER(member, symbol, parameters) result_t(*member) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
    const char *(*error_text)(result_t);
    comm_t comm;
    char text[32]; /* its version */
};

/* NCCL's numbers of datatypes and operations; -1: it has none. */
static int type_of(meshcoll_datatype_t datatype)
{
    switch (datatype) {
    case MESHCOLL_INT8:
        return 0;
    case MESHCOLL_UINT8:
        return 1;
    case MESHCOLL_INT32:
        return 2;
    case MESHCOLL_UINT32:
        return 3;
    case MESHCOLL_INT64:
        return 4;
    case MESHCOLL_UINT64:
        return 5;
    case MESHCOLL_FLOAT16:
        return 6;
    case MESHCOLL_FLOAT32:
        return 7;
    case MESHCOLL_FLOAT64:
        return 8;
    case MESHCOLL_BFLOAT16:
        return 9;
    default:
        return -1;
    }
}

static int op_of(meshcoll_op_t op)
{
    switch (op) {
    case MESHCOLL_SUM:
        return 0;
    case MESHCOLL_PROD:
        return 1;
    case MESHCOLL_MAX:
        return 2;
    case MESHCOLL_MIN:
        return 3;
    case MESHCOLL_AVG:
        return 4;
    default:
        return -1;
    }
}

const char *own_nccl_lacks(const options_t *o)
{
    if (type_of(o->datatype) < 0)
        return meshcoll_datatype_name(o->datatype);
    if (collective_reduces(o->collective) && op_of(o->op) < 0)
        return meshcoll_op_name(o->op);
    if (o->collective == MESHCOLL_ALLTOALL && o->in_place)
        return "alltoall in place";
    return NULL;
}

const char *own_nccl_version(const bench_t *bench)
{
    return bench->nccl->text;
}

/* Opening ------------------------------------------------------------------------------------------ */

static int status_of(const struct nccl *nccl, result_t result, const char *what)
{
    if (result == 0)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_DEVICE, "NCCL could not %s: %s (%d)", what,
                   nccl->error_text(result), result);
}

static void need(const struct nccl *nccl, result_t result, const char *what)
{
    if (status_of(nccl, result, what) != MESHCOLL_OK)
        die("%s", meshcoll_last_error());
}

static int look_up(struct nccl *nccl)
{
    const char *const given = getenv("MESHCOLL_LIBNCCL");
    const char *const name = given && *given ? given : "libnccl.so.2";
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *found;
    if (!library)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "--flat nccl: there is no NCCL here (%s): install libnccl2, or name the "
                       "library by MESHCOLL_LIBNCCL",
                       dlerror());
#define LOOK_UP(member, symbol)                  \
    found = dlsym(library, symbol);              \
    memcpy(&nccl->member, &found, sizeof found); \
    if (!found)                                  \
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, \
                       "--flat nccl: %s has no %s; expected NCCL 2.10 or later", name, symbol);
#define LOOK_UP_ROW(member, symbol, parameters) LOOK_UP(member, #symbol)
    FUNCTIONS(LOOK_UP_ROW)
    LOOK_UP(error_text, "ncclGetErrorString")
#undef LOOK_UP_ROW
#undef LOOK_UP
    return MESHCOLL_OK;
}

/* From 2.9 on major * 10000 + minor * 100 + patch. */
static int ask_version(struct nccl *nccl)
{
    int n = 0;
    const int status = status_of(nccl, nccl->version(&n), "tell its version");
    snprintf(nccl->text, sizeof nccl->text, "%d.%d.%d", n / 10000, n / 100 % 100, n % 100);
    return status;
}

/* Rank 0's identifier reaches the others over the mesh. */
static int meet(const bench_t *bench, struct nccl *nccl)
{
    unique_t unique = {{0}};
    const int status =
        bench->rank == 0 ? status_of(nccl, nccl->unique(&unique), "make an identifier") : 0;
    if (ranks_agree(bench, status) != MESHCOLL_OK)
        return MESHCOLL_ERR_UNSUPPORTED;
    ranks_tell(bench, &unique, sizeof unique);
    return ranks_agree(bench,
                       status_of(nccl, nccl->init(&nccl->comm, bench->size, unique, bench->rank),
                                 "make a communicator"));
}

int own_nccl_open(bench_t *bench)
{
    struct nccl *const nccl = calloc(1, sizeof *nccl);
    int status = nccl ? MESHCOLL_OK : mc_fail_memory("NCCL's functions");
    if (!status && bench->size < 2)
        status = mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                         "--flat nccl: one rank has nobody to exchange with; start a rank for each "
                         "of several GPUs");
    if (!status)
        status = look_up(nccl);
    if (!status)
        status = ask_version(nccl);
    status = ranks_agree(bench, status);
    if (!status)
        status = meet(bench, nccl);
    if (status) {
        free(nccl);
        return status;
    }
    bench->nccl = nccl;
    return MESHCOLL_OK;
}

void own_nccl_close(bench_t *bench)
{
    if (bench->nccl)
        (void)bench->nccl->destroy(bench->nccl->comm);
    free(bench->nccl);
    bench->nccl = NULL;
}

/* Calls --------------------------------------------------------------------------------------------- */

/* What each rank of a collective of blocks sends to a peer, and receives; NULL: nothing. */
typedef struct {
    const bench_t *bench;
    const char *in;
    char *out;
    size_t count, block; /* elements, bytes */
    int type;
} blocks_t;

static void exchange(const blocks_t *b, int peer, const char *from, char *to)
{
    const struct nccl *const nccl = b->bench->nccl;
    void *const stream = b->bench->gpu.stream;
    if (peer == b->bench->rank && from == to)
        return;
    if (from)
        need(nccl, nccl->send(from, b->count, b->type, peer, nccl->comm, stream), "send");
    if (to)
        need(nccl, nccl->receive(to, b->count, b->type, peer, nccl->comm, stream), "receive");
}

static void exchange_all(const blocks_t *b)
{
    const meshcoll_collective_t collective = b->bench->options.collective;
    const int me = b->bench->rank, root = b->bench->options.root;
    const bool gathers = collective == MESHCOLL_GATHER;
    for (int peer = 0; peer < b->bench->size; peer++) {
        const size_t at = (size_t)peer * b->block;
        if (collective == MESHCOLL_ALLTOALL)
            exchange(b, peer, b->in + at, b->out + at);
        else if (gathers)
            exchange(b, peer, peer == root ? b->in : NULL, me == root ? b->out + at : NULL);
        else
            exchange(b, peer, me == root ? b->in + at : NULL, peer == root ? b->out : NULL);
    }
}

void own_nccl_enqueue(const bench_t *bench, const view_t *view)
{
    const options_t *const o = &bench->options;
    const struct nccl *const nccl = bench->nccl;
    const char *const in = device_at(bench, view->in.at);
    char *const out = device_at(bench, view->out.at);
    void *const stream = bench->gpu.stream;
    const int type = type_of(o->datatype), op = op_of(o->op);
    const size_t n = view->count;
    const blocks_t blocks = {bench, in, out, n, n * meshcoll_datatype_size(o->datatype), type};
    result_t result = 0;
    switch (o->collective) {
    case MESHCOLL_BCAST:
        result = nccl->bcast(in, out, n, type, o->root, nccl->comm, stream);
        break;
    case MESHCOLL_REDUCE:
        result = nccl->reduce(in, out, n, type, op, o->root, nccl->comm, stream);
        break;
    case MESHCOLL_ALLREDUCE:
        result = nccl->allreduce(in, out, n, type, op, nccl->comm, stream);
        break;
    case MESHCOLL_ALLGATHER:
        result = nccl->allgather(in, out, n, type, nccl->comm, stream);
        break;
    case MESHCOLL_REDUCE_SCATTER:
        result = nccl->reduce_scatter(in, out, n, type, op, nccl->comm, stream);
        break;
    default:
        need(nccl, nccl->begin(), "begin a group");
        exchange_all(&blocks);
        result = nccl->end();
    }
    need(nccl, result, "enqueue a collective");
}
