#include "runtime/diagnose/check.h"

#include "runtime/call/call.h"

/* The groups are of the same length: which call is it? */
static int compare_calls(meshcoll_t *h)
{
    mc_differ_t differ;
    int status = MESHCOLL_OK;
    const mc_call_t *call;
    for (uint32_t i = 0; !status && (call = mc_group_call(h, i)); i++) {
        const mc_fingerprint_t f = mc_fingerprint_of(h, call);
        status = mc_check_wait(h, &f, mc_next_call(h), &differ);
    }
    return status;
}

static mc_fingerprint_t fingerprint(const meshcoll_t *h, uint32_t number)
{
    uint64_t hash = 0;
    const mc_call_t *call;
    for (uint32_t i = 0; (call = mc_group_call(h, i)); i++) {
        const mc_fingerprint_t f = mc_fingerprint_of(h, call);
        hash = mc_fingerprint_add(hash, &f);
    }
    return mc_fingerprint_group(h, number, hash);
}

int mc_check_group(meshcoll_t *h, uint32_t number, uint32_t n_made, const char *why)
{
    mc_differ_t differ;
    if (why)
        (void)mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s", why);
    mc_fingerprint_t whole = why ? mc_fingerprint_refused(h, number) : fingerprint(h, number);
    whole.count = n_made;
    const int status = mc_check_wait(h, &whole, number, &differ);
    if (status != MESHCOLL_ERR_MISMATCH || differ != MC_DIFFER_ELSE)
        return status;
    const int which = compare_calls(h);
    return which ? which : status;
}
