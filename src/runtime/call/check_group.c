#include "runtime/call/check_group.h"

#include "runtime/check/check.h"
#include "runtime/progress/failure.h"
#include "runtime/request/numbers.h"

#include <stdlib.h>

void mc_seen_open(meshcoll_t *h, mc_seen_t *seen)
{
    if (h->checks)
        seen->number = mc_take_numbers(h, false, false).check;
    seen->n = seen->n_made = 0;
    seen->hash = 0;
    seen->is_refused = false;
}

int mc_seen_add(const meshcoll_t *h, mc_seen_t *seen, const mc_asked_t *asked)
{
    const mc_asking_t asking = {
        .args = &asked->args, .number = asked->number.own, .is_barrier = asked->is_barrier};
    mc_fingerprint_t *const grown = mc_grown(seen->call, seen->n, &seen->capacity, sizeof *grown);
    if (!grown)
        return mc_fail_memory("the calls of a group");
    seen->call = grown;
    seen->n_made++;
    seen->call[seen->n] = mc_fingerprint_of(h, &asking);
    seen->hash = mc_fingerprint_add(seen->hash, &seen->call[seen->n++]);
    return MESHCOLL_OK;
}

void mc_seen_refuse(const meshcoll_t *h, mc_seen_t *seen)
{
    seen->n_made++;
    if (seen->is_refused)
        return;
    seen->is_refused = true;
    seen->refused = mc_fingerprint_refused(h, 0);
}

/* The groups are of the same length: which call is it? */
static int compare_calls(meshcoll_t *h, const mc_seen_t *seen)
{
    mc_differ_t differ;
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < seen->n && !status; i++)
        status = mc_check_wait(h, &seen->call[i], mc_next_call(h), &differ);
    return status;
}

int mc_seen_compare(meshcoll_t *h, const mc_seen_t *seen)
{
    mc_fingerprint_t whole = mc_fingerprint_group(h, seen->number, seen->n, seen->hash);
    if (seen->is_refused)
        whole = seen->refused;
    whole.number = seen->number;
    whole.count = seen->n_made;
    mc_differ_t differ;
    const int status = mc_check_wait(h, &whole, seen->number, &differ);
    if (status != MESHCOLL_ERR_MISMATCH || differ != MC_DIFFER_ELSE)
        return status;
    const int which = compare_calls(h, seen);
    return which ? which : status;
}
