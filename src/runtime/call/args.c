/* Checks of a call's arguments; each refusal is one sentence. */
#include "runtime/call/args.h"

#include "compose/algorithms/placement.h"

#include <stdlib.h>
#include <string.h>

static int32_t own_rank(const meshcoll_t *h)
{
    return mc_comm_rank_of(&h->order, h->rank);
}

/* Returns the elements up to the end of the last block; *start: where this rank's block starts. */
static size_t extent_of(const meshcoll_t *h, const size_t *counts, const size_t *displs,
                        size_t *start)
{
    size_t end = 0, next = 0;
    for (int32_t r = 0; r < h->mesh.size; r++) {
        const size_t at = displs ? displs[r] : next;
        next += counts[r];
        if (counts[r] == 0)
            continue;
        if (r == own_rank(h))
            *start = at;
        if (at + counts[r] > end)
            end = at + counts[r];
    }
    return end;
}

mc_needs_t mc_args_needs(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    const bool at_root = own_rank(h) == a->root, blocks = mc_move_has_blocks(move);
    const size_t element = meshcoll_datatype_size(a->datatype), rank = (size_t)own_rank(h);
    size_t own = a->counts ? a->counts[rank] : a->count, start = rank * own;
    size_t whole = blocks ? own * (size_t)h->mesh.size : own, sent = whole;
    if (a->counts)
        whole = sent = extent_of(h, a->counts, a->displs, &start);
    if (a->in_counts)
        sent = extent_of(h, a->in_counts, a->in_displs, &start);
    mc_needs_t n = {.in = sent * element, .out = whole * element, .block = start * element};
    if (move->from == MC_SHARD)
        n.in = own * element;
    else if (move->from == MC_ROOT && !at_root)
        n.in = 0;
    if (move->to == MC_SHARD)
        n.out = own * element;
    else if (move->to == MC_ROOT && !at_root)
        n.out = 0;
    return n;
}

/* In place, both tables of an alltoallv must be equal, but for where empty blocks lie. */
static bool same_blocks(const meshcoll_t *h, const meshcoll_args_t *a)
{
    size_t in = 0, out = 0;
    bool same = true;
    for (int32_t r = 0; a->in_counts && r < h->mesh.size && same; r++) {
        same = a->in_counts[r] == a->counts[r] &&
               (a->counts[r] == 0 ||
                (a->in_displs ? a->in_displs[r] : in) == (a->displs ? a->displs[r] : out));
        in += a->in_counts[r];
        out += a->counts[r];
    }
    return same;
}

/* What a buffer consists of: one block, where there are no counts, or one for each rank. */
typedef struct {
    const char *base;
    const size_t *counts, *displs;
    size_t bytes, element; /* of the one; of an element of the others */
    int32_t n;
} blocks_t;

/* Its block after *at, which begins with 0, of the bytes *first to *end; false: there is none. */
static bool next_block(const blocks_t *b, int32_t *at, size_t *next, uintptr_t *first,
                       uintptr_t *end)
{
    for (; *at < b->n; ++*at) {
        const size_t count = b->counts ? b->counts[*at] : b->bytes;
        const size_t start = b->displs ? b->displs[*at] : *next;
        *next += count;
        if (count == 0)
            continue;
        *first = (uintptr_t)b->base + start * b->element;
        *end = *first + count * b->element;
        ++*at;
        return true;
    }
    return false;
}

static bool meets(const blocks_t *b, uintptr_t first, uintptr_t end)
{
    uintptr_t f, e;
    int32_t at = 0;
    size_t next = 0;
    bool met = false;
    while (!met && next_block(b, &at, &next, &f, &e))
        met = f < end && first < e;
    return met;
}

/* Of a buffer that has the blocks of all ranks where `whole`, and as many bytes up to the end of the last. */
static blocks_t blocks_of(const meshcoll_t *h, const meshcoll_args_t *a, const void *base,
                          size_t bytes, bool whole, bool is_in)
{
    const bool own = a->in_counts && is_in;
    blocks_t b = {.base = base, .bytes = bytes, .element = 1, .n = 1};
    if (!whole || !a->counts)
        return b;
    b.element = meshcoll_datatype_size(a->datatype);
    b.counts = own ? a->in_counts : a->counts;
    b.displs = own ? a->in_displs : a->displs;
    b.n = h->mesh.size;
    return b;
}

static bool overlap(const meshcoll_t *h, const meshcoll_args_t *a, const mc_needs_t *n)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    const blocks_t in = blocks_of(h, a, a->in, n->in, move->from != MC_SHARD, true);
    const blocks_t out = blocks_of(h, a, a->out, n->out, move->to != MC_SHARD, false);
    const uintptr_t i = (uintptr_t)a->in, o = (uintptr_t)a->out;
    uintptr_t first, end;
    int32_t at = 0;
    size_t next = 0;
    bool met = false;
    if (!n->in || !n->out || i + n->in <= o || o + n->out <= i)
        return false;
    while (!met && next_block(&in, &at, &next, &first, &end))
        met = first < o + n->out && o < end && meets(&out, first, end);
    return met;
}

static int check_place(const meshcoll_t *h, const meshcoll_args_t *a, const mc_needs_t *n)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    const char *const in = a->in;
    char *const out = a->out;
    if (!overlap(h, a, n))
        return MESHCOLL_OK;
    const bool in_block = move->from == MC_SHARD, out_block = move->to == MC_SHARD;
    const char *const wanted_in = in_block ? out + n->block : out_block ? in : out;
    const char *const wanted_out = out_block ? in + n->block : out;
    const char *const start = a->counts ? "displs[rank]" : "rank * count";
    if (in != wanted_in || out != wanted_out)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG, "%s: in and out overlap; in place means %s%s%s", move->name,
            in_block    ? "in == out + "
            : out_block ? "out == in + "
                        : "in == out",
            in_block || out_block ? start : "", in_block || out_block ? " elements" : "");
    if (!same_blocks(h, a))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: in place, in and out must have the same counts and displs", move->name);
    return MESHCOLL_OK;
}

static int check_buffers(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const char *const name = meshcoll_collective_name(a->collective);
    const mc_needs_t n = mc_args_needs(h, a);
    const int32_t rank = own_rank(h);
    if (n.in && !a->in)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: in is NULL, but rank %d has %zu bytes of input", name, rank, n.in);
    if (n.out && !a->out)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: out is NULL, but rank %d has %zu bytes of output", name, rank, n.out);
    return check_place(h, a, &n);
}

static int check_count(const meshcoll_t *h, const meshcoll_args_t *a)
{
    /* one product instead of two divisions per call */
    const size_t ranks = (size_t)h->mesh.size, all = ranks * meshcoll_datatype_size(a->datatype);
    size_t bytes;
    if (__builtin_mul_overflow(a->count, all, &bytes) || bytes > SIZE_MAX / 2)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: a count of %zu elements on %zu ranks overflows; at most %zu",
                       meshcoll_collective_name(a->collective), a->count, ranks,
                       SIZE_MAX / 2 / all);
    return MESHCOLL_OK;
}

/* Adds up the elements of all blocks, each below a limit at which no sum of them overflows. Where an empty one lies does
 * not matter. */
static int add_counts(const meshcoll_t *h, const meshcoll_args_t *a, const size_t *counts,
                      const size_t *displs, size_t *total)
{
    const size_t ranks = (size_t)h->mesh.size;
    const size_t most = SIZE_MAX / 4 / ranks / meshcoll_datatype_size(a->datatype);
    size_t sum = 0;
    for (size_t r = 0; r < ranks; r++) {
        const size_t at = displs && counts[r] > 0 ? displs[r] : 0;
        if (counts[r] > most || at > most * ranks)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "%s: rank %zu's block of %zu elements at %zu overflows; at most %zu",
                           meshcoll_collective_name(a->collective), r, counts[r], at, most);
        sum += counts[r];
    }
    *total = sum;
    return MESHCOLL_OK;
}

const size_t mc_no_counts[1];

/* Checks blocks of unequal sizes; drops displs of a buffer that this rank does not have. `count` becomes a number that all ranks know: the elements of all
 * blocks. */
static int check_blocks(const meshcoll_t *h, meshcoll_args_t *a)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    const bool exchange = a->collective == MESHCOLL_ALLTOALL;
    const size_t rank = (size_t)own_rank(h);
    size_t sent = 0, total = 0;
    if (a->counts == mc_no_counts || a->in_counts == mc_no_counts)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%sv: %scounts are NULL; expected one for each rank", move->name,
                       a->counts == mc_no_counts ? "" : "in_");
    if (!a->counts || !mc_move_has_blocks(move) || exchange != (a->in_counts != NULL))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: counts of blocks are for scatter, gather, allgather and "
                       "reduce_scatter; alltoall needs in_counts too",
                       move->name);
    if (move->rooted && own_rank(h) != a->root)
        a->displs = NULL;
    int status = add_counts(h, a, a->counts, a->displs, &total);
    if (!status && exchange)
        status = add_counts(h, a, a->in_counts, a->in_displs, &sent);
    if (status)
        return status;
    if (exchange && a->in_counts[rank] != a->counts[rank])
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: rank %zu sends itself %zu elements, and expects %zu", move->name, rank,
                       a->in_counts[rank], a->counts[rank]);
    if (!exchange && a->count != a->counts[rank])
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: count is %zu, but counts[%zu], of this rank, is %zu", move->name,
                       a->count, rank, a->counts[rank]);
    /* never 0 for an alltoallv: other ranks may exchange blocks where this one has none */
    a->count = exchange ? total + sent + 1 : total;
    return MESHCOLL_OK;
}

/* Checks blocks whose counts only the root has. Elsewhere `count` is of this rank's block. */
static int check_root_blocks(const meshcoll_t *h, meshcoll_args_t *a)
{
    const bool fits = a->collective == MESHCOLL_SCATTER || a->collective == MESHCOLL_GATHER;
    if (!fits || a->in_counts)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: counts at the root only (counts_at_root) are for scatter and gather",
                       meshcoll_collective_name(a->collective));
    if (own_rank(h) != a->root) {
        a->counts = a->displs = NULL;
        return check_count(h, a);
    }
    if (!a->counts)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%sv: counts are NULL; expected one for each rank, as rank %d is the root",
                       meshcoll_collective_name(a->collective), a->root);
    return check_blocks(h, a);
}

static int check_counts(const meshcoll_t *h, meshcoll_args_t *a)
{
    if (a->counts_at_root)
        return check_root_blocks(h, a);
    return a->counts || a->in_counts ? check_blocks(h, a) : check_count(h, a);
}

uint64_t mc_args_bytes(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const bool equal =
        mc_move_has_blocks(&mc_moves[a->collective]) && !a->counts && !a->counts_at_root;
    const uint64_t elements = a->in_counts ? (a->count - 1) / 2 : a->count; /* check_blocks */
    return elements * meshcoll_datatype_size(a->datatype) * (equal ? (uint64_t)h->mesh.size : 1);
}

int mc_args_own_counts(meshcoll_t *h, const meshcoll_args_t *args, mc_operands_t *operands)
{
    if (!args->counts_at_root || args->counts)
        return MESHCOLL_OK;
    if (!h->calls.own_counts)
        h->calls.own_counts = calloc((size_t)h->mesh.size, sizeof *h->calls.own_counts);
    if (!h->calls.own_counts)
        return mc_fail_memory("counts of blocks");
    h->calls.own_counts[own_rank(h)] = args->count - 1;
    operands->in_counts = operands->out_counts = h->calls.own_counts;
    return MESHCOLL_OK;
}

void mc_args_own_tables(meshcoll_args_t *args, size_t n, size_t *table)
{
    const size_t **const own[] = {&args->counts, &args->displs, &args->in_counts, &args->in_displs};
    for (size_t i = 0; i < MC_COUNT(own); i++)
        if (*own[i]) {
            *own[i] = memcpy(table, *own[i], n * sizeof *table);
            table += n;
        }
}

/* A caller's struct ends before `strategy`, `counts` or `counts_at_root`, or has all fields. */
static bool is_size(size_t size)
{
    return size == offsetof(meshcoll_args_t, strategy) ||
           size == offsetof(meshcoll_args_t, counts) ||
           size == offsetof(meshcoll_args_t, counts_at_root) || size >= sizeof(meshcoll_args_t);
}

int mc_args_check(const meshcoll_t *h, const meshcoll_args_t *given, meshcoll_args_t *args)
{
    meshcoll_args_t a = {0};
    if (!is_size(given->size))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_args_t.size is %zu: set it to sizeof(meshcoll_args_t)",
                       given->size);
    memcpy(&a, given, given->size < sizeof a ? given->size : sizeof a);
    if ((unsigned)a.collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "there is no collective %d", (int)a.collective);
    const mc_move_t *const move = &mc_moves[a.collective];
    if (meshcoll_datatype_size(a.datatype) == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: there is no datatype %d", move->name,
                       (int)a.datatype);
    if (!move->reduces)
        a.op = MESHCOLL_SUM;
    const int fits = move->reduces ? meshcoll_op_check(a.op, a.datatype) : MESHCOLL_OK;
    if (fits)
        return fits;
    if (!move->rooted)
        a.root = 0;
    if (a.root < 0 || a.root >= h->mesh.size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected a root from 0 to %d, got %d",
                       move->name, h->mesh.size - 1, a.root);
    int status = check_counts(h, &a);
    if (!status && a.count > 0)
        status = check_buffers(h, &a);
    if (status)
        return status;
    /* never 0: other ranks may have a block where this one has none, or does not know */
    a.count += a.counts_at_root != 0;
    a.root =
        move->rooted ? mc_mesh_rank_of(&h->order, a.root) : mc_boxes_middle(h->machine, &h->mesh);
    *args = a;
    return MESHCOLL_OK;
}

const mc_numbering_t *mc_args_aligned(const meshcoll_t *h, const meshcoll_args_t *args)
{
    const bool any = !h->reproducible || !mc_moves[args->collective].reduces ||
                     mc_op_associates(args->op, args->datatype);
    return any ? NULL : &h->numbering;
}

bool mc_plans_by_comm(const meshcoll_t *h, const meshcoll_args_t *args)
{
    const mc_numbering_t *const aligned = mc_args_aligned(h, args);
    if (!aligned)
        return h->order.comm_rank && !mc_op_commutes(args->op);
    return aligned->flat;
}

/* Kinds of memory -------------------------------------------------------------------------------- */

const char *mc_memory_kind_name(mc_memory_kind_t kind)
{
    static const char *const name[] = {[MC_MEMORY_HOST] = "host memory",
                                       [MC_MEMORY_REGISTERED] = "pinned host memory",
                                       [MC_MEMORY_MANAGED] = "managed memory",
                                       [MC_MEMORY_DEVICE] = "device memory"};
    return (unsigned)kind < MC_COUNT(name) ? name[kind] : "?";
}

typedef struct {
    mc_pointer_t in, out;
    bool has_in, has_out;
} buffers_t;

/* `args` name the root as a mesh rank, and count what all ranks know. */
static buffers_t ask(const meshcoll_t *h, const meshcoll_args_t *args)
{
    meshcoll_args_t a = *args;
    a.root = mc_comm_rank_of(&h->order, a.root);
    const mc_needs_t needs = mc_args_needs(h, &a);
    buffers_t b = {.has_in = needs.in > 0 && a.in, .has_out = needs.out > 0 && a.out};
    if (b.has_in)
        b.in = mc_device_pointer(h->job->device, a.in);
    if (b.has_out)
        b.out = mc_device_pointer(h->job->device, a.out);
    return b;
}

static bool is_device(bool there, const mc_pointer_t *p)
{
    return there && p->kind == MC_MEMORY_DEVICE;
}
static bool is_host(bool there, const mc_pointer_t *p)
{
    return there && (p->kind == MC_MEMORY_HOST || p->kind == MC_MEMORY_REGISTERED);
}

static int check_mixed(const meshcoll_args_t *args, const buffers_t *b)
{
    const bool device = is_device(b->has_in, &b->in) || is_device(b->has_out, &b->out);
    const bool host = is_host(b->has_in, &b->in) || is_host(b->has_out, &b->out);
    const char *const name = meshcoll_collective_name(args->collective);
    if (device && host)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: in is %s, out is %s: expected both of the same kind", name,
                       mc_memory_kind_name(b->in.kind), mc_memory_kind_name(b->out.kind));
    if (device && b->has_in && b->has_out && b->in.device != b->out.device)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: in is memory of GPU %d, out of GPU %d: expected the same one", name,
                       b->in.device, b->out.device);
    return MESHCOLL_OK;
}

int mc_call_memory(const meshcoll_t *h, mc_call_t *call, const char *host_only)
{
    const meshcoll_args_t *const a = &call->args;
    if (!h->job->device->pointer)
        return MESHCOLL_OK;
    const buffers_t b = ask(h, a);
    int status = check_mixed(a, &b);
    if (status || (!is_device(b.has_in, &b.in) && !is_device(b.has_out, &b.out)))
        return status;
    status = mc_device_check_built(h->job->device);
    if (!status && host_only)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "%s: the buffers are device memory, which %s does not take: use "
                         "meshcoll_enqueue, or a blocking call",
                         meshcoll_collective_name(a->collective), host_only);
    call->on_device = !status;
    call->buffer = is_device(b.has_in, &b.in) ? b.in : b.out;
    return status;
}

int mc_call_memory_need(const meshcoll_t *h, mc_call_t *call)
{
    const meshcoll_args_t *const a = &call->args;
    const buffers_t b = ask(h, a);
    const bool bad_in = is_host(b.has_in, &b.in), bad = bad_in || is_host(b.has_out, &b.out);
    int status = h->job->device->check();
    if (!status && !bad)
        status = check_mixed(a, &b);
    if (!status && bad)
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "%s in a stream: %s is %s: expected device or managed memory",
                         meshcoll_collective_name(a->collective), bad_in ? "in" : "out",
                         mc_memory_kind_name(bad_in ? b.in.kind : b.out.kind));
    call->on_device = !status;
    call->buffer = b.has_in ? b.in : b.out;
    return status;
}

/* Keeping ----------------------------------------------------------------------------------------- */

int mc_call_keep(const meshcoll_t *h, const mc_call_t *call, mc_kept_call_t *kept)
{
    meshcoll_args_t *const a = &kept->call.args;
    const int32_t n = h->mesh.size;
    mc_user_op_t user;
    kept->call = *call;
    kept->call.given = NULL;
    if (a->counts || a->displs) {
        kept->tables = calloc(2 * (size_t)n, sizeof *kept->tables);
        if (!kept->tables)
            return mc_fail_memory("a call's tables");
        mc_args_own_tables(a, (size_t)n, kept->tables);
    }
    if (!mc_user_op_find(a->op, &user))
        return MESHCOLL_OK;
    const int status = mc_user_op_add("a call", &user, &a->op);
    kept->has_op = !status;
    return status;
}

void mc_call_unkeep(mc_kept_call_t *kept)
{
    free(kept->tables);
    if (kept->has_op)
        (void)meshcoll_op_free(kept->call.args.op);
}
