#include "gpu/call/call.h"

#include "gpu/launch/launch.h"
#include "runtime/call/args.h"
#include "runtime/call/call.h"
#include "runtime/call/leads.h"
#include "runtime/call/request.h"

#include <stdlib.h>
#include <sys/mman.h>

typedef struct {
    mc_cu_address_t device;
    char *host;
    size_t bytes;
} part_t;

struct mc_stage {
    struct mc_stage *next; /* of the job's spare ones */
    mc_cu_context_t context;
    mc_cu_stream_t stream; /* waits for no other */
    char *memory;          /* of the host */
    size_t bytes;
    bool pinned;
    part_t in, out; /* of the call */
};

/* Memory ------------------------------------------------------------------------------------------ */

/* The context is current. */
static void free_memory(struct mc_stage *s)
{
    if (s->pinned)
        (void)mc_cuda()->host_unregister(s->memory);
    if (s->memory)
        munmap(s->memory, s->bytes);
    s->memory = NULL;
    s->bytes = 0;
    s->pinned = false;
}

/* Pages of this process, which are then pinned: peers may not be able to read those that the driver
 * allocates. Not pinned, they are copied more slowly. */
static int reserve(struct mc_stage *s, size_t bytes)
{
    enum { PAGE = 4096 };
    if (bytes <= s->bytes)
        return MESHCOLL_OK;
    free_memory(s);
    const size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
    void *const at =
        mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return mc_fail_memory("a copy of a vector on the host");
    s->memory = at;
    s->bytes = rounded;
    s->pinned = mc_cuda()->host_register(at, rounded, MC_CU_REGISTER_PORTABLE) == 0;
    return MESHCOLL_OK;
}

static int open_stage(mc_cu_context_t context, struct mc_stage **stage)
{
    struct mc_stage *const s = calloc(1, sizeof *s);
    if (!s)
        return mc_fail_memory("a copy of a vector on the host");
    const int status = mc_cuda_status(
        mc_cuda()->stream_create(&s->stream, MC_CU_STREAM_NON_BLOCKING), "make a stream");
    s->context = context;
    if (status)
        free(s);
    else
        *stage = s;
    return status;
}

static void free_stage(struct mc_stage *s)
{
    mc_gpu_visit_t visit;
    if (mc_gpu_visit(s->context, &visit) == MESHCOLL_OK) {
        free_memory(s);
        (void)mc_cuda()->stream_destroy(s->stream);
        mc_gpu_leave(&visit);
    }
    free(s);
}

/* Taking ------------------------------------------------------------------------------------------ */

/* Where both buffers overlap, as they do in place, so do their copies. */
static int place(struct mc_stage *s, const mc_needs_t *needs, meshcoll_args_t *a)
{
    enum { ALIGN = 256 };
    const size_t in = needs->in > 0 ? (uintptr_t)a->in : 0;
    const size_t out = needs->out > 0 ? (uintptr_t)a->out : 0;
    const bool overlap = in && out && in < out + needs->out && out < in + needs->in;
    const size_t first = !overlap ? 0 : in < out ? in : out;
    /* the places of both in memory of the host */
    const size_t in_at = overlap ? in - first : 0;
    const size_t out_at = overlap ? out - first : (needs->in + ALIGN - 1) / ALIGN * ALIGN;
    const size_t in_end = in_at + needs->in, out_end = out_at + needs->out;
    const int status = reserve(s, in_end > out_end ? in_end : out_end);
    if (status)
        return status;
    s->in = (part_t){in, s->memory + in_at, in ? needs->in : 0};
    s->out = (part_t){out, s->memory + out_at, out ? needs->out : 0};
    a->in = in ? s->in.host : NULL;
    a->out = out ? s->out.host : NULL;
    return MESHCOLL_OK;
}

static struct mc_stage *spare_of(mc_gpu_job_t *job, mc_cu_context_t context)
{
    for (struct mc_stage **at = &job->spare, *s; (s = *at); at = &s->next)
        if (s->context == context) {
            *at = s->next;
            return s;
        }
    return NULL;
}

static void give_back(mc_gpu_job_t *job, struct mc_stage *s)
{
    s->next = job->spare;
    job->spare = s;
}

void mc_stages_free(mc_gpu_job_t *job)
{
    for (struct mc_stage *s = job->spare, *next; s; s = next) {
        next = s->next;
        free_stage(s);
    }
    job->spare = NULL;
}

/* Takes memory of the host, and puts it into a checked call in place of the GPU's. Not collective. ERR_DEVICE,
 * ERR_NO_MEMORY, ERR_INVALID_ARG. */
static int take(meshcoll_t *h, mc_call_t *call, struct mc_stage **stage)
{
    mc_gpu_job_t *const job = mc_gpu_job(h->job);
    meshcoll_args_t given = call->args; /* with the root as the caller's number */
    mc_cu_context_t context;
    mc_gpu_visit_t visit;
    given.root = mc_comm_rank_of(&h->order, given.root);
    const mc_needs_t needs = mc_args_needs(h, &given);
    int status = job ? mc_cuda_check() : MESHCOLL_ERR_NO_MEMORY;
    if (!status)
        status = mc_gpu_context(&call->buffer, &context);
    if (!status)
        status = mc_gpu_visit(context, &visit);
    if (status)
        return status;
    struct mc_stage *s = spare_of(job, context);
    status = s ? MESHCOLL_OK : open_stage(context, &s);
    if (!status)
        status = place(s, &needs, &call->args);
    mc_gpu_leave(&visit);
    call->on_device = status;
    if (status && s)
        give_back(job, s);
    else if (!status)
        *stage = s;
    return status;
}

/* Copying ----------------------------------------------------------------------------------------- */

static int copy(const struct mc_stage *s, bool in)
{
    const mc_cuda_t *const cuda = mc_cuda();
    const part_t *const p = in ? &s->in : &s->out;
    const char *const what = in ? "copy a vector to the host" : "copy a vector from the host";
    mc_gpu_visit_t visit;
    if (p->bytes == 0)
        return MESHCOLL_OK;
    int status = mc_gpu_visit(s->context, &visit);
    if (status)
        return status;
    status = mc_cuda_status(in ? cuda->copy_out(p->host, p->device, p->bytes, s->stream)
                               : cuda->copy_in(p->device, p->host, p->bytes, s->stream),
                            what);
    if (!status)
        status = mc_cuda_status(cuda->stream_synchronize(s->stream), what);
    mc_gpu_leave(&visit);
    return status;
}

/* Once the mesh's calls before this one are complete on the GPU. */
static int copy_in(meshcoll_t *h, const struct mc_stage *s)
{
    mc_gpu_await(h);
    return copy(s, true);
}

/* Calls ------------------------------------------------------------------------------------------- */

int mc_staged_run(meshcoll_t *h, mc_call_t *call)
{
    struct mc_stage *stage;
    meshcoll_request_t *r;
    call->given = NULL; /* or the same addresses would be taken for the host's next time */
    int status = take(h, call, &stage);
    if (status)
        return mc_call_refused(h, call, status);
    status = copy_in(h, stage);
    status = status ? mc_call_refused(h, call, status) : mc_call_start(h, call, &r);
    if (!status)
        status = mc_request_complete(r);
    if (!status)
        status = copy(stage, false);
    give_back(h->job->gpu, stage);
    return status;
}

/* Persistent requests ----------------------------------------------------------------------------- */

typedef struct {
    mc_persistent_t own; /* first */
    struct mc_stage *stage;
} staged_t;

static int start(meshcoll_request_t *r)
{
    const int status = copy_in(r->mesh, ((const staged_t *)r)->stage);
    return status ? status : mc_run_begin(r);
}

static int finish(meshcoll_request_t *r)
{
    return r->status ? r->status : copy(((const staged_t *)r)->stage, false);
}

static void release(meshcoll_request_t *r)
{
    if (((const staged_t *)r)->stage)
        free_stage(((const staged_t *)r)->stage);
    mc_persistent_release(r);
}

static const mc_request_kind_t kind = {.bytes = sizeof(staged_t),
                                       .blocks = true,
                                       .is_run = true,
                                       .start = start,
                                       .advance = mc_run_advance,
                                       .cancel = mc_run_cancel,
                                       .finish = finish,
                                       .release = release};

int mc_staged_init(meshcoll_t *h, mc_call_t *call, meshcoll_request_t **request)
{
    struct mc_stage *stage;
    int status = take(h, call, &stage);
    if (status)
        return mc_call_refused(h, call, status);
    status = mc_call_persist(h, call, &kind, request);
    if (status)
        free_stage(stage);
    else
        ((staged_t *)*request)->stage = stage;
    return status;
}

int mc_staged_refuse(const meshcoll_args_t *a)
{
    return mc_fail(
        MESHCOLL_ERR_UNSUPPORTED,
        "%s in a stream: there is no kernel for this operation (%s of %s), which runs on "
        "the host, and a stream does not wait for other ranks there: use the blocking "
        "call, or meshcoll_init and meshcoll_start",
        meshcoll_collective_name(a->collective), meshcoll_op_name(a->op),
        meshcoll_datatype_name(a->datatype));
}
