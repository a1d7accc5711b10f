#include "runtime/call/start.h"

#include "runtime/call/check.h"
#include "runtime/call/choose_call.h"
#include "runtime/call/passing.h"
#include "runtime/progress/failure.h"
#include "runtime/request/leads.h"
#include "runtime/request/numbers.h"
#include "runtime/request/served.h"

void mc_call_number(meshcoll_t *h, const meshcoll_args_t *given, mc_asked_t *asked)
{
    asked->number = mc_next_call(h);
    if (mc_call_exchanges(given))
        asked->counts = mc_next_call(h);
    asked->check = mc_check_number(h, false);
}

/* Has the call compared with those of other ranks; one of a group already is. */
static int compare(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t *r)
{
    const mc_asking_t asking = {&asked->args, &r->choice.strategy, asked->number,
                                asked->is_barrier};
    const mc_fingerprint_t f = mc_fingerprint_of(h, &asking);
    return mc_check_begin(r, &f, asked->check);
}

/* Binds a request to a call's arguments, and for an alltoallv to the sizes of the blocks that pass
 * this rank. */
static int bind(const mc_asked_t *asked, meshcoll_request_t *r)
{
    const meshcoll_args_t *const a = &asked->args;
    return a->in_counts ? mc_passing_bind(r, a, asked->counts) : mc_call_bind(r, a, NULL);
}

/* Starts a request whose binding returned `status`. */
static int start(meshcoll_request_t *r, int status, meshcoll_request_t **request)
{
    if (!status)
        status = mc_request_start(r);
    if (status) {
        mc_request_drop(r);
        return status;
    }
    *request = r;
    return MESHCOLL_OK;
}

/* Calls that were made before -------------------------------------------------------------------- */

/* Remembers a call whose checks, choice and binding depend on nothing but its arguments and what
 * strategy is forced. Tables of counts may change in place, and a user's operation may be freed:
 * such calls are not remembered. */
static void make_known(meshcoll_t *h, const mc_asked_t *asked, mc_memory_t *choice,
                       meshcoll_request_t *r)
{
    const meshcoll_args_t *const a = asked->given;
    if (!a || a->size != sizeof *a || a->strategy || a->counts || a->in_counts ||
        a->counts_at_root || h->checks || (unsigned)a->op >= MESHCOLL_OPS || !r->cached || r->watch)
        return;
    r->known = (mc_known_t){*a, asked->is_barrier, choice, h->choice.n_forgotten,
                            mc_lead_bytes(h, &asked->args)};
    *mc_known_at(h, a) = r;
}

/* Binds the same operands to another workspace. */
static int bind_again(meshcoll_request_t *r)
{
    const mc_operands_t operands = r->operands;
    const int status = r->workspace ? mc_request_bind(r, &operands) : MESHCOLL_ERR_NO_MEMORY;
    if (status) /* the request has no binding then */
        r->known.choice = NULL;
    return status;
}

int mc_call_start_known(meshcoll_t *h, meshcoll_request_t *r, meshcoll_request_t **request)
{
    mc_call_take(h, r, mc_next_call(h));
    mc_choice_touch(&h->choice, r->known.choice);
    mc_lead_call(h, r->known.bytes, r);
    r->workspace = mc_take_memory(h);
    const bool stays = r->workspace && mc_request_stays(r);
    return start(r, stays ? MESHCOLL_OK : bind_again(r), request);
}

int mc_call_start(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request)
{
    const meshcoll_args_t *const a = &asked->args;
    mc_memory_t *choice;
    meshcoll_request_t *r;
    int status = mc_call_choose(h, a, asked->is_barrier, &choice);
    if (!status) {
        const mc_asking_t asking = {a, &choice->best.strategy, asked->number, asked->is_barrier};
        h->asking = h->checks ? NULL : &asking; /* compared below, by all ranks */
        status = mc_call_serve(h, a, choice, asked->number, &r);
        h->asking = NULL;
    }
    if (status) {
        if (asked->staging)
            mc_return_memory(h, asked->staging);
        return mc_call_refused(h, &(mc_refused_t){asked->number, asked->check, false, false},
                               status);
    }
    r->staging = asked->staging;
    if (!h->checks) /* the comparison bounds the lead, and calls that it ends count differently */
        mc_lead_call(h, mc_lead_bytes(h, a), r);
    status = asked->check ? compare(h, asked, r) : MESHCOLL_OK;
    if (!status)
        status = bind(asked, r);
    if (!status)
        make_known(h, asked, choice, r);
    else
        status = mc_failure_refused(h, asked->number, false, status);
    return start(r, status, request);
}
