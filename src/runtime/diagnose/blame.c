#include "runtime/diagnose/blame.h"

#include "transport/transport.h"

#include <inttypes.h>

/* Following -------------------------------------------------------------------------------------- */

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

static bool is_destroying(const mc_waits_t *at)
{
    for (int32_t i = 0; i < at->n && i < MC_WAITS_REQUESTS; i++)
        if (at->wait[i].kind == MC_WAIT_DESTROY)
            return true;
    return false;
}

int32_t mc_blame_find_absent(const mc_waits_t *self, const mc_ask_t *ask)
{
    mc_waits_t at;
    for (int32_t r = 0; r < self->size; r++)
        if (r != self->rank && (ask->rank(ask->context, r, 0, &at) || !is_destroying(&at)))
            return r;
    return -1;
}

static mc_call_made_t has_made(const mc_waits_t *at, const mc_wait_t *w)
{
    if (w->kind == MC_WAIT_DESTROY)
        return is_destroying(at) ? MC_CALL_MADE : MC_CALL_NOT_MADE;
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

static int32_t find_in_chain(const mc_blame_t *b, int32_t known_as)
{
    int32_t i = 0;
    while (i < b->n && b->chain[i] != known_as)
        i++;
    return i;
}

static int32_t broken_by(const mc_waits_t *at)
{
    for (int32_t i = 0; i < at->n_meshes && i < MC_WAITS_MESHES; i++)
        if (at->mesh[i].broken)
            return at->mesh[i].broken;
    return MESHCOLL_OK;
}

/* The rank waits for nobody. */
static void settle(const mc_waits_t *at, mc_blame_t *b)
{
    b->broken = broken_by(at);
    if (at->n > 0) {
        b->kind = MC_BLAME_BUSY;
        b->own = at->wait[0];
    } else {
        b->kind = b->broken ? MC_BLAME_FAILED : at->has_last ? MC_BLAME_LATE : MC_BLAME_AWAY;
        b->own = at->last;
    }
}

/* One step: asks the rank that the last of the chain waits for. false: that is the rank to blame. */
__attribute__((noinline)) static bool follow(const mc_ask_t *ask, double end, mc_blame_t *b)
{
    mc_waits_t at;
    b->circle = find_in_chain(b, b->wait.known_as);
    if (b->circle < b->n) {
        b->kind = MC_BLAME_CIRCLE;
        return false;
    }
    b->kind = MC_BLAME_SILENT;
    if (ask->rank(ask->context, b->wait.peer, 0, &at))
        return false;
    b->made = has_made(&at, &b->wait);
    b->looked_ms = at.looked_ms;
    const mc_wait_t *const next = find_next(&at, &b->wait);
    if (!next) {
        settle(&at, b);
        return false;
    }
    b->own = *next;
    b->kind = MC_BLAME_FAR;
    if (b->n == MC_BLAME_HOPS || mc_now() > end)
        return false;
    b->chain[b->n++] = b->wait.known_as;
    b->wait = b->own;
    return true;
}

/* A rank that polls, and gets no core for long, looks as if it had left the library. Where it was last seen to wait
 * for one that does not answer, or that one for such a rank, that is the one to blame; else nobody knows. */
static void look_behind(const mc_ask_t *ask, double end, mc_blame_t *b)
{
    mc_blame_t behind = *b;
    while (behind.kind == MC_BLAME_LATE && behind.n < MC_BLAME_HOPS && mc_now() <= end) {
        behind.chain[behind.n++] = behind.wait.known_as;
        behind.wait = behind.own;
        while (follow(ask, end, &behind))
            continue;
    }
    if (behind.kind == MC_BLAME_SILENT)
        *b = behind;
}

bool mc_blame_find(const mc_waits_t *self, const mc_wait_t *wait, const mc_ask_t *ask,
                   mc_blame_t *blame)
{
    const double end = mc_now() + MC_BLAME_MS / 1000.0;
    mc_blame_t b = {.wait = *wait, .n = 1, .chain = {self->known_as}};
    if (wait->peer < 0)
        return false;
    while (follow(ask, end, &b))
        continue;
    look_behind(ask, end, &b);
    *blame = b;
    return true;
}

/* Text ------------------------------------------------------------------------------------------- */

static void print_away(const mc_blame_t *b, mc_text_t *text)
{
    if (b->made != MC_CALL_UNKNOWN) {
        /* it may have made another one: a call of no elements sends nothing */
        mc_text_add(text, b->made == MC_CALL_MADE
                              ? " has made a call of this number, but does not progress "
                              : " has not made ");
        mc_wait_print_call(&b->wait, text);
        mc_text_add(text, ": it");
    }
    if (b->looked_ms >= 0)
        mc_text_add(text, " has not been waiting in the library for %.1f s",
                    (double)b->looked_ms / 1000);
    else
        mc_text_add(text, " is not waiting in the library");
}

static void print_late(const mc_blame_t *b, mc_text_t *text)
{
    mc_text_add(text, " was last seen in the library %.1f s ago, where it waited for ",
                (double)b->looked_ms / 1000);
    mc_wait_print_rank(b->own.known_as, &b->own.place, text);
    mc_text_add(text, "; why it is late is not known");
}

static void print_circle(const mc_blame_t *b, mc_text_t *text)
{
    mc_text_add(text, "ranks wait for one another: rank %" PRId32, b->chain[b->circle]);
    for (int32_t i = b->circle + 1; i < b->n; i++)
        mc_text_add(text, " for %" PRId32 ", %" PRId32, b->chain[i], b->chain[i]);
    mc_text_add(text, " for %" PRId32 "; all ranks must make the same calls in the same order",
                b->chain[b->circle]);
}

/* Who waits for the rank to blame, where others than this one do. */
static void print_chain(const mc_blame_t *b, mc_text_t *text)
{
    if (b->n < 2 || b->kind == MC_BLAME_CIRCLE)
        return;
    mc_text_add(text, "; rank %" PRId32 " waits for", b->chain[0]);
    for (int32_t i = 1; i < b->n; i++)
        mc_text_add(text, " rank %" PRId32 ", which waits for", b->chain[i]);
    mc_text_add(text, " it");
}

void mc_blame_print(const mc_blame_t *b, mc_text_t *text)
{
    if (b->kind == MC_BLAME_CIRCLE) {
        print_circle(b, text);
        return;
    }
    mc_wait_print_rank(b->wait.known_as, &b->wait.place, text);
    switch (b->kind) {
    case MC_BLAME_SILENT:
        mc_text_add(text, " does not answer: it is stopped, has ended or cannot be reached");
        break;
    case MC_BLAME_AWAY:
        print_away(b, text);
        break;
    case MC_BLAME_LATE:
        print_late(b, text);
        break;
    case MC_BLAME_FAILED:
        mc_text_add(text, " has failed: %s", meshcoll_status_string(b->broken));
        break;
    default:
        mc_text_add(text, b->kind == MC_BLAME_BUSY ? " waits for no rank: " : " waits too: ");
        mc_wait_print(&b->own, MC_WAIT_SHORT, text);
    }
    print_chain(b, text);
}
