#include "runtime/check/kinds.h"

#include "runtime/handle/args.h"

const char *mc_memory_kind_name(mc_memory_kind_t kind)
{
    static const char *const name[] = {[MC_MEMORY_HOST] = "host memory",
                                       [MC_MEMORY_REGISTERED] = "pinned host memory",
                                       [MC_MEMORY_MANAGED] = "managed memory",
                                       [MC_MEMORY_DEVICE] = "device memory"};
    return (unsigned)kind < MC_COUNT(name) ? name[kind] : "?";
}

typedef struct {
    mc_pointer_t in, out;
    bool has_in, has_out;
} buffers_t;

/* `args` name the root as a mesh rank, and count what all ranks know. */
static buffers_t ask(const meshcoll_t *h, const meshcoll_args_t *args)
{
    meshcoll_args_t a = *args;
    a.root = mc_comm_rank_of(&h->order, a.root);
    const mc_needs_t needs = mc_args_needs(h, &a);
    buffers_t b = {.has_in = needs.in > 0 && a.in, .has_out = needs.out > 0 && a.out};
    if (b.has_in)
        b.in = mc_device_pointer(h->job->device, a.in);
    if (b.has_out)
        b.out = mc_device_pointer(h->job->device, a.out);
    return b;
}

static bool is_device(bool there, const mc_pointer_t *p)
{
    return there && p->kind == MC_MEMORY_DEVICE;
}
static bool is_host(bool there, const mc_pointer_t *p)
{
    return there && (p->kind == MC_MEMORY_HOST || p->kind == MC_MEMORY_REGISTERED);
}

static int check_mixed(const meshcoll_args_t *args, const buffers_t *b)
{
    const bool device = is_device(b->has_in, &b->in) || is_device(b->has_out, &b->out);
    const bool host = is_host(b->has_in, &b->in) || is_host(b->has_out, &b->out);
    const char *const name = meshcoll_collective_name(args->collective);
    if (device && host)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: in is %s, out is %s: expected both of the same kind", name,
                       mc_memory_kind_name(b->in.kind), mc_memory_kind_name(b->out.kind));
    if (device && b->has_in && b->has_out && b->in.device != b->out.device)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: in is memory of GPU %d, out of GPU %d: expected the same one", name,
                       b->in.device, b->out.device);
    return MESHCOLL_OK;
}

int mc_call_memory_ask(const meshcoll_t *h, const meshcoll_args_t *args, mc_call_memory_t *memory)
{
    const buffers_t b = ask(h, args);
    const int status = check_mixed(args, &b);
    if (status)
        return status;
    memory->on_device = is_device(b.has_in, &b.in) || is_device(b.has_out, &b.out);
    memory->buffer = is_device(b.has_in, &b.in) ? b.in : b.out;
    return memory->on_device ? mc_device_check_built(h->job->device) : MESHCOLL_OK;
}

int mc_call_memory_refuse(const meshcoll_t *h, const meshcoll_args_t *args, const char *what)
{
    mc_call_memory_t memory;
    const int status = mc_call_memory(h, args, &memory);
    if (status || !memory.on_device)
        return status;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "%s: the buffers are device memory, which %s does not take: use "
                   "meshcoll_enqueue, or a blocking call",
                   meshcoll_collective_name(args->collective), what);
}

int mc_call_memory_need(const meshcoll_t *h, const meshcoll_args_t *args, mc_call_memory_t *memory)
{
    const buffers_t b = ask(h, args);
    const bool bad_in = is_host(b.has_in, &b.in), bad = bad_in || is_host(b.has_out, &b.out);
    int status = h->job->device->check();
    if (!status && !bad)
        status = check_mixed(args, &b);
    if (status)
        return status;
    if (bad)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s in a stream: %s is %s: expected device or managed memory",
                       meshcoll_collective_name(args->collective), bad_in ? "in" : "out",
                       mc_memory_kind_name(bad_in ? b.in.kind : b.out.kind));
    memory->on_device = true;
    memory->buffer = b.has_in ? b.in : b.out;
    return MESHCOLL_OK;
}
