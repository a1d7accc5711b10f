#include "runtime/diagnose/fingerprint.h"

#include "base/hash.h"
#include "compose/algorithms/placement.h"
#include "runtime/diagnose/waits/requests.h"

#include <string.h>

static uint64_t hash_text(const char *text)
{
    return mc_fnv(MC_FNV_START, text, strlen(text));
}

/* Taking ----------------------------------------------------------------------------------------- */

/* Also clears what a struct may have between its fields. */
static mc_fingerprint_t empty(const meshcoll_t *h, mc_asks_t kind, uint32_t number)
{
    mc_fingerprint_t f;
    memset(&f, 0, sizeof f);
    f.kind = kind;
    f.number = number;
    f.part = (uint64_t)h->context.creation << 32 | h->context.number;
    f.op = f.root = -1;
    f.mesh = hash_text(h->text);
    return f;
}

static void take_strategy(const meshcoll_t *h, const mc_strategy_t *strategy, mc_fingerprint_t *f)
{
    char buffer[MC_STRATEGY_TEXT] = "";
    mc_text_t text = mc_text(buffer, sizeof buffer), start = mc_text(f->text, sizeof f->text);
    mc_strategy_print(strategy, &h->mesh, &text);
    f->strategy = hash_text(buffer);
    mc_text_add(&start, "%s", buffer);
}

/* Of an alltoallv, and where only the root has the counts, ranks know different counts. */
static void take_counts(const meshcoll_t *h, const meshcoll_args_t *a, mc_fingerprint_t *f)
{
    if (a->in_counts || a->counts_at_root) {
        f->blocks = 1;
        return;
    }
    f->count = a->count;
    if (a->counts)
        f->blocks = mc_fnv(MC_FNV_START, a->counts, (size_t)h->mesh.size * sizeof *a->counts);
}

static void take_args(const meshcoll_t *h, const meshcoll_args_t *a, mc_fingerprint_t *f)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    f->collective = (int32_t)a->collective;
    f->datatype = (int32_t)a->datatype;
    if (move->reduces)
        f->op = mc_wait_op(a->op);
    if (move->rooted)
        f->root = mc_comm_rank_of(&h->order, a->root);
    take_counts(h, a, f);
}

mc_fingerprint_t mc_fingerprint_of(const meshcoll_t *h, const mc_call_t *call)
{
    if (!call)
        return empty(h, MC_ASKS_NONE, 0);
    const mc_asks_t kind = call->is_barrier  ? MC_ASKS_BARRIER
                           : call->on_device ? MC_ASKS_ON_DEVICE
                                             : MC_ASKS_CALL;
    mc_fingerprint_t f = empty(h, kind, call->number.own);
    if (!call->is_barrier)
        take_args(h, &call->args, &f);
    f.window = call->window;
    f.window_at = call->window_at;
    if (call->is_chosen)
        take_strategy(h, &call->best.strategy, &f);
    else if (call->args.strategy)
        f.strategy = hash_text(call->args.strategy);
    return f;
}

mc_fingerprint_t mc_fingerprint_group(const meshcoll_t *h, uint32_t number, uint64_t hash)
{
    mc_fingerprint_t f = empty(h, MC_ASKS_GROUP, number);
    f.strategy = hash;
    return f;
}

uint64_t mc_fingerprint_add(uint64_t hash, const mc_fingerprint_t *f)
{
    return mc_fnv(hash ? hash : MC_FNV_START, f, sizeof *f);
}

mc_fingerprint_t mc_fingerprint_refused(const meshcoll_t *h, uint32_t number)
{
    mc_fingerprint_t f = empty(h, MC_ASKS_REFUSED, number);
    mc_text_t why = mc_text(f.text, sizeof f.text);
    mc_text_add(&why, "%s", meshcoll_last_error());
    return f;
}

/* Comparing -------------------------------------------------------------------------------------- */

bool mc_fingerprint_same(const mc_fingerprint_t *a, const mc_fingerprint_t *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool mc_fingerprint_agree(const mc_fingerprint_t *a, const mc_fingerprint_t *b)
{
    return a->kind == MC_ASKS_NONE || b->kind == MC_ASKS_NONE || a->number != b->number ||
           a->part != b->part || mc_fingerprint_same(a, b);
}

/* Printing ---------------------------------------------------------------------------------------- */

/* Does the plain text of a call tell these apart? */
static bool look_alike(const mc_fingerprint_t *a, const mc_fingerprint_t *b)
{
    return a->kind == b->kind && a->collective == b->collective && a->datatype == b->datatype &&
           a->op == b->op && a->root == b->root && a->count == b->count;
}

static void print_call(const mc_fingerprint_t *f, const char *kind, mc_text_t *text)
{
    mc_text_add(text, "%s%s%s of ", kind,
                meshcoll_collective_name((meshcoll_collective_t)f->collective),
                f->blocks ? "v" : "");
    if (f->blocks != 1)
        mc_text_add(text, "%llu ", (unsigned long long)f->count);
    mc_text_add(text, "%s", meshcoll_datatype_name((meshcoll_datatype_t)f->datatype));
    mc_wait_print_op(f->op, f->root, text);
}

static bool is_persistent(const mc_fingerprint_t *f)
{
    return f->number >= MC_TAG_CALLS;
}

static void print_window(const mc_fingerprint_t *f, mc_text_t *text)
{
    if (f->window == 0)
        mc_text_add(text, " with out outside of registered memory");
    else
        mc_text_add(text, " with out at byte %llu of registered memory%s",
                    (unsigned long long)f->window_at / 2, f->window_at % 2 ? ", in place" : "");
}

/* What a call is, and what else tells it from the first one. */
static void print_one(const mc_fingerprint_t *f, const mc_fingerprint_t *other, mc_text_t *text)
{
    const char *const kind = is_persistent(f) && !is_persistent(other) ? "persistent " : "";
    if (f->kind == MC_ASKS_CALL || f->kind == MC_ASKS_ON_DEVICE)
        print_call(f, kind, text);
    else if (f->kind == MC_ASKS_GROUP)
        mc_text_add(text, "a group of %llu calls", (unsigned long long)f->count);
    else
        mc_text_add(text, "a %sbarrier", kind);
    if (f->kind == MC_ASKS_ON_DEVICE && other->kind != f->kind)
        mc_text_add(text, " in device memory");
    if (!look_alike(f, other))
        return;
    if (f->mesh != other->mesh)
        mc_text_add(text, " on a mesh of another shape");
    else if (f->blocks != other->blocks)
        mc_text_add(text, " in blocks with hash %08x", (unsigned)(f->blocks ^ f->blocks >> 32));
    else if (f->strategy != other->strategy && f->kind != MC_ASKS_GROUP)
        mc_text_add(text, " by \"%s\"", f->text);
    else if (f->window != other->window || f->window_at != other->window_at)
        print_window(f, text);
}

/* Ranks from..n with the same fingerprint as rank `first`: "ranks 0, 2-7". More ranges than this are
 * not listed. */
enum { MOST_RANGES = 8 };
static void print_ranks(const mc_fingerprint_t *all, const int32_t *rank, int32_t n, int32_t first,
                        mc_text_t *text)
{
    char list[160];
    mc_text_t ranges = mc_text(list, sizeof list);
    int32_t n_ranks = 0, n_ranges = 0;
    for (int32_t i = first; i < n; i++) {
        if (!mc_fingerprint_same(&all[i], &all[first]))
            continue;
        const int32_t from = i;
        while (!rank && i + 1 < n && mc_fingerprint_same(&all[i + 1], &all[first]))
            i++;
        n_ranks += i - from + 1;
        if (++n_ranges > MOST_RANGES)
            continue;
        mc_text_add(&ranges, "%s%d", n_ranges > 1 ? ", " : "", rank ? rank[from] : from);
        if (i > from)
            mc_text_add(&ranges, "-%d", i);
    }
    mc_text_add(text, "%s %s%s", n_ranks > 1 ? "ranks" : "rank", list,
                n_ranges > MOST_RANGES ? ", …" : "");
}

/* Was this fingerprint told with that of a lower index? */
static bool is_printed(const mc_fingerprint_t *all, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (mc_fingerprint_same(&all[k], &all[i]))
            return true;
    return false;
}

/* The first entry that differs from entry i, of those to tell it from. */
static const mc_fingerprint_t *another(const mc_fingerprint_t *all, int32_t n, int32_t i)
{
    for (int32_t k = 0; k < n; k++)
        if (!mc_fingerprint_same(&all[k], &all[i]))
            return &all[k];
    return &all[i];
}

enum { MOST_PRINTED = 4 };
void mc_fingerprint_print(const mc_fingerprint_t *all, const int32_t *rank, int32_t n,
                          mc_text_t *text)
{
    const uint32_t number = all[0].number;
    int32_t n_printed = 0, n_asked = 0;
    mc_text_add(text, is_persistent(&all[0]) ? "persistent operation %u: " : "call %u: ",
                number % MC_TAG_CALLS);
    for (int32_t i = 0; i < n && n_printed < MOST_PRINTED; i++) {
        const bool refused = all[i].kind == MC_ASKS_REFUSED;
        if (is_printed(all, i))
            continue;
        mc_text_add(text, "%s", n_printed++ ? "; " : "");
        print_ranks(all, rank, n, i, text);
        mc_text_add(text, refused ? " was refused: " : n_asked++ ? " for " : " asked for ");
        if (refused)
            mc_text_add(text, "%s", all[i].text);
        else
            print_one(&all[i], another(all, n, i), text);
    }
}
