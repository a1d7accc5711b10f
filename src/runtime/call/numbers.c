/*
 * Numbers of persistent requests, which are given out again.
 *
 * A persistent request keeps its number until it is freed, which each rank does at a time of its own; and all ranks must
 * give the next request the same number. So the range has two halves. Numbers are taken from one of them in order, and
 * when that is used up, from the other one, without those that any rank still uses there. Ranks find out which these are
 * while the half before is used up, by an allreduce of a bit each, that begins at the same request on all ranks: until
 * its result is used no number of that half is given out, so that what is free on all ranks stays free. A rank waits for
 * it only if it is half a range of requests ahead of another, or where most numbers are in use.
 */
#include "runtime/call/numbers.h"

#include "runtime/call/cache.h"
#include "runtime/connect/connections.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

enum { HALF = MC_PERSISTENT_NUMBERS / 2, WORDS = (HALF + 63) / 64 };

typedef struct mc_census {
    uint64_t
        used[WORDS]; /* of the half from which numbers are taken, on any rank when it was asked */
    uint64_t other[WORDS];    /* of the other one, of this rank, then of all */
    meshcoll_request_t *asks; /* NULL: it is complete */
} mc_census_t;

static void mark(uint64_t *word, uint32_t half, uint32_t number)
{
    const uint32_t at = number - MC_CALL_NUMBERS - half * HALF;
    if (number >= MC_CALL_NUMBERS && at < HALF)
        word[at / 64] |= UINT64_C(1) << at % 64;
}

/* Those of requests, and of barriers of their leads, which may outlive them. */
static void count_used(const meshcoll_t *h, uint32_t half, uint64_t *word)
{
    memset(word, 0, WORDS * sizeof *word);
    for (const mc_list_node_t *n = h->requests.first; n; n = n->next) {
        const meshcoll_request_t *const r = mc_request_of_mesh(n);
        if (r->persistent)
            mark(word, half, r->number);
        else if (r->running && r->number < MC_FIRST_BARRIER)
            mark(word, half, r->number - MC_PERSISTENT_NUMBERS);
    }
}

/* After a failure the mesh starts nothing that could ask again. */
static int finish(meshcoll_request_t *r)
{
    ((mc_census_t *)mc_run_of(r)->task)->asks = NULL;
    return r->status;
}

static const mc_request_kind_t census_kind = {MC_CACHED_RUN, .is_internal = true,
                                              .waits = MC_WAIT_LEAD, .finish = finish};

/* Nobody waits for it yet, however late other ranks are. */
static int ask(meshcoll_t *h, mc_census_t *c, uint32_t half)
{
    const mc_pacing_t pacing = mc_handle_pacing(h);
    const mc_planner_query_t query = {
        .bytes = sizeof c->other, .max_segments = 1, .pacing = &pacing};
    mc_call_t call = {.args = {.collective = MESHCOLL_ALLREDUCE,
                               .in = c->other,
                               .out = c->other,
                               .count = WORDS,
                               .datatype = MESHCOLL_UINT64,
                               .op = MESHCOLL_BOR,
                               .strategy = "the planner's"}, /* a name for MESHCOLL_EXPLAIN */
                      .number.own = MC_CENSUS_NUMBER};
    mc_run_t *run;
    count_used(h, half, c->other);
    int status = mc_planner_best(MESHCOLL_ALLREDUCE, &h->mesh, &h->links, &query, &call.best);
    if (!status)
        status = mc_cache_prepare(h, &call, &census_kind, c, &run);
    if (status)
        return status;
    c->asks = &run->head;
    run->head.watched.limit = -1;
    status = mc_request_start(&run->head);
    if (status) {
        c->asks = NULL;
        mc_request_drop(&run->head);
    }
    return status;
}

static int await_answer(meshcoll_t *h, mc_census_t *c)
{
    mc_waiting_t waiting = {0};
    if (!c->asks)
        return MESHCOLL_OK;
    if (mc_callback_check("meshcoll_init of a request whose number other ranks have not "
                          "confirmed yet"))
        return MESHCOLL_ERR_INVALID_ARG;
    c->asks->watched.limit = 0;
    while (c->asks && !h->job->failure.status)
        mc_wait_turn(h, &waiting);
    return mc_failure_check(h);
}

/* Goes on with the other half. What fails ends the mesh, as other ranks go on. */
static int turn(meshcoll_t *h)
{
    mc_persistent_numbers_t *const p = &h->calls.persistent;
    const bool first = !p->census;
    if (first && !(p->census = calloc(1, sizeof *p->census)))
        return mc_fail_memory("numbers of persistent requests");
    int status = first ? MESHCOLL_OK : await_answer(h, p->census);
    if (status)
        return status;
    memcpy(p->census->used, p->census->other, sizeof p->census->used);
    p->half = 1 - p->half;
    p->at = 0;
    return h->mesh.size > 1 ? ask(h, p->census, 1 - p->half)
                            : (count_used(h, 1 - p->half, p->census->other), MESHCOLL_OK);
}

static bool is_used(const mc_persistent_numbers_t *p)
{
    return p->census && p->census->used[p->at / 64] >> p->at % 64 & 1;
}

int mc_persistent_take(meshcoll_t *h, uint32_t *number)
{
    mc_persistent_numbers_t *const p = &h->calls.persistent;
    *number = MC_FIRST_BARRIER; /* of no request */
    atomic_fetch_add_explicit(&h->calls.n_persistent, 1, memory_order_relaxed);
    for (int turns = 0;; turns++) {
        while (p->at < HALF && is_used(p))
            p->at++;
        if (p->at < HALF) {
            *number = MC_CALL_NUMBERS + p->half * HALF + p->at++;
            return MESHCOLL_OK;
        }
        if (turns == 3) /* after the first, both halves were asked about anew */
            return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                           "%d persistent requests of this mesh exist, on all ranks together: "
                           "expected fewer; free some",
                           2 * HALF);
        const int status = turn(h);
        if (status)
            return status;
    }
}
