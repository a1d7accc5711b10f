#include "runtime/call/staged.h"

#include "gpu/launch/stage.h"
#include "runtime/request/leads.h"
#include "runtime/request/request.h"

/* Peers learn it, as of any call that is refused. */
static int refuse(meshcoll_t *h, const mc_asked_t *asked, int status)
{
    return mc_call_refused(h, &(mc_refused_t){asked->number, false, true}, status);
}

static int run_on_host(meshcoll_t *h, const mc_asked_t *asked)
{
    meshcoll_request_t *r;
    const int status = mc_call_start(h, asked, &r);
    if (status)
        return status;
    (void)mc_request_await(r);
    return mc_request_tell(r);
}

int mc_staged_call_run(meshcoll_t *h, const mc_asked_t *asked, const mc_call_memory_t *memory)
{
    mc_asked_t on_host = *asked;
    struct mc_stage *stage;
    on_host.given = NULL; /* or the same addresses would be taken for the host's next time */
    int status = mc_stage_take(h, &memory->buffer, &on_host.args, &stage);
    if (status)
        return refuse(h, asked, status);
    status = mc_stage_in(h, stage);
    status = status ? refuse(h, asked, status) : run_on_host(h, &on_host);
    if (!status)
        status = mc_stage_out(stage);
    mc_stage_return(h, stage);
    return status;
}

/* Persistent requests ----------------------------------------------------------------------------- */

static int before(meshcoll_request_t *r)
{
    return mc_stage_in(r->mesh, r->stage);
}
static int after(meshcoll_request_t *r)
{
    return mc_stage_out(r->stage);
}
static void release(meshcoll_request_t *r)
{
    mc_stage_free(r->stage);
    mc_request_destroy(r);
}

void mc_staged_keep(meshcoll_request_t *r, struct mc_stage *stage)
{
    r->stage = stage;
    r->before = before;
    r->after = after;
    r->release = release;
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
