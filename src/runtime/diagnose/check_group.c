#include "runtime/diagnose/diagnosis.h"

#include "runtime/call/leads.h"
#include "runtime/progress/failure.h"

uint32_t mc_check_group_opened(meshcoll_t *h)
{
    mc_checks_t *const c = &h->diagnosis->checks;
    c->number = mc_take_numbers(h, false, false).check;
    c->n = c->n_made = 0;
    c->hash = 0;
    c->is_refused = false;
    return c->number;
}

int mc_check_group_added(meshcoll_t *h, const mc_call_t *call)
{
    mc_checks_t *const c = &h->diagnosis->checks;
    mc_fingerprint_t *const grown = mc_grown(c->call, c->n, &c->capacity, sizeof *grown);
    if (!grown)
        return mc_fail_memory("the calls of a group");
    c->call = grown;
    c->n_made++;
    c->call[c->n] = mc_fingerprint_of(h, call);
    c->hash = mc_fingerprint_add(c->hash, &c->call[c->n++]);
    return MESHCOLL_OK;
}

void mc_check_group_refused(meshcoll_t *h)
{
    mc_checks_t *const c = &h->diagnosis->checks;
    c->n_made++;
    if (c->is_refused)
        return;
    c->is_refused = true;
    c->refused = mc_fingerprint_refused(h, 0);
}

/* The groups are of the same length: which call is it? */
static int compare_calls(meshcoll_t *h, const mc_checks_t *c)
{
    mc_differ_t differ;
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < c->n && !status; i++)
        status = mc_check_wait(h, &c->call[i], mc_next_call(h), &differ);
    return status;
}

int mc_check_group_ends(meshcoll_t *h)
{
    const mc_checks_t *const c = &h->diagnosis->checks;
    mc_fingerprint_t whole =
        c->is_refused ? c->refused : mc_fingerprint_group(h, c->number, c->n, c->hash);
    mc_differ_t differ;
    whole.number = c->number;
    whole.count = c->n_made;
    const int status = mc_check_wait(h, &whole, c->number, &differ);
    if (status != MESHCOLL_ERR_MISMATCH || differ != MC_DIFFER_ELSE)
        return status;
    const int which = compare_calls(h, c);
    return which ? which : status;
}
