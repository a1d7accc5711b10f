#include "runtime/family/agree.h"

#include "runtime/message/messages.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <time.h>

/* BUSY: a member has offered nothing, since another creation is under way on it. FURTHER: the windows have
 * nothing in common; the next ones begin at `first`. */
enum { BUSY = 1, FURTHER };
enum { WINDOW = 7 }; /* words of 64 contexts that a note has room for */
enum { MOST_CHILDREN = 32 };
enum { BETWEEN_NS = 200 * 1000 };

typedef struct {
    uint64_t list;
    uint64_t free[WINDOW]; /* a bit per context, from word `first` on */
    uint32_t first;
    int32_t status; /* OK, BUSY, FURTHER or an error */
    uint32_t context;
    uint32_t creation;
} note_t;
_Static_assert(sizeof(note_t) <= MC_NOTE_BYTES, "it fits into a note");

/* A round: one way up and down the tree. */
typedef struct {
    const mc_agreement_t *a;
    note_t own;
    int32_t child[MOST_CHILDREN], n_children;
    note_t of[MOST_CHILDREN];
    bool has_failed[MOST_CHILDREN]; /* it knows, and waits for nothing */
    mc_transfer_t *transfer[MOST_CHILDREN];
} round_t;

static void find_children(round_t *r)
{
    const mc_agreement_t *const a = r->a;
    for (int64_t step = 1; a->me + step < a->n && (a->me & step) == 0; step *= 2)
        r->child[r->n_children++] =
            a->member[a->me + step]; /* at most 31: an int32_t counts them */
}

static int32_t up_of(const mc_agreement_t *a)
{
    return a->member[a->me & (a->me - 1)];
}

static int fail_mismatch(const mc_agreement_t *a, int32_t rank)
{
    return mc_fail(
        MESHCOLL_ERR_MISMATCH,
        "%s: the members disagree, as rank %d reports: expected the same ranks in the same "
        "order on all of them",
        a->function, mc_comm_rank_of(&a->parent->order, rank));
}

/* The word of its window that begins at `first`; those outside offer nothing. */
static uint64_t word_of(const note_t *note, uint32_t word)
{
    return word - note->first < WINDOW ? note->free[word - note->first] : 0;
}

static void intersect(note_t *own, const note_t *from)
{
    const note_t before = *own;
    own->first = before.first > from->first ? before.first : from->first;
    for (uint32_t w = 0; w < WINDOW; w++)
        own->free[w] = word_of(&before, own->first + w) & word_of(from, own->first + w);
}

/* Adds what a child offers. */
static int merge(round_t *r, int32_t c)
{
    const note_t *const from = &r->of[c];
    note_t *const own = &r->own;
    r->has_failed[c] = from->status == MESHCOLL_ERR_MISMATCH;
    if (from->list != own->list || r->has_failed[c])
        return fail_mismatch(r->a, r->child[c]);
    intersect(own, from);
    if (from->status < 0 ? from->status < own->status || own->status >= 0 : own->status == 0)
        own->status = from->status;
    if (mc_creation_before(own->creation, from->creation))
        own->creation = from->creation;
    return MESHCOLL_OK;
}

/* Takes notes that are here; returns how many are not. */
static int take_notes(round_t *r, int32_t *n_left)
{
    int status = MESHCOLL_OK;
    *n_left = 0;
    for (int32_t c = 0; c < r->n_children && !status; c++) {
        mc_transfer_t *const t = r->transfer[c];
        *n_left += t && t->request.running;
        if (!t || t->request.running)
            continue;
        r->transfer[c] = NULL;
        status = mc_request_complete(&t->request);
        if (!status)
            status = merge(r, c);
    }
    return status;
}

static void drop_all(round_t *r)
{
    for (int32_t c = 0; c < r->n_children; c++)
        mc_note_drop(r->a->parent, r->transfer[c]);
}

/* In any order: one that never calls must not keep this rank from hearing that others disagree. */
static int receive_children(round_t *r)
{
    meshcoll_t *const h = r->a->parent;
    int status = MESHCOLL_OK;
    mc_waiting_t waiting = {0};
    for (int32_t c = 0; c < r->n_children && !status; c++)
        status =
            mc_note_recv(h, r->child[c], r->a->tag, &r->of[c], sizeof r->of[c], &r->transfer[c]);
    for (int32_t n_left = 1; !status && n_left > 0;) {
        status = take_notes(r, &n_left);
        if (!status && n_left > 0)
            mc_wait_turn(h, &waiting);
    }
    drop_all(r);
    return status;
}

static int send_note(const round_t *r, int32_t to)
{
    mc_transfer_t *t;
    const int status = mc_note_send(r->a->parent, to, r->a->tag, &r->own, sizeof r->own, &t);
    if (status)
        return status;
    return mc_request_complete(&t->request);
}

static int receive_parent(round_t *r)
{
    mc_transfer_t *t;
    note_t told;
    int status = mc_note_recv(r->a->parent, up_of(r->a), r->a->tag, &told, sizeof told, &t);
    if (status)
        return status;
    status = mc_request_complete(&t->request);
    if (!status && (told.list != r->own.list || told.status == MESHCOLL_ERR_MISMATCH))
        status = fail_mismatch(r->a, up_of(r->a));
    if (!status)
        r->own = told;
    return status;
}

static int notify_children(const round_t *r)
{
    int status = MESHCOLL_OK;
    for (int32_t c = 0; c < r->n_children && !status; c++)
        if (!r->has_failed[c])
            status = send_note(r, r->child[c]);
    return status;
}

/* The smallest context that all members offer. Where they offer none: none is left, or the next round begins
 * at the latest of their first ones, or behind this round's windows, which all began at `from`. */
static void choose(note_t *note, uint32_t from)
{
    uint32_t w = 0;
    while (w < WINDOW && !note->free[w])
        w++;
    note->creation = mc_creation_next(note->creation);
    if (w < WINDOW)
        note->context = 64 * (note->first + w) + (uint32_t)__builtin_ctzll(note->free[w]);
    else if (!note->status && note->first < MC_CONTEXT_WORDS)
        note->status = FURTHER;
    else if (!note->status)
        note->status = MESHCOLL_ERR_UNSUPPORTED;
    note->first += note->first == from ? WINDOW : 0;
}

/* Tells neighbours in the tree that the members disagree, as far as they may wait for this rank. */
static int broadcast_mismatch(round_t *r, bool up)
{
    char why[256];
    mc_text_t text = mc_text(why, sizeof why);
    mc_text_add(&text, "%s", meshcoll_last_error());
    r->own.status = MESHCOLL_ERR_MISMATCH;
    if (up && r->a->me > 0)
        (void)send_note(r, up_of(r->a));
    (void)notify_children(r);
    return mc_fail(MESHCOLL_ERR_MISMATCH, "%s", why);
}

static int go_round(round_t *r, uint32_t from)
{
    const bool first = r->a->me == 0;
    find_children(r);
    int status = receive_children(r);
    if (status == MESHCOLL_ERR_MISMATCH)
        return broadcast_mismatch(r, true);
    if (!status && first)
        choose(&r->own, from);
    if (!status && !first)
        status = send_note(r, up_of(r->a));
    if (!status && !first)
        status = receive_parent(r);
    if (status == MESHCOLL_ERR_MISMATCH)
        return broadcast_mismatch(r, false);
    return status ? status : notify_children(r);
}

/* This rank's creations ------------------------------------------------------------------------- */

static bool goes_before(const mc_creating_t *a, const mc_creating_t *b)
{
    if (a->context != b->context)
        return a->context < b->context;
    return a->tag != b->tag ? a->tag < b->tag : a->members < b->members;
}

static bool may_offer(const mc_family_t *f, const mc_creating_t *own)
{
    bool first = !f->offered;
    for (const mc_creating_t *c = f->creating; c; c = c->next)
        first = first && !goes_before(c, own);
    return first;
}

static void unlink_creating(mc_family_t *f, const mc_creating_t *own)
{
    mc_creating_t **at = &f->creating;
    while (*at != own)
        at = &(*at)->next;
    *at = own->next;
}

/* Its window: from the first word on, of those from `from` on, that has a free one. Returns the words that it
 * reserves. */
static uint64_t offer(mc_family_t *f, uint32_t from, note_t *note)
{
    uint64_t words = 0;
    for (note->first = from; note->first < MC_CONTEXT_WORDS && !~f->used[note->first];)
        note->first++;
    for (uint32_t w = 0; w < WINDOW && note->first + w < MC_CONTEXT_WORDS; w++)
        words |= UINT64_C(1) << (note->first + w);
    words &= ~f->reserved;
    for (uint32_t w = 0; w < WINDOW && note->first + w < MC_CONTEXT_WORDS; w++)
        if (words >> (note->first + w) & 1)
            note->free[w] = ~f->used[note->first + w];
    f->reserved |= words;
    return words;
}

static int one_round(const mc_agreement_t *a, mc_family_t *f, const mc_creating_t *own, int status,
                     note_t *agreed)
{
    const uint32_t from = agreed->status == FURTHER ? agreed->first : 0;
    const bool offers = may_offer(f, own);
    round_t r = {.a = a,
                 .own = {.list = a->list,
                         .status = status   ? status
                                   : offers ? MESHCOLL_OK
                                            : BUSY,
                         .creation = f->latest}};
    const uint64_t reserved = offers ? offer(f, from, &r.own) : 0;
    f->offered = f->offered || offers;
    const int failed = go_round(&r, from);
    f->offered = f->offered && !offers;
    f->reserved &= ~reserved;
    *agreed = r.own;
    return failed;
}

static int conclude(const mc_agreement_t *a, int own_status, const note_t *agreed)
{
    if (own_status)
        return own_status;
    if (agreed->status == MESHCOLL_ERR_UNSUPPORTED)
        return mc_fail(agreed->status,
                       "%s: no context is left that is free on all members: a rank can be in %d "
                       "sub-meshes and groups at once; destroy some",
                       a->function, MC_CONTEXTS - 1);
    return agreed->status ? mc_fail(agreed->status, "%s: another rank failed: %s", a->function,
                                    meshcoll_status_string(agreed->status))
                          : MESHCOLL_OK;
}

/* Between two rounds. The thread that goes first needs the lock, which a mutex does not hand over. This one
 * waits for no request, so that nothing would wake it from a sleep without limit. */
static void let_others(meshcoll_t *h)
{
    mc_waiting_t waiting = {0};
    if (h->job->threads) {
        mc_threads_unlock(h->job->threads);
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_NS}, NULL);
        mc_threads_lock(h->job->threads);
    }
    mc_wait_turn(h, &waiting);
}

/* Its own error's text, in spite of what is done after it. */
static int fail_again(int status, const char *why)
{
    return status ? mc_fail(status, "%s", why) : MESHCOLL_OK;
}

int mc_context_agree(const mc_agreement_t *a, int status, uint32_t *context, uint32_t *creation)
{
    mc_job_t *const job = a->parent->job;
    mc_creating_t own = {.context = a->parent->context.number, .tag = a->tag, .members = a->list};
    char why[400];
    mc_text_t text = mc_text(why, sizeof why);
    note_t agreed = {.status = MESHCOLL_OK};
    if (status)
        mc_text_add(&text, "%s", meshcoll_last_error());
    int failed = mc_family_open(job);
    if (failed)
        return failed;
    mc_family_t *const f = job->family;
    own.next = f->creating;
    f->creating = &own;
    while (!(failed = one_round(a, f, &own, status, &agreed)) && agreed.status > 0)
        if (agreed.status == BUSY)
            let_others(a->parent);
    unlink_creating(f, &own);
    if (!failed)
        failed = conclude(a, fail_again(status, why), &agreed);
    if (failed)
        return failed;
    mc_creation_note(f, agreed.creation);
    mc_context_take(f, agreed.context);
    *context = agreed.context;
    *creation = agreed.creation;
    return MESHCOLL_OK;
}
