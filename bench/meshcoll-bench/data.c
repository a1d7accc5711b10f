/*
 * Data whose right result is known without communicating. Element j of rank r is
 *
 *     a(j) + k(j) * ((r + turn(j)) mod P)
 *
 * with a, k and turn drawn from a hash of j. Over all ranks the bracket takes each of 0…P-1 once, so
 * sum, average, minimum and maximum have closed forms, and a missing or doubled contribution shows. All
 * values and partial sums are whole numbers that the datatype holds exactly; sums of integers may
 * wrap. For products, logical and bitwise operations one rank, changing with j, gives what comes out,
 * and the others what changes nothing.
 */
#include "bench.h"

#include "common/use.h"

#include <string.h>

enum { FACTORS = 4, BASE_BITS = 20, POISON = 0xA5, GUARD_BYTE = 0x5A };

/* Who has a buffer, and how much of the vector it holds. */
static const struct {
    bool in_root, in_block, out_root, out_block, reduces;
    bool blocks; /* a block for every rank on both sides */
} shape[MESHCOLL_COLLECTIVES] = {
    [MESHCOLL_BCAST] = {.in_root = true},
    [MESHCOLL_REDUCE] = {.out_root = true, .reduces = true},
    [MESHCOLL_SCATTER] = {.in_root = true, .out_block = true},
    [MESHCOLL_GATHER] = {.in_block = true, .out_root = true},
    [MESHCOLL_ALLGATHER] = {.in_block = true},
    [MESHCOLL_REDUCE_SCATTER] = {.out_block = true, .reduces = true},
    [MESHCOLL_ALLREDUCE] = {.reduces = true},
    [MESHCOLL_ALLTOALL] = {.blocks = true},
};

typedef struct {
    uint64_t salt, ranks, base_mask, factors, even; /* factors are multiples of `even` */
    meshcoll_datatype_t datatype;
    meshcoll_op_t op;
} pattern_t;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

bool collective_reduces(meshcoll_collective_t collective)
{
    return shape[collective].reduces;
}

bool collective_has_root(meshcoll_collective_t collective)
{
    return shape[collective].in_root || shape[collective].out_root;
}

static bool has_blocks(meshcoll_collective_t collective)
{
    return shape[collective].in_block || shape[collective].out_block || shape[collective].blocks;
}

size_t data_whole(const bench_t *bench, uint64_t bytes)
{
    const size_t elements = bytes / meshcoll_datatype_size(bench->options.datatype);
    const size_t parts = has_blocks(bench->options.collective) ? (size_t)bench->size : 1;
    return elements < parts ? parts : elements / parts * parts;
}

static bool is_integer(meshcoll_datatype_t datatype)
{
    return (datatype >= MESHCOLL_INT32 && datatype <= MESHCOLL_UINT64);
}

/* The widest pattern for which every partial sum is exact; base_mask and factors, or false. */
static bool fit(pattern_t *p, bool reduces)
{
    const bool sums = reduces && (p->op == MESHCOLL_SUM || p->op == MESHCOLL_AVG);
    const bool wraps = p->op == MESHCOLL_SUM && is_integer(p->datatype);
    const uint64_t terms = sums ? p->ranks : 1;
    const uint64_t turns = sums ? p->ranks * (p->ranks - 1) / 2 : p->ranks - 1;
    const int limit = wraps ? BASE_BITS + 4 : element_exact_bits(p->datatype);
    p->even = p->op == MESHCOLL_AVG ? 2 : 1;
    for (p->factors = FACTORS; p->factors > 0; p->factors--)
        for (int bits = BASE_BITS; bits >= 0; bits--) {
            p->base_mask = (UINT64_C(1) << bits) - 1;
            if (terms * p->base_mask + p->factors * p->even * turns < UINT64_C(1) << limit)
                return true;
        }
    return false;
}

/* Operations on bool are logical. */
static meshcoll_op_t op_of(const options_t *o)
{
    if (!shape[o->collective].reduces)
        return MESHCOLL_SUM;
    if (o->datatype != MESHCOLL_BOOL)
        return o->op;
    return o->op == MESHCOLL_BAND || o->op == MESHCOLL_MIN  ? MESHCOLL_LAND
           : o->op == MESHCOLL_BOR || o->op == MESHCOLL_MAX ? MESHCOLL_LOR
           : o->op == MESHCOLL_BXOR                         ? MESHCOLL_LXOR
                                                            : o->op;
}

static pattern_t pattern_for(const options_t *o, int ranks, uint64_t salt, bool *fits)
{
    pattern_t p = {.salt = mix(salt), .ranks = (uint64_t)ranks, .datatype = o->datatype};
    p.op = op_of(o);
    *fits = fit(&p, shape[o->collective].reduces);
    return p;
}

const char *data_inexact(const options_t *options, int ranks)
{
    bool fits = true;
    if (options->check)
        pattern_for(options, ranks, 0, &fits);
    return fits ? NULL
                : "so many ranks make results that the datatype does not hold exactly; measure "
                  "with -c 0";
}

static span_t span(const bench_t *bench, char *buffer, bool block, size_t whole)
{
    const size_t count = whole / (size_t)bench->size;
    return (span_t){.at = buffer + PAGE,
                    .n = block ? count : whole,
                    .first = block ? (size_t)bench->rank * count : 0};
}

static bool shared(const bench_t *bench, const view_t *view)
{
    return bench->options.in_place && view->in.at && view->out.at;
}

view_t data_view(const bench_t *bench, size_t whole)
{
    const meshcoll_collective_t c = bench->options.collective;
    const bool root = bench->rank == bench->options.root;
    const size_t element = meshcoll_datatype_size(bench->options.datatype);
    view_t view = {.whole = whole, .count = has_blocks(c) ? whole / (size_t)bench->size : whole};
    if (!shape[c].in_root || root)
        view.in = span(bench, bench->in, shape[c].in_block, whole);
    if (!shape[c].out_root || root)
        view.out = span(bench, bench->out, shape[c].out_block, whole);
    if (shared(bench, &view)) {
        /* the smaller lies in the larger where its block is */
        if (view.in.n > view.out.n)
            view.out.at = view.in.at + view.out.first * element;
        else
            view.in.at = view.out.at + view.in.first * element;
    }
    return view;
}

/* Contributions of the selected rank and of all others; NONE for operations where all ranks
 * count. */
typedef struct {
    uint64_t neutral, least, values;
} picked_t;

static bool picks(meshcoll_op_t op, picked_t *p)
{
    switch (op) {
    case MESHCOLL_PROD:
        *p = (picked_t){.neutral = 1, .least = 1, .values = 7};
        return true;
    case MESHCOLL_LAND:
        *p = (picked_t){.neutral = 1, .values = 2};
        return true;
    case MESHCOLL_LOR:
    case MESHCOLL_LXOR:
        *p = (picked_t){.values = 2};
        return true;
    case MESHCOLL_BAND:
        *p = (picked_t){.neutral = 127, .values = 128};
        return true;
    case MESHCOLL_BOR:
    case MESHCOLL_BXOR:
        *p = (picked_t){.values = 128};
        return true;
    default:
        return false;
    }
}

static uint64_t one_value(const pattern_t *p, uint64_t rank, uint64_t j)
{
    const uint64_t hash = mix(p->salt + j), turn = (rank + (hash >> 32)) % p->ranks;
    const uint64_t factor = p->even * (1 + (hash >> BASE_BITS) % p->factors);
    picked_t picked;
    if (picks(p->op, &picked))
        return turn ? picked.neutral : picked.least + hash % picked.values;
    return (hash & p->base_mask) + factor * turn;
}

static uint64_t one_result(const pattern_t *p, uint64_t j)
{
    const uint64_t hash = mix(p->salt + j);
    const uint64_t base = hash & p->base_mask;
    const uint64_t factor = p->even * (1 + (hash >> BASE_BITS) % p->factors);
    picked_t picked;
    if (picks(p->op, &picked))
        return picked.least + hash % picked.values;
    switch (p->op) {
    case MESHCOLL_MIN:
    case MESHCOLL_MINLOC:
        return base;
    case MESHCOLL_MAX:
    case MESHCOLL_MAXLOC:
        return base + factor * (p->ranks - 1);
    case MESHCOLL_AVG:
        return base + factor * (p->ranks - 1) / 2;
    default:
        return p->ranks * base + factor * (p->ranks * (p->ranks - 1) / 2);
    }
}

/* The selected rank. */
static uint64_t rank_of(const pattern_t *p, uint64_t j, uint64_t turn)
{
    const uint64_t shift = (mix(p->salt + j) >> 32) % p->ranks;
    return (p->ranks + turn - shift) % p->ranks;
}

/* Imaginary parts are those of other elements, or 0 in products. */
static const uint64_t IMAGINARY = UINT64_C(1) << 48;

static bool has_imaginary(const pattern_t *p)
{
    return element_is_complex(p->datatype) && p->op != MESHCOLL_PROD;
}

static pair_t value(const pattern_t *p, uint64_t rank, uint64_t j)
{
    pair_t v = {one_value(p, rank, j), has_imaginary(p) ? one_value(p, rank, j + IMAGINARY) : 0};
    if (p->op == MESHCOLL_MINLOC || p->op == MESHCOLL_MAXLOC)
        v.b = rank;
    return v;
}

static pair_t reduced(const pattern_t *p, uint64_t j)
{
    pair_t v = {one_result(p, j), has_imaginary(p) ? one_result(p, j + IMAGINARY) : 0};
    if (p->op == MESHCOLL_MINLOC || p->op == MESHCOLL_MAXLOC)
        v.b = rank_of(p, j, p->op == MESHCOLL_MINLOC ? 0 : p->ranks - 1);
    return v;
}

static pattern_t pattern_of(const bench_t *bench)
{
    bool fits;
    return pattern_for(&bench->options, bench->size, bench->salt, &fits);
}

/* Element j of the result: of which rank, when nothing is reduced. */
static uint64_t origin(const bench_t *bench, const view_t *view, size_t j)
{
    if (shape[bench->options.collective].in_block)
        return j / view->count;
    return (uint64_t)bench->options.root;
}

/* What element j of the result must be. */
static pair_t right(const bench_t *bench, const view_t *view, const pattern_t *p, size_t j)
{
    if (shape[bench->options.collective].reduces)
        return reduced(p, j);
    if (shape[bench->options.collective].blocks) /* the input is ordered by destination */
        return value(p, j / view->count, (size_t)bench->rank * view->count + j % view->count);
    return value(p, origin(bench, view, j), j);
}

static void guard(const bench_t *bench, const span_t *s)
{
    if (!s->at)
        return;
    const size_t bytes = s->n * meshcoll_datatype_size(bench->options.datatype);
    memset(s->at - GUARD, GUARD_BYTE, GUARD);
    memset(s->at + bytes, GUARD_BYTE, GUARD);
}

static bool guarded(const bench_t *bench, const span_t *s)
{
    if (!s->at)
        return true;
    const size_t bytes = s->n * meshcoll_datatype_size(bench->options.datatype);
    for (size_t i = 0; i < GUARD; i++)
        if ((unsigned char)s->at[bytes + i] != GUARD_BYTE ||
            (unsigned char)*(s->at - 1 - i) != GUARD_BYTE)
            return false;
    return true;
}

/* In place the larger span has the guards; the smaller's would lie in the data. */
static const span_t *outer(const view_t *view)
{
    return view->in.n > view->out.n ? &view->in : &view->out;
}

void data_fill(bench_t *bench, const view_t *view)
{
    const meshcoll_datatype_t datatype = bench->options.datatype;
    bench->salt++;
    const pattern_t p = pattern_of(bench);
    if (view->out.at)
        memset(view->out.at, POISON, view->out.n * meshcoll_datatype_size(datatype));
    const size_t element = meshcoll_datatype_size(datatype);
    for (size_t i = 0; view->in.at && i < view->in.n; i++)
        element_put(datatype, view->in.at + i * element,
                    value(&p, (uint64_t)bench->rank, view->in.first + i));
    if (shared(bench, view)) {
        guard(bench, outer(view));
    } else {
        guard(bench, &view->in);
        guard(bench, &view->out);
    }
}

static uint64_t wrong_out(const bench_t *bench, const view_t *view, const pattern_t *p)
{
    const size_t element = meshcoll_datatype_size(bench->options.datatype);
    uint64_t wrong = 0;
    for (size_t i = 0; view->out.at && i < view->out.n; i++)
        wrong += !element_is(bench->options.datatype, view->out.at + i * element,
                             right(bench, view, p, view->out.first + i));
    return wrong;
}

static uint64_t wrong_in(const bench_t *bench, const view_t *view, const pattern_t *p)
{
    const size_t element = meshcoll_datatype_size(bench->options.datatype);
    uint64_t wrong = 0;
    for (size_t i = 0; view->in.at && i < view->in.n; i++)
        wrong += !element_is(bench->options.datatype, view->in.at + i * element,
                             value(p, (uint64_t)bench->rank, view->in.first + i));
    return wrong;
}

uint64_t data_wrong(const bench_t *bench, const view_t *view)
{
    const pattern_t p = pattern_of(bench);
    uint64_t wrong = wrong_out(bench, view, &p);
    if (shared(bench, view))
        return wrong + !guarded(bench, outer(view));
    wrong += wrong_in(bench, view, &p);
    return wrong + !guarded(bench, &view->in) + !guarded(bench, &view->out);
}

/* Zeros stay zeros however often they are summed in place. */
void data_clear(const bench_t *bench, const view_t *view)
{
    const size_t element = meshcoll_datatype_size(bench->options.datatype);
    if (view->in.at)
        memset(view->in.at, 0, view->in.n * element);
    if (view->out.at)
        memset(view->out.at, 0, view->out.n * element);
}

void data_use(const bench_t *bench, const view_t *view)
{
    const size_t element = meshcoll_datatype_size(bench->options.datatype);
    use_buffers(view->in.at, view->in.n * element, view->out.at, view->out.n * element);
}
