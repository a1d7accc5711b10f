#include "runtime/request/known.h"

#include "runtime/handle/args.h"

void mc_known_forget(meshcoll_request_t *r)
{
    if (!r->known.choice)
        return;
    meshcoll_request_t **const first = mc_known_at(r->mesh, r->known.kind, r->known.count);
    meshcoll_request_t *const next = r->known.next;
    next->known.before = r->known.before;
    r->known.before->known.next = next;
    if (*first == r)
        *first = next == r ? NULL : next;
    r->known.choice = NULL;
}

void mc_known_add(meshcoll_request_t *r, const meshcoll_args_t *given, uint64_t kind,
                  mc_memory_t *choice, int64_t bytes)
{
    meshcoll_request_t **const first = mc_known_at(r->mesh, kind, given->count);
    const mc_needs_t needs = mc_args_needs(r->mesh, given);
    const char *const in = given->in, *const out = given->out;
    mc_known_forget(r);
    r->known = (mc_known_t){.kind = kind,
                            .count = given->count,
                            .in = in,
                            .out = given->out,
                            .choice = choice,
                            .made = choice->made,
                            .forgotten = r->mesh->choice.n_forgotten,
                            .bytes = bytes,
                            .in_bytes = needs.in,
                            .out_bytes = needs.out,
                            .apart = !needs.in || !needs.out || in + needs.in <= out ||
                                     out + needs.out <= in,
                            .next = r,
                            .before = r};
    if (*first) {
        r->known.next = *first;
        r->known.before = (*first)->known.before;
        r->known.next->known.before = r->known.before->known.next = r;
    } else {
        *first = r;
    }
}
