#include <meshcoll/meshcoll.h>

#include "runtime/diagnose/waits/waits.h"

#include <inttypes.h>

void mc_wait_print_rank(int32_t known_as, const mc_wait_place_t *place, mc_text_t *text)
{
    mc_text_add(text, "rank %" PRId32, known_as);
    if (place->name[0])
        mc_text_add(text, " in %.*s %" PRId32, MC_WAIT_PLACE - 1, place->name, place->at);
}

static void print_peer(const mc_wait_t *w, mc_text_t *text)
{
    if (w->peer < 0) {
        mc_text_add(text, "any rank");
        return;
    }
    mc_wait_print_rank(w->known_as, &w->place, text);
    if (w->in_part >= 0)
        mc_text_add(text, " (rank %" PRId32 " of %.*s)", w->in_part, MC_WAIT_MESH - 1,
                    w->mesh_text);
}

static void print_tagged(const mc_wait_t *w, mc_text_t *text)
{
    const bool sends = w->kind == MC_WAIT_SEND;
    mc_text_add(text, "%s of %s%s %s ", sends ? "send" : "receive", sends ? "" : "at most ",
                mc_print_bytes((double)w->bytes).text, sends ? "to" : "from");
    print_peer(w, text);
    if (w->tag >= 0)
        mc_text_add(text, ", tag %" PRId32, w->tag);
    else
        mc_text_add(text, ", any tag");
}

static void print_elements(const mc_wait_t *w, mc_text_t *text)
{
    const char *const type = meshcoll_datatype_name((meshcoll_datatype_t)w->datatype);
    if (w->count > 0)
        mc_text_add(text, " of %" PRIu64 " %s, %s", w->count, type ? type : "elements",
                    mc_print_bytes((double)w->bytes).text);
}

static void print_collective(const mc_wait_t *w, mc_text_t *text)
{
    const char *const name = meshcoll_collective_name((meshcoll_collective_t)w->collective);
    if (w->kind == MC_WAIT_BARRIER) {
        mc_text_add(text, "barrier");
    } else if (w->kind == MC_WAIT_COUNTS) {
        mc_text_add(text, "exchange of an alltoallv's counts");
    } else {
        mc_text_add(text, "%s", name ? name : "?");
        print_elements(w, text);
    }
    mc_text_add(text, " (%s %" PRIu32, w->is_persistent ? "persistent operation" : "call",
                w->number);
    if (w->mesh != 0)
        mc_text_add(text, " on %.*s", MC_WAIT_MESH - 1, w->mesh_text);
    mc_text_add(text, ")");
}

static void print_lead(const mc_wait_t *w, mc_text_t *text)
{
    mc_text_add(text, "barrier of the library, between calls");
    if (w->mesh != 0)
        mc_text_add(text, " (on %.*s)", MC_WAIT_MESH - 1, w->mesh_text);
}

void mc_wait_print_call(const mc_wait_t *w, mc_text_t *text)
{
    if (w->kind == MC_WAIT_LEAD) {
        print_lead(w, text);
        return;
    }
    if (w->kind == MC_WAIT_DESTROY)
        mc_text_add(text, "meshcoll_destroy of its last mesh");
    else if (w->kind == MC_WAIT_SEND || w->kind == MC_WAIT_RECV)
        print_tagged(w, text);
    else
        print_collective(w, text);
}

void mc_wait_print_op(int32_t op, int32_t root, mc_text_t *text)
{
    if (op >= 0)
        mc_text_add(text, ", %s",
                    op < MESHCOLL_OPS ? meshcoll_op_name((meshcoll_op_t)op) : "a user operation");
    if (root >= 0)
        mc_text_add(text, ", root %" PRId32, root);
}

void mc_wait_print_asked(const mc_wait_t *w, mc_text_t *text)
{
    mc_wait_print_call(w, text);
    if (w->kind != MC_WAIT_COLLECTIVE)
        return;
    mc_wait_print_op(w->op, w->root, text);
    if (w->on_device)
        mc_text_add(text, ", in device memory");
}

bool mc_wait_same_call(const mc_wait_t *a, const mc_wait_t *b)
{
    return a->mesh == b->mesh && a->number == b->number && a->is_persistent == b->is_persistent &&
           ((a->kind <= MC_WAIT_COUNTS && b->kind <= MC_WAIT_COUNTS) ||
            (a->kind == MC_WAIT_LEAD && b->kind == MC_WAIT_LEAD));
}

static void print_place_in_plan(const mc_wait_t *w, mc_wait_form_t form, mc_text_t *text)
{
    if (form == MC_WAIT_LONG && w->strategy[0])
        mc_text_add(text, ", %.*s", MC_WAIT_STRATEGY - 1, w->strategy);
    if (w->steps == 0)
        return;
    mc_text_add(text, ":");
    if (w->phases > 0)
        mc_text_add(text, " phase %" PRId32 " of %" PRId32, w->phase + 1, w->phases);
    if (w->phases > 0 && w->phase_text[0])
        mc_text_add(text, " %.*s", MC_WAIT_PHASE - 1, w->phase_text);
    mc_text_add(text, "%s step %" PRIu32 " of %" PRIu32, w->phases > 0 ? "," : "", w->step + 1,
                w->steps);
}

/* By mc_awaited_t: the words before the message and before the peer; NULL where it has neither. */
static const struct {
    const char *words, *to;
} awaited[] = {
    [MC_AWAITS_WORK] = {"is at work itself", NULL},
    [MC_AWAITS_RECEIVE] = {"receives", "from"},
    [MC_AWAITS_SEND] = {"sends", "to"},
    [MC_AWAITS_CREDIT] = {"may send", "when asked or confirmed by"},
    [MC_AWAITS_GREETING] = {"connects to", ""},
    [MC_AWAITS_COUNTS] = {"exchanges the sizes of blocks", NULL},
    [MC_AWAITS_AGREEMENT] = {"waits until the ranks have agreed on it", NULL},
    [MC_AWAITS_FLUSH] = {"waits until the network has taken what was sent", NULL},
    [MC_AWAITS_ALL] = {"waits until all ranks have destroyed theirs", NULL},
};

static void print_awaited(const mc_wait_t *w, mc_text_t *text)
{
    const bool known = w->awaits >= 0 && (size_t)w->awaits < MC_COUNT(awaited);
    if (!known)
        return;
    mc_text_add(text, "%s", awaited[w->awaits].words);
    if (!awaited[w->awaits].to)
        return;
    if (awaited[w->awaits].to[0])
        mc_text_add(text, " %s %s", mc_print_bytes((double)w->message).text, awaited[w->awaits].to);
    mc_text_add(text, " ");
    print_peer(w, text);
}

/* Its call has named the peer and the bytes. */
static void print_awaited_tagged(const mc_wait_t *w, mc_text_t *text)
{
    if (w->awaits == MC_AWAITS_SEND || w->awaits == MC_AWAITS_CREDIT)
        mc_text_add(text, "is not received");
    else if (w->awaits == MC_AWAITS_RECEIVE)
        mc_text_add(text, w->message > 0 ? "its data is on the way" : "is not sent");
    else
        print_awaited(w, text);
}

void mc_wait_print_what(const mc_wait_t *w, mc_wait_form_t form, mc_text_t *text)
{
    mc_wait_print_call(w, text);
    print_place_in_plan(w, form, text);
    mc_text_add(text, ": ");
    if (w->kind == MC_WAIT_SEND || w->kind == MC_WAIT_RECV)
        print_awaited_tagged(w, text);
    else
        print_awaited(w, text);
}

void mc_wait_print(const mc_wait_t *w, mc_wait_form_t form, mc_text_t *text)
{
    mc_wait_print_what(w, form, text);
    mc_text_add(text, ", for %.1f s", (double)w->still_ms / 1000);
}

/* Texts are cut where they are printed. */
bool mc_waits_are_sound(const mc_waits_t *w, int32_t size)
{
    bool sound = w->rank >= 0 && w->rank < size && w->n_meshes >= 0 &&
                 w->n_meshes <= MC_WAITS_MESHES && w->n >= 0 && w->n <= MC_WAITS_REQUESTS;
    for (int32_t i = 0; sound && i < w->n; i++)
        sound = w->wait[i].peer >= -1 && w->wait[i].peer < size;
    return sound && w->last.peer >= -1 && w->last.peer < size;
}
