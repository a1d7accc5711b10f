#include "runtime/diagnose/waits/verdict.h"

#include "transport/transport.h"

#include <inttypes.h>

static const mc_waits_mesh_t *find_mesh(const mc_waits_t *at, uint32_t id)
{
    for (int32_t i = 0; i < at->n_meshes && i < MC_WAITS_MESHES; i++)
        if (at->mesh[i].id == id)
            return &at->mesh[i];
    return NULL;
}

/* Numbers wrap; that of a call is at most half of their range away. */
static bool is_taken(uint32_t n_taken, uint32_t number)
{
    return n_taken > 0 && (n_taken - 1 - number) % MC_TAG_CALLS < MC_TAG_CALLS / 2;
}

bool mc_waits_to_destroy(const mc_waits_t *at)
{
    for (int32_t i = 0; i < at->n && i < MC_WAITS_REQUESTS; i++)
        if (at->wait[i].kind == MC_WAIT_DESTROY)
            return true;
    return false;
}

static mc_call_made_t has_made(const mc_waits_t *at, const mc_wait_t *w)
{
    if (w->kind == MC_WAIT_DESTROY)
        return mc_waits_to_destroy(at) ? MC_CALL_MADE : MC_CALL_NOT_MADE;
    const mc_waits_mesh_t *const mesh = find_mesh(at, w->mesh);
    if (w->kind == MC_WAIT_SEND || w->kind == MC_WAIT_RECV || w->kind == MC_WAIT_LEAD ||
        (!mesh && at->n_meshes >= MC_WAITS_MESHES))
        return MC_CALL_UNKNOWN;
    if (!mesh)
        return MC_CALL_NOT_MADE;
    if (w->is_persistent)
        return mesh->n_persistent > w->number ? MC_CALL_UNKNOWN : MC_CALL_NOT_MADE;
    return is_taken(mesh->n_calls, w->number) ? MC_CALL_MADE : MC_CALL_NOT_MADE;
}

/* Returns what the rank waits for: in the same call, else in its oldest; NULL: for nobody. */
static const mc_wait_t *find_next(const mc_waits_t *at, const mc_wait_t *w)
{
    const mc_wait_t *first = NULL;
    for (int32_t i = 0; i < at->n && i < MC_WAITS_REQUESTS; i++) {
        const mc_wait_t *const next = &at->wait[i];
        if (next->peer >= 0 && mc_wait_same_call(next, w))
            return next;
        if (next->peer >= 0 && !first)
            first = next;
    }
    return first;
}

/* The rank waits for nobody. */
static void settle(const mc_waits_t *at, mc_verdict_t *v)
{
    v->broken = at->broken;
    if (at->n > 0) {
        v->kind = MC_PEER_BUSY;
        v->own = at->wait[0];
    } else {
        v->kind = v->broken ? MC_PEER_FAILED : at->has_last ? MC_PEER_LATE : MC_PEER_AWAY;
        v->own = at->last;
    }
}

mc_verdict_t mc_verdict_of(const mc_wait_t *wait, const mc_waits_t *peer)
{
    mc_verdict_t v = {.kind = MC_PEER_SILENT, .wait = *wait};
    if (!peer)
        return v;
    v.made = has_made(peer, wait);
    v.looked_ms = peer->looked_ms;
    const mc_wait_t *const next = find_next(peer, wait);
    if (!next) {
        settle(peer, &v);
        return v;
    }
    v.kind = MC_PEER_WAITS;
    v.own = *next;
    return v;
}

MC_APART static mc_verdict_t ask(const mc_peer_query_t *query, const mc_wait_t *wait)
{
    mc_waits_t at;
    const int silent = query->rank(query->context, wait->peer, &at);
    return mc_verdict_of(wait, silent ? NULL : &at);
}

mc_verdict_t mc_verdict_find(const mc_peer_query_t *query, const mc_wait_t *wait, int32_t most,
                             double seconds)
{
    const double end = mc_now() + seconds;
    mc_verdict_t v = ask(query, wait);
    for (int32_t i = 0; i < most && v.kind == MC_PEER_WAITS && mc_now() <= end; i++)
        v = ask(query, &v.own);
    mc_verdict_t behind = v;
    for (int32_t i = 0; i < most && v.kind == MC_PEER_LATE && mc_now() <= end; i++)
        if (behind.kind == MC_PEER_LATE || behind.kind == MC_PEER_WAITS)
            behind = ask(query, &behind.own);
    return behind.kind == MC_PEER_SILENT ? behind : v;
}

/* Text ------------------------------------------------------------------------------------------- */

static void print_away(const mc_verdict_t *v, mc_text_t *text)
{
    if (v->made != MC_CALL_UNKNOWN) {
        /* it may have made another one: a call of no elements sends nothing */
        mc_text_add(text, v->made == MC_CALL_MADE
                              ? " has made a call of this number, but does not progress "
                              : " has not made ");
        mc_wait_print_call(&v->wait, text);
        mc_text_add(text, ": it");
    }
    if (v->looked_ms >= 0)
        mc_text_add(text, " has not been waiting in the library for %.1f s",
                    (double)v->looked_ms / 1000);
    else
        mc_text_add(text, " is not waiting in the library");
}

static void print_late(const mc_verdict_t *v, mc_text_t *text)
{
    mc_text_add(text, " was last seen in the library %.1f s ago, where it waited for ",
                (double)v->looked_ms / 1000);
    mc_wait_print_rank(v->own.known_as, &v->own.place, text);
    mc_text_add(text, "; why it is late is not known");
}

void mc_verdict_print(const mc_verdict_t *v, mc_text_t *text)
{
    mc_wait_print_rank(v->wait.known_as, &v->wait.place, text);
    switch (v->kind) {
    case MC_PEER_SILENT:
        mc_text_add(text, " does not answer: it is stopped, has ended or cannot be reached");
        break;
    case MC_PEER_AWAY:
        print_away(v, text);
        break;
    case MC_PEER_LATE:
        print_late(v, text);
        break;
    case MC_PEER_FAILED:
        mc_text_add(text, " has failed: %s", meshcoll_status_string(v->broken));
        break;
    default:
        mc_text_add(text, v->kind == MC_PEER_BUSY ? " waits for no rank: " : " waits too: ");
        mc_wait_print(&v->own, MC_WAIT_SHORT, text);
    }
}
