/*
 * Data whose right result is known without communicating. Element j of rank r is
 *
 *     a(j) + k(j) * ((r + turn(j)) mod P)
 *
 * with a, k and turn drawn from a hash of j. Over all ranks the bracket takes each of 0…P-1 once, so
 * sum, minimum and maximum have closed forms, and a missing or doubled contribution shows. All values
 * and partial sums are whole numbers that float32 holds exactly.
 */
#include "bench.h"

#include <string.h>

enum { FACTORS = 4, EXACT_BITS = 24, BASE_BITS = 20, POISON = 0xA5, GUARD_BYTE = 0x5A };

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
    uint64_t salt, base_mask, ranks;
    meshcoll_op_t op;
} pattern_t;

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

/* Largest a(j) for which every partial sum is exact, as a mask of low bits; 0: there is none. */
static uint64_t base_mask(const options_t *options, uint64_t ranks)
{
    const bool sums = shape[options->collective].reduces && options->op == MESHCOLL_SUM;
    const uint64_t terms = sums ? ranks : 1;
    const uint64_t spread = FACTORS * (sums ? ranks * (ranks - 1) / 2 : ranks - 1);
    int bits = BASE_BITS;
    while (bits > 0 && terms * ((UINT64_C(1) << bits) - 1) + spread > UINT64_C(1) << EXACT_BITS)
        bits--;
    return (UINT64_C(1) << bits) - 1;
}

const char *data_inexact(const options_t *options, int ranks)
{
    if (!options->check || base_mask(options, (uint64_t)ranks) > 0)
        return NULL;
    return "so many ranks make sums that float32 does not hold exactly; measure with -c 0";
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

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t value(const pattern_t *p, uint64_t rank, uint64_t j)
{
    const uint64_t hash = mix(p->salt + j);
    const uint64_t factor = 1 + (hash >> BASE_BITS) % FACTORS;
    return (hash & p->base_mask) + factor * ((rank + (hash >> 32)) % p->ranks);
}

static uint64_t reduced(const pattern_t *p, uint64_t j)
{
    const uint64_t hash = mix(p->salt + j);
    const uint64_t base = hash & p->base_mask, factor = 1 + (hash >> BASE_BITS) % FACTORS;
    switch (p->op) {
    case MESHCOLL_MIN:
        return base;
    case MESHCOLL_MAX:
        return base + factor * (p->ranks - 1);
    default:
        return p->ranks * base + factor * (p->ranks * (p->ranks - 1) / 2);
    }
}

static pattern_t pattern_of(const bench_t *bench)
{
    const options_t *const o = &bench->options;
    return (pattern_t){mix(bench->salt), base_mask(o, (uint64_t)bench->size), (uint64_t)bench->size,
                       o->op};
}

static void put(meshcoll_datatype_t datatype, void *at, size_t i, uint64_t number)
{
    switch (datatype) {
    case MESHCOLL_FLOAT32:
        ((float *)at)[i] = (float)number;
        return;
    case MESHCOLL_FLOAT64:
        ((double *)at)[i] = (double)number;
        return;
    case MESHCOLL_INT32:
        ((int32_t *)at)[i] = (int32_t)number;
        return;
    default:
        ((int64_t *)at)[i] = (int64_t)number;
    }
}

static bool is(meshcoll_datatype_t datatype, const void *at, size_t i, uint64_t number)
{
    switch (datatype) {
    case MESHCOLL_FLOAT32:
        return ((const float *)at)[i] == (float)number;
    case MESHCOLL_FLOAT64:
        return ((const double *)at)[i] == (double)number;
    case MESHCOLL_INT32:
        return ((const int32_t *)at)[i] == (int32_t)number;
    default:
        return ((const int64_t *)at)[i] == (int64_t)number;
    }
}

/* Element j of the result: of which rank, when nothing is reduced. */
static uint64_t origin(const bench_t *bench, const view_t *view, size_t j)
{
    if (shape[bench->options.collective].in_block)
        return j / view->count;
    return (uint64_t)bench->options.root;
}

/* What element j of the result must be. */
static uint64_t right(const bench_t *bench, const view_t *view, const pattern_t *p, size_t j)
{
    if (shape[bench->options.collective].reduces)
        return reduced(p, j);
    if (shape[bench->options.collective].blocks) /* it lies by destination where it comes from */
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
    for (size_t i = 0; view->in.at && i < view->in.n; i++)
        put(datatype, view->in.at, i, value(&p, (uint64_t)bench->rank, view->in.first + i));
    if (shared(bench, view)) {
        guard(bench, outer(view));
    } else {
        guard(bench, &view->in);
        guard(bench, &view->out);
    }
}

static uint64_t wrong_out(const bench_t *bench, const view_t *view, const pattern_t *p)
{
    uint64_t wrong = 0;
    for (size_t i = 0; view->out.at && i < view->out.n; i++)
        wrong += !is(bench->options.datatype, view->out.at, i,
                     right(bench, view, p, view->out.first + i));
    return wrong;
}

static uint64_t wrong_in(const bench_t *bench, const view_t *view, const pattern_t *p)
{
    uint64_t wrong = 0;
    for (size_t i = 0; view->in.at && i < view->in.n; i++)
        wrong += !is(bench->options.datatype, view->in.at, i,
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
