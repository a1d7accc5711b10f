#include "support/case.h"

#include "support/element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = MC_CASE_GUARD, FILL = 0xA5 };

static const struct {
    bool rooted, reduces, blocks;
    mc_share_t in, in_root, out, out_root;
} shape[MESHCOLL_COLLECTIVES] = {
    [MESHCOLL_BCAST] = {true, false, false, MC_SHARE_NOTHING, MC_SHARE_WHOLE, MC_SHARE_WHOLE,
                        MC_SHARE_WHOLE},
    [MESHCOLL_REDUCE] = {true, true, false, MC_SHARE_WHOLE, MC_SHARE_WHOLE, MC_SHARE_NOTHING,
                         MC_SHARE_WHOLE},
    [MESHCOLL_SCATTER] = {true, false, true, MC_SHARE_NOTHING, MC_SHARE_WHOLE, MC_SHARE_BLOCK,
                          MC_SHARE_BLOCK},
    [MESHCOLL_GATHER] = {true, false, true, MC_SHARE_BLOCK, MC_SHARE_BLOCK, MC_SHARE_NOTHING,
                         MC_SHARE_WHOLE},
    [MESHCOLL_ALLGATHER] = {false, false, true, MC_SHARE_BLOCK, MC_SHARE_BLOCK, MC_SHARE_WHOLE,
                            MC_SHARE_WHOLE},
    [MESHCOLL_REDUCE_SCATTER] = {false, true, true, MC_SHARE_WHOLE, MC_SHARE_WHOLE, MC_SHARE_BLOCK,
                                 MC_SHARE_BLOCK},
    [MESHCOLL_ALLREDUCE] = {false, true, false, MC_SHARE_WHOLE, MC_SHARE_WHOLE, MC_SHARE_WHOLE,
                            MC_SHARE_WHOLE},
    [MESHCOLL_ALLTOALL] = {false, false, true, MC_SHARE_WHOLE, MC_SHARE_WHOLE, MC_SHARE_WHOLE,
                           MC_SHARE_WHOLE},
};

bool mc_case_is_rooted(meshcoll_collective_t collective)
{
    return shape[collective].rooted;
}

bool mc_case_has_blocks(meshcoll_collective_t collective)
{
    return shape[collective].blocks;
}

bool mc_case_reduces(meshcoll_collective_t collective)
{
    return shape[collective].reduces;
}

static bool is_unsigned(meshcoll_datatype_t type)
{
    return type >= MESHCOLL_UINT8 && type <= MESHCOLL_UINT64;
}

/* Small enough that sums over some 20 ranks are exact in any order, whatever the type. */
static int summand(const mc_case_t *c, int seed)
{
    const bool small = meshcoll_datatype_size(c->datatype) == 1;
    const bool counts = c->op == MESHCOLL_AVG && is_unsigned(c->datatype);
    if (small && (mc_is_narrow(c->datatype) || c->op == MESHCOLL_AVG))
        return seed % 3 - !counts;
    return seed % 23 - (counts ? 0 : 9);
}

/* 1, i, -1, -i in turn; without imaginary parts 1 and -1, and seldom 2. */
static mc_number_t factor(const mc_case_t *c, int seed)
{
    static const mc_number_t unit[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    if (mc_is_complex(c->datatype))
        return unit[seed % 4];
    return (mc_number_t){seed % 11 == 0 ? 2 : seed % 2 ? -1 : 1, 0};
}

/* Element i of the vector that rank `rank` gives; for blocks that a rank gives, i counts there. */
static mc_number_t value(const mc_case_t *c, int rank, int size, size_t i)
{
    const int seed = (int)(i * 5 + (size_t)rank * 7 + i / 13);
    if (mc_is_pair(c->datatype))
        return (mc_number_t){seed % 5 - 2, rank};
    switch (shape[c->collective].reduces ? c->op : MESHCOLL_SUM) {
    case MESHCOLL_MIN:
    case MESHCOLL_MAX:
        return (mc_number_t){seed % 23 - (is_unsigned(c->datatype) ? 0 : 9), 0};
    case MESHCOLL_PROD:
        return factor(c, seed);
    case MESHCOLL_LAND:
        return (mc_number_t){seed % (size + 1) ? seed % 3 + 1 : 0, 0};
    case MESHCOLL_LOR:
        return (mc_number_t){seed % (size + 1) ? 0 : 5, 0};
    case MESHCOLL_LXOR:
        return (mc_number_t){seed / 2 % 2 * 3, 0};
    case MESHCOLL_BAND:
        return (mc_number_t){(seed * 37 | (seed % 3 ? 85 : 42)) & 127, 0};
    case MESHCOLL_BOR:
    case MESHCOLL_BXOR:
        return (mc_number_t){seed * 37 & 127, 0};
    default:
        return (mc_number_t){summand(c, seed), mc_is_complex(c->datatype) ? seed % 5 - 2 : 0};
    }
}

mc_number_t mc_case_value(const mc_case_t *c, int rank, int size, size_t i)
{
    const mc_number_t number = value(c, rank, size, i);
    return c->datatype == MESHCOLL_BOOL ? (mc_number_t){number.a != 0, 0} : number;
}

static mc_number_t combined(meshcoll_op_t op, mc_number_t x, mc_number_t y)
{
    const int64_t m = (int64_t)x.a, n = (int64_t)y.a;
    switch (op) {
    case MESHCOLL_MIN:
        return y.a < x.a ? y : x;
    case MESHCOLL_MAX:
        return y.a > x.a ? y : x;
    case MESHCOLL_PROD:
        return (mc_number_t){x.a * y.a - x.b * y.b, x.a * y.b + x.b * y.a};
    case MESHCOLL_LAND:
        return (mc_number_t){m && n, 0};
    case MESHCOLL_LOR:
        return (mc_number_t){m || n, 0};
    case MESHCOLL_LXOR:
        return (mc_number_t){!m != !n, 0};
    case MESHCOLL_BAND:
        return (mc_number_t){(double)(m & n), 0};
    case MESHCOLL_BOR:
        return (mc_number_t){(double)(m | n), 0};
    case MESHCOLL_BXOR:
        return (mc_number_t){(double)(m ^ n), 0};
    case MESHCOLL_MINLOC: /* indices ascend */
        return y.a < x.a ? y : x;
    case MESHCOLL_MAXLOC:
        return y.a > x.a ? y : x;
    default:
        return (mc_number_t){x.a + y.a, x.b + y.b};
    }
}

/* As the type divides: in float64 where it is that, in float32, or with integers. */
double mc_case_divided(meshcoll_datatype_t type, double x, int by)
{
    if (mc_is_integer(type))
        return trunc(x / by);
    if (type == MESHCOLL_FLOAT64 || type == MESHCOLL_COMPLEX128)
        return x / by;
    return (double)((float)x / (float)by);
}

static mc_number_t reduced(const mc_case_t *c, int size, size_t i)
{
    const bool logical = c->op == MESHCOLL_LAND || c->op == MESHCOLL_LOR || c->op == MESHCOLL_LXOR;
    mc_number_t all = mc_case_value(c, 0, size, i);
    if (size == 1 && logical && !c->on_device)
        return combined(MESHCOLL_LAND, all, all);
    for (int r = 1; r < size; r++)
        all = combined(c->op, all, mc_case_value(c, r, size, i));
    if (c->op == MESHCOLL_AVG && size > 1)
        all = (mc_number_t){mc_case_divided(c->datatype, all.a, size),
                            mc_case_divided(c->datatype, all.b, size)};
    return all;
}

static mc_number_t wanted(const mc_case_t *c, const mc_case_rank_t *r, size_t i)
{
    const size_t mine = (size_t)r->rank * c->count + i;
    switch (c->collective) {
    case MESHCOLL_BCAST:
        return mc_case_value(c, c->root, r->size, i);
    case MESHCOLL_SCATTER:
        return mc_case_value(c, c->root, r->size, mine);
    case MESHCOLL_GATHER:
    case MESHCOLL_ALLGATHER:
        return mc_case_value(c, (int)(i / c->count), r->size, i % c->count);
    case MESHCOLL_REDUCE_SCATTER:
        return reduced(c, r->size, mine);
    case MESHCOLL_ALLTOALL:
        return mc_case_value(c, (int)(i / c->count), r->size,
                             (size_t)r->rank * c->count + i % c->count);
    default:
        return reduced(c, r->size, i);
    }
}

/* Does element i hold what a number becomes in its type? */
static bool holds(meshcoll_datatype_t type, const void *at, size_t i, mc_number_t number)
{
    _Alignas(16) char one[16] = {0};
    const size_t size = meshcoll_datatype_size(type);
    mc_element_set(type, one, 0, number);
    return mc_element_same(type, (const char *)at + i * size, one, 0);
}

mc_share_t mc_case_share_in(const mc_case_t *c, int rank)
{
    return rank == c->root ? shape[c->collective].in_root : shape[c->collective].in;
}

mc_share_t mc_case_share_out(const mc_case_t *c, int rank)
{
    return rank == c->root ? shape[c->collective].out_root : shape[c->collective].out;
}

static size_t elements(const mc_case_t *c, mc_share_t share, int size)
{
    if (share == MC_SHARE_WHOLE && shape[c->collective].blocks)
        return c->count * (size_t)size;
    return c->count;
}

/* The memory of the other buffer that this one lies in, when in place. */
static void place(const mc_case_t *c, mc_case_rank_t *r)
{
    const size_t block = (size_t)r->rank * c->count * meshcoll_datatype_size(c->datatype);
    const mc_share_t in = mc_case_share_in(c, r->rank), out = mc_case_share_out(c, r->rank);
    if (!c->in_place || !r->uses_in || !r->uses_out)
        return;
    if (in == MC_SHARE_BLOCK)
        r->in = (char *)r->out + block;
    else if (out == MC_SHARE_BLOCK)
        r->out = (char *)r->in + block;
    else
        r->in = r->out;
}

static bool shares_memory(const mc_case_t *c, const mc_case_rank_t *r)
{
    return c->in_place && r->uses_in && r->uses_out;
}

int mc_case_open(const mc_case_t *c, int rank, int size, mc_case_rank_t *r)
{
    const mc_share_t share[2] = {mc_case_share_in(c, rank), mc_case_share_out(c, rank)};
    *r = (mc_case_rank_t){.rank = rank, .size = size};
    for (int k = 0; k < 2; k++) {
        r->bytes[k] = elements(c, share[k], size) * meshcoll_datatype_size(c->datatype);
        r->memory[k] = malloc(r->bytes[k] + 2 * GUARD);
        if (!r->memory[k])
            return -1;
    }
    r->uses_in = share[0] != MC_SHARE_NOTHING;
    r->uses_out = share[1] != MC_SHARE_NOTHING;
    r->in = r->uses_in || !c->bare ? r->memory[0] + GUARD : NULL;
    r->out = r->uses_out || !c->bare ? r->memory[1] + GUARD : NULL;
    place(c, r);
    mc_case_fill(c, r);
    return 0;
}

void mc_case_fill(const mc_case_t *c, mc_case_rank_t *r)
{
    for (int k = 0; k < 2; k++)
        memset(r->memory[k], FILL, r->bytes[k] + 2 * GUARD);
    const size_t n = elements(c, mc_case_share_in(c, r->rank), r->size);
    for (size_t i = 0; r->uses_in && i < n; i++)
        mc_element_set(c->datatype, r->in, i, mc_case_value(c, r->rank, r->size, i));
}

static int check_out(const mc_case_t *c, const mc_case_rank_t *r, char *why, size_t capacity)
{
    const size_t n = elements(c, mc_case_share_out(c, r->rank), r->size);
    for (size_t i = 0; r->uses_out && i < n; i++) {
        const mc_number_t right = wanted(c, r, i);
        if (!holds(c->datatype, r->out, i, right)) {
            const mc_number_t got = mc_element_get(c->datatype, r->out, i);
            snprintf(why, capacity, "rank %d: out[%zu] is %g %g, expected %g %g", r->rank, i, got.a,
                     got.b, right.a, right.b);
            return -1;
        }
    }
    return 0;
}

/* Inputs, save what in place makes an output. */
static int check_in(const mc_case_t *c, const mc_case_rank_t *r, char *why, size_t capacity)
{
    const size_t n = elements(c, mc_case_share_in(c, r->rank), r->size);
    const size_t size = meshcoll_datatype_size(c->datatype);
    const char *const out = r->out, *const out_end = out + r->bytes[1];
    for (size_t i = 0; r->uses_in && i < n; i++) {
        const char *const at = (const char *)r->in + i * size;
        if (shares_memory(c, r) && at >= out && at < out_end)
            continue;
        if (!holds(c->datatype, r->in, i, mc_case_value(c, r->rank, r->size, i))) {
            snprintf(why, capacity, "rank %d: in[%zu] was modified", r->rank, i);
            return -1;
        }
    }
    return 0;
}

static int check_fill(const mc_case_rank_t *r, int k, size_t from, size_t to, char *why,
                      size_t capacity)
{
    for (size_t i = from; i < to; i++)
        if ((unsigned char)r->memory[k][i] != FILL) {
            snprintf(why, capacity, "rank %d: byte %td of %s was written", r->rank,
                     (ptrdiff_t)i - GUARD, k ? "out" : "in");
            return -1;
        }
    return 0;
}

int mc_case_check(const mc_case_t *c, const mc_case_rank_t *r, char *why, size_t capacity)
{
    const bool used[2] = {r->uses_in, r->uses_out};
    int bad = check_out(c, r, why, capacity);
    if (!bad)
        bad = check_in(c, r, why, capacity);
    for (int k = 0; k < 2 && !bad; k++) {
        const size_t body = used[k] ? GUARD : GUARD + r->bytes[k];
        bad = check_fill(r, k, 0, body, why, capacity);
        if (!bad)
            bad = check_fill(r, k, GUARD + r->bytes[k], 2 * GUARD + r->bytes[k], why, capacity);
    }
    return bad;
}

void mc_case_close(mc_case_rank_t *r)
{
    free(r->memory[0]);
    free(r->memory[1]);
    *r = (mc_case_rank_t){0};
}

meshcoll_args_t mc_case_args(const mc_case_t *c, const mc_case_rank_t *r, const char *strategy)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = c->collective,
                             .in = r->in,
                             .out = r->out,
                             .count = c->count,
                             .datatype = c->datatype,
                             .op = c->op,
                             .root = c->root,
                             .strategy = strategy};
}

const char *mc_case_print(const mc_case_t *c, char *buffer, size_t capacity)
{
    snprintf(buffer, capacity, "%s %s %s count %zu root %d%s%s",
             meshcoll_collective_name(c->collective), meshcoll_datatype_name(c->datatype),
             meshcoll_op_name(c->op), c->count, c->root, c->in_place ? " in place" : "",
             c->bare ? " bare" : "");
    return buffer;
}

static int run(meshcoll_t *mesh, const meshcoll_args_t *args, bool persistent)
{
    meshcoll_request_t *request = NULL;
    int status =
        persistent ? meshcoll_init(mesh, args, &request) : meshcoll_begin(mesh, args, &request);
    if (!status && persistent)
        status = meshcoll_start(request);
    if (!status)
        status = meshcoll_wait(request);
    if (persistent)
        meshcoll_free(request);
    return status;
}

int mc_case_run(meshcoll_t *mesh, const mc_case_t *c, bool persistent, char *why, size_t capacity)
{
    mc_case_rank_t r;
    if (mc_case_open(c, meshcoll_rank(mesh), meshcoll_size(mesh), &r)) {
        snprintf(why, capacity, "no memory");
        return -1;
    }
    const meshcoll_args_t args = mc_case_args(c, &r, NULL);
    int status = run(mesh, &args, persistent);
    if (status)
        snprintf(why, capacity, "%s", meshcoll_last_error());
    else
        status = mc_case_check(c, &r, why, capacity);
    mc_case_close(&r);
    return status ? -1 : 0;
}

bool mc_case_run_all(meshcoll_t *mesh, bool persistent)
{
    static const size_t counts[] = {1, 700, 30000};
    char why[256], what[128];
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            const mc_case_t c = {
                .collective = (meshcoll_collective_t)k,
                .count = counts[i],
                .datatype = MESHCOLL_INT32,
                .root = mc_case_is_rooted((meshcoll_collective_t)k) ? meshcoll_size(mesh) - 1 : 0,
                .in_place = i == 1};
            if (mc_case_run(mesh, &c, persistent, why, sizeof why)) {
                fprintf(stderr, "%s on %s: %s\n", mc_case_print(&c, what, sizeof what),
                        meshcoll_mesh_text(mesh), why);
                return false;
            }
        }
    return true;
}
