/* The reduction kernels: every instruction set of this machine against definitions of the test's own,
 * over all datatypes, operations, lengths, places and alignments. */
#include "runtime/element/datatype.h"
#include "runtime/element/narrow.h"
#include "support/element.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 67, ALIGNMENTS = 3, ELEMENT = 16, ROOM = (MOST + ALIGNMENTS + 1) * ELEMENT };

/* Bit patterns of any kind: random ones, and often those at the edges of a type. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void fill_bytes(unsigned char *at, size_t bytes, uint64_t *state)
{
    static const unsigned char edge[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x7c, 0x7b, 0x3c};
    for (size_t i = 0; i < bytes; i++)
        at[i] = next_random(state) % 3 ? (unsigned char)next_random(state)
                                       : edge[next_random(state) % sizeof edge];
}

/* One in three of the floating point elements is a plain number, so that sums mean something. */
static void fill(meshcoll_datatype_t type, unsigned char *at, size_t n, uint64_t *state)
{
    fill_bytes(at, n * meshcoll_datatype_size(type), state);
    for (size_t i = 0; i < n; i++)
        if (next_random(state) % 3 == 0) {
            const int a = (int)(next_random(state) % 2001) - 1000,
                      b = (int)(next_random(state) % 9);
            mc_element_set(type, at, i, (mc_number_t){a / 8.0, b});
        }
}

/* Definitions ------------------------------------------------------------------------------------ */

static int64_t wrapped(meshcoll_op_t op, uint64_t x, uint64_t y, bool less)
{
    switch (op) {
    case MESHCOLL_SUM:
    case MESHCOLL_AVG:
        return (int64_t)(x + y);
    case MESHCOLL_PROD:
        return (int64_t)(x * y);
    case MESHCOLL_MIN:
        return (int64_t)(less ? x : y);
    case MESHCOLL_MAX:
        return (int64_t)(less ? y : x);
    case MESHCOLL_LAND:
        return x && y;
    case MESHCOLL_LOR:
        return x || y;
    case MESHCOLL_LXOR:
        return !x != !y;
    case MESHCOLL_BAND:
        return (int64_t)(x & y);
    case MESHCOLL_BOR:
        return (int64_t)(x | y);
    default:
        return (int64_t)(x ^ y);
    }
}

/* One operation in the type's own float32 or float64. */
static double real(meshcoll_datatype_t type, meshcoll_op_t op, double x, double y)
{
    const bool wide = type == MESHCOLL_FLOAT64 || type == MESHCOLL_COMPLEX128;
    switch (op) {
    case MESHCOLL_PROD:
        return wide ? x * y : (double)((float)x * (float)y);
    default:
        return wide ? x + y : (double)((float)x + (float)y);
    }
}

/* maximum and minimum of IEEE 754-2019; a NaN becomes that of all ones but the sign. */
static void extreme(meshcoll_datatype_t type, meshcoll_op_t op, void *dst, const void *x,
                    const void *y)
{
    const double p = mc_element_get(type, x, 0).a, q = mc_element_get(type, y, 0).a;
    const size_t size = meshcoll_datatype_size(type);
    const bool less = p < q || (p == q && signbit(p) && !signbit(q));
    memcpy(dst, less == (op == MESHCOLL_MIN) ? x : y, size);
    if (isnan(p) || isnan(q)) {
        memset(dst, 0xff, size);
        ((unsigned char *)dst)[size - 1] = 0x7f;
    }
}

static mc_number_t complex_product(meshcoll_datatype_t type, mc_number_t x, mc_number_t y)
{
    const meshcoll_op_t by = MESHCOLL_PROD, plus = MESHCOLL_SUM;
    return (mc_number_t){
        real(type, plus, real(type, by, x.a, y.a), -real(type, by, x.b, y.b)),
        real(type, plus, real(type, by, x.a, y.b), real(type, by, x.b, y.a)),
    };
}

/* clang-format off */
#define INTEGERS(X)       \
    X(INT8, int8_t)       \
    X(INT16, int16_t)     \
    X(INT32, int32_t)     \
    X(INT64, int64_t)     \
    X(UINT8, uint8_t)     \
    X(UINT16, uint16_t)   \
    X(UINT32, uint32_t)   \
    X(UINT64, uint64_t)
#define PAIRS(X)                      \
    X(FLOAT32_INT32, float, int32_t)  \
    X(FLOAT64_INT32, double, int32_t) \
    X(INT32_INT32, int32_t, int32_t)  \
    X(INT64_INT32, int64_t, int32_t)  \
    X(FLOAT64_INT64, double, int64_t) \
    X(INT64_INT64, int64_t, int64_t)
/* clang-format on */

/* dst = x (op) y, one element, by definition. */
static void define(meshcoll_datatype_t type, meshcoll_op_t op, void *dst, const void *x,
                   const void *y)
{
    const mc_number_t p = mc_element_get(type, x, 0), q = mc_element_get(type, y, 0);
    switch (type) {
    case MESHCOLL_BOOL: {
        const bool v = p.a != 0, w = q.a != 0;
        *(uint8_t *)dst = (uint8_t)wrapped(op, v, w, v < w);
        return;
    }
#define X(name, c_type)                                                        \
    case MESHCOLL_##name: {                                                    \
        const c_type v = *(const c_type *)x, w = *(const c_type *)y;           \
        *(c_type *)dst = (c_type)wrapped(op, (uint64_t)v, (uint64_t)w, v < w); \
        return;                                                                \
    }
        INTEGERS(X)
#undef X
#define X(name, value_type, index_type)                                              \
    case MESHCOLL_##name: {                                                          \
        const struct {                                                               \
            value_type value;                                                        \
            index_type index;                                                        \
        } *const v = x, *const w = y;                                                \
        const bool nan = v->value != v->value, other = w->value != w->value;         \
        const bool less = v->value<w->value, more = v->value> w->value;              \
        const bool tie = v->value == w->value || (nan && other);                     \
        const bool first = (nan && !other) || (op == MESHCOLL_MINLOC ? less : more); \
        memcpy(dst, first || (tie && v->index <= w->index) ? x : y, sizeof *v);      \
        return;                                                                      \
    }
        PAIRS(X)
#undef X
    case MESHCOLL_COMPLEX64:
    case MESHCOLL_COMPLEX128:
        mc_element_set(type, dst, 0,
                       op == MESHCOLL_PROD
                           ? complex_product(type, p, q)
                           : (mc_number_t){real(type, op, p.a, q.a), real(type, op, p.b, q.b)});
        return;
    default:
        if (op == MESHCOLL_MIN || op == MESHCOLL_MAX)
            extreme(type, op, dst, x, y);
        else
            mc_element_set(type, dst, 0, (mc_number_t){real(type, op, p.a, q.a), 0});
    }
}

/* Padding may be anything; NaNs any NaN, where arithmetic made them; all else the same bits. */
static bool alike(meshcoll_datatype_t type, meshcoll_op_t op, const unsigned char *x,
                  const unsigned char *y)
{
    const size_t size = meshcoll_datatype_size(type);
    const bool computed = op != MESHCOLL_MIN && op != MESHCOLL_MAX;
    if (mc_is_pair(type))
        return type == MESHCOLL_INT64_INT64 ? memcmp(x, y, size) == 0
                                            : mc_element_same(type, x, y, 0);
    if (!computed || mc_is_integer(type) || type == MESHCOLL_BOOL)
        return memcmp(x, y, size) == 0;
    const mc_number_t p = mc_element_get(type, x, 0), q = mc_element_get(type, y, 0);
    return mc_element_same(type, x, y, 0) && (isnan(p.a) || signbit(p.a) == signbit(q.a)) &&
           (isnan(p.b) || signbit(p.b) == signbit(q.b));
}

/* Every set, type, operation, length, place and alignment ------------------------------------------- */

typedef struct {
    const mc_kernels_t *set;
    meshcoll_datatype_t type;
    meshcoll_op_t op;
    uint64_t *random;
} subject_t;

static void check_place(const subject_t *s, size_t n, int into, size_t shift)
{
    static _Alignas(64) unsigned char a[ROOM], b[ROOM], d[ROOM], x[ROOM], y[ROOM];
    const size_t size = meshcoll_datatype_size(s->type), offset = shift * size;
    unsigned char *const at = (into == 0 ? d : into == 1 ? a : b) + offset, want[ELEMENT] = {0};
    fill(s->type, a + offset, n + 1, s->random);
    fill(s->type, b + offset, n + 1, s->random);
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    unsigned char behind[ELEMENT];
    memset(at + n * size, 0x77, size);
    memset(behind, 0x77, sizeof behind);
    s->set->of[s->type].kernel[s->op](at, a + offset, b + offset, n);
    for (size_t i = 0; i < n; i++) {
        _Alignas(16) unsigned char one[3][ELEMENT];
        memcpy(one[0], x + offset + i * size, size);
        memcpy(one[1], y + offset + i * size, size);
        memcpy(one[2], at + i * size, size);
        _Alignas(16) unsigned char right[ELEMENT];
        memcpy(right, want, sizeof right);
        define(s->type, s->op, right, one[0], one[1]);
        cr_assert(alike(s->type, s->op, one[2], right), "%s: %s %s: element %zu of %zu, into %d",
                  s->set->name, meshcoll_datatype_name(s->type), meshcoll_op_name(s->op), i, n,
                  into);
    }
    cr_assert(memcmp(at + n * size, behind, size) == 0, "%s: %s %s: wrote behind %zu", s->set->name,
              meshcoll_datatype_name(s->type), meshcoll_op_name(s->op), n);
}

static void check_set(const mc_kernels_t *set)
{
    uint64_t random = 1;
    for (int type = 0; type < MESHCOLL_DATATYPES; type++)
        for (int op = 0; op < MESHCOLL_OPS; op++) {
            const subject_t s = {set, (meshcoll_datatype_t)type, (meshcoll_op_t)op, &random};
            for (size_t n = 0; n < MOST && set->of[type].kernel[op]; n++)
                for (int into = 0; into < 3; into++)
                    check_place(&s, n, into, n % ALIGNMENTS);
        }
}

Test(datatype, kernels_of_every_instruction_set)
{
    int run = 0;
    for (int i = 0; i < mc_n_kernels; i++)
        if (mc_kernels[i]->runs_here()) {
            check_set(mc_kernels[i]);
            run++;
        }
    cr_assert_gt(run, 0);
    cr_assert(mc_kernels_best() == mc_kernels[run - 1]);
}

/* All sets have the same table. */
Test(datatype, sets_are_complete)
{
    for (int i = 1; i < mc_n_kernels; i++)
        for (int type = 0; type < MESHCOLL_DATATYPES; type++) {
            cr_assert_eq(!mc_kernels[i]->of[type].divide, !mc_kernels[0]->of[type].divide);
            for (int op = 0; op < MESHCOLL_OPS; op++)
                cr_assert_eq(!mc_kernels[i]->of[type].kernel[op],
                             !mc_kernels[0]->of[type].kernel[op]);
        }
}

/* Narrow floating point ----------------------------------------------------------------------------- */

static float narrow_and_back(meshcoll_datatype_t type, float f, unsigned *bits)
{
    switch (type) {
    case MESHCOLL_FLOAT16:
        return float16_wide((uint16_t)(*bits = float16_narrow(f)));
    case MESHCOLL_BFLOAT16:
        return bfloat16_wide((uint16_t)(*bits = bfloat16_narrow(f)));
    case MESHCOLL_FLOAT8_E4M3:
        return float8_e4m3_wide((uint8_t)(*bits = float8_e4m3_narrow(f)));
    default:
        return float8_e5m2_wide((uint8_t)(*bits = float8_e5m2_narrow(f)));
    }
}

static void check_rounding(meshcoll_datatype_t type, float f)
{
    uint16_t right = 0;
    unsigned got;
    const float back = narrow_and_back(type, f, &got);
    mc_element_set(type, &right, 0, (mc_number_t){(double)f, 0});
    if (isnan(f))
        cr_assert(isnan(back), "%s: a NaN becomes %g", meshcoll_datatype_name(type), (double)back);
    else
        cr_assert(got == right && (double)back == mc_element_get(type, &right, 0).a,
                  "%s: %a becomes %#x, expected %#x", meshcoll_datatype_name(type), (double)f, got,
                  right);
}

/* All there are, the middle between neighbours, and a hair to both sides of it. */
Test(datatype, narrow_types_round_to_nearest_even)
{
    const meshcoll_datatype_t types[] = {MESHCOLL_FLOAT16, MESHCOLL_BFLOAT16, MESHCOLL_FLOAT8_E4M3,
                                         MESHCOLL_FLOAT8_E5M2};
    for (size_t t = 0; t < MC_COUNT(types); t++) {
        const unsigned all = meshcoll_datatype_size(types[t]) == 2 ? 0xffff : 0xff;
        for (unsigned bits = 0; bits <= all; bits++) {
            const uint16_t here = (uint16_t)bits, there = (uint16_t)(bits + 1);
            const double x = mc_element_get(types[t], &here, 0).a;
            const double y = mc_element_get(types[t], &there, 0).a;
            const float middle = (float)((x + y) / 2);
            check_rounding(types[t], (float)x);
            if (bits == all || !isfinite(x) || !isfinite(y))
                continue;
            check_rounding(types[t], middle);
            check_rounding(types[t], nextafterf(middle, INFINITY));
            check_rounding(types[t], nextafterf(middle, -INFINITY));
        }
        const float large[] = {65519.0f, 65520.0f, 65536.0f, 464.0f,   465.0f,
                               61440.0f, 1e9f,     3e38f,    INFINITY, 57344.0f};
        for (size_t i = 0; i < MC_COUNT(large); i++) {
            check_rounding(types[t], large[i]);
            check_rounding(types[t], -large[i]);
        }
    }
}

/* One rounding an addition: 1 + 2^-11 + 2^-11 stays 1 in float16, where their exact sum would not. */
Test(datatype, every_addition_rounds)
{
    uint16_t sum = 0x3c00, x = 0x1000; /* 1 and 2^-11 */
    const mc_kernel_t add = mc_kernel(MESHCOLL_FLOAT16, MESHCOLL_SUM);
    add(&sum, &sum, &x, 1);
    add(&sum, &sum, &x, 1);
    cr_assert_eq(sum, 0x3c00);
    uint8_t e4m3 = 0x7e, more = 0x7e, e5m2 = 0x7b, most = 0x7b, endless = 0x7c;
    mc_kernel(MESHCOLL_FLOAT8_E4M3, MESHCOLL_SUM)(&e4m3, &e4m3, &more, 1);
    cr_assert_eq(e4m3, 0x7e, "448 + 448 stays 448");
    mc_kernel(MESHCOLL_FLOAT8_E5M2, MESHCOLL_SUM)(&e5m2, &e5m2, &most, 1);
    cr_assert_eq(e5m2, 0x7b, "57344 + 57344 stays 57344");
    mc_kernel(MESHCOLL_FLOAT8_E5M2, MESHCOLL_SUM)(&e5m2, &e5m2, &endless, 1);
    cr_assert_eq(e5m2, 0x7c, "infinity stays");
}

/* NCCL adds float8 in float16: one rounding more, which changes nothing. */
Test(datatype, float8_sums_are_the_same_by_way_of_float16)
{
    for (int i = 0; i < 256 * 256; i++) {
        const uint8_t x = (uint8_t)i, y = (uint8_t)(i >> 8);
        const float p = float8_e4m3_wide(x) + float8_e4m3_wide(y);
        const float q = float8_e5m2_wide(x) + float8_e5m2_wide(y);
        const float p16 = float16_wide(float16_narrow(p)), q16 = float16_wide(float16_narrow(q));
        cr_assert(isnan(p) || float8_e4m3_narrow(p) == float8_e4m3_narrow(p16));
        cr_assert(!isfinite(q16) || float8_e5m2_narrow(q) == float8_e5m2_narrow(q16));
    }
}

/* p-1 roundings of at most half a unit each: the bound of docs/datatypes.md. */
Test(datatype, error_of_a_sum_is_bounded)
{
    enum { TERMS = 64 };
    const meshcoll_datatype_t types[] = {MESHCOLL_FLOAT16, MESHCOLL_BFLOAT16};
    const double unit[] = {0x1p-11, 0x1p-8};
    for (size_t t = 0; t < MC_COUNT(types); t++) {
        uint64_t random = 3;
        uint16_t sum = 0, x;
        double exact = 0, sizes = 0;
        for (int i = 0; i < TERMS; i++) {
            mc_element_set(types[t], &x, 0,
                           (mc_number_t){((double)(next_random(&random) % 2000) - 900) / 1000, 0});
            const double term = mc_element_get(types[t], &x, 0).a;
            exact += term;
            sizes += fabs(term);
            mc_kernel(types[t], MESHCOLL_SUM)(&sum, &sum, &x, 1);
        }
        const double error = fabs(mc_element_get(types[t], &sum, 0).a - exact);
        cr_assert_leq(error, 1.01 * (TERMS - 1) * unit[t] * sizes);
        cr_assert_gt(error, 0);
    }
}

/* Averages -------------------------------------------------------------------------------------------- */

static double quotient(meshcoll_datatype_t type, double x, int32_t by)
{
    if (mc_is_integer(type))
        return trunc(x / by);
    if (type == MESHCOLL_FLOAT64 || type == MESHCOLL_COMPLEX128)
        return x / by;
    return (double)((float)x / (float)by);
}

Test(datatype, quotients)
{
    const int32_t divisors[] = {1, 2, 3, 7, 300, 100000};
    for (int set = 0; set < mc_n_kernels; set++)
        for (int t = 0; t < MESHCOLL_DATATYPES; t++) {
            const meshcoll_datatype_t type = (meshcoll_datatype_t)t;
            const mc_scale_t divide = mc_kernels[set]->of[t].divide;
            cr_assert_eq(!divide, !mc_kernels[set]->of[t].kernel[MESHCOLL_AVG]);
            for (size_t k = 0; divide && mc_kernels[set]->runs_here() && k < MC_COUNT(divisors);
                 k++) {
                _Alignas(64) unsigned char at[ROOM], was[ROOM], one[ELEMENT];
                const size_t size = meshcoll_datatype_size(type);
                for (size_t i = 0; i < MOST; i++)
                    mc_element_set(type, at, i,
                                   (mc_number_t){(double)(i * 7 % 100) - 40, (double)i});
                memcpy(was, at, sizeof was);
                divide(at, MOST - 1, divisors[k]);
                for (size_t i = 0; i < MOST; i++) {
                    const mc_number_t n = mc_element_get(type, was, i);
                    const int32_t by = i < MOST - 1 ? divisors[k] : 1;
                    /* float64 does not hold all of 64 bits */
                    if (n.a > 0x1p53)
                        continue;
                    mc_element_set(type, one, 0,
                                   (mc_number_t){quotient(type, n.a, by), quotient(type, n.b, by)});
                    cr_assert(mc_element_same(type, at + i * size, one, 0), "%s: %s: %zu by %d",
                              mc_kernels[set]->name, meshcoll_datatype_name(type), i, by);
                }
            }
        }
}

Test(datatype, integer_averages_truncate)
{
    int8_t x[] = {-7, 7, -128, 127};
    uint64_t y[] = {UINT64_MAX, 5};
    int64_t z = INT64_MIN;
    mc_kernels_best()->of[MESHCOLL_INT8].divide(x, MC_COUNT(x), 200);
    cr_assert(x[0] == 0 && x[1] == 0 && x[2] == 0 && x[3] == 0);
    int8_t w[] = {-7, 7};
    mc_kernels_best()->of[MESHCOLL_INT8].divide(w, MC_COUNT(w), 2);
    cr_assert(w[0] == -3 && w[1] == 3);
    mc_kernels_best()->of[MESHCOLL_UINT64].divide(y, MC_COUNT(y), 3);
    cr_assert(y[0] == UINT64_MAX / 3 && y[1] == 1);
    mc_kernels_best()->of[MESHCOLL_INT64].divide(&z, 1, 2);
    cr_assert(z == INT64_MIN / 2);
}

/* Names, sizes, combinations, users' operations ------------------------------------------------------ */

Test(datatype, integer_sums_wrap)
{
    const int32_t a = INT32_MAX, b = 1;
    const int64_t c = INT64_MIN, d = -1;
    int32_t ab;
    int64_t cd;
    mc_kernel(MESHCOLL_INT32, MESHCOLL_SUM)(&ab, &a, &b, 1);
    mc_kernel(MESHCOLL_INT64, MESHCOLL_SUM)(&cd, &c, &d, 1);
    cr_assert(ab == INT32_MIN);
    cr_assert(cd == INT64_MAX);
}

Test(datatype, names_and_sizes)
{
    cr_assert_str_eq(meshcoll_datatype_name(MESHCOLL_FLOAT32), "float32");
    cr_assert_str_eq(meshcoll_datatype_name(MESHCOLL_INT64), "int64");
    cr_assert_str_eq(meshcoll_datatype_name(MESHCOLL_BFLOAT16), "bfloat16");
    cr_assert_str_eq(meshcoll_op_name(MESHCOLL_MAX), "max");
    cr_assert_str_eq(meshcoll_op_name(MESHCOLL_BXOR), "bxor");
    cr_assert(meshcoll_datatype_size(MESHCOLL_FLOAT64) == 8);
    cr_assert(meshcoll_datatype_size(MESHCOLL_FLOAT64_INT32) == sizeof(struct {
                  double v;
                  int32_t i;
              }));
    cr_assert(meshcoll_datatype_size(MESHCOLL_DATATYPES) == 0);
    for (int t = 0; t < MESHCOLL_DATATYPES; t++)
        cr_assert(meshcoll_datatype_name((meshcoll_datatype_t)t) &&
                  meshcoll_datatype_size((meshcoll_datatype_t)t));
    for (int op = 0; op < MESHCOLL_OPS; op++)
        cr_assert_not_null(meshcoll_op_name((meshcoll_op_t)op));
    cr_assert_null(meshcoll_datatype_name(MESHCOLL_DATATYPES));
    cr_assert_null(meshcoll_op_name(MESHCOLL_OPS));
    cr_assert_null(mc_kernel(MESHCOLL_DATATYPES, MESHCOLL_SUM));
    cr_assert_null(mc_kernel(MESHCOLL_INT32, MESHCOLL_OPS));
}

static void expect_refused(meshcoll_op_t op, meshcoll_datatype_t type, int status, const char *text)
{
    cr_expect_eq(meshcoll_op_check(op, type), status);
    cr_expect(strstr(meshcoll_last_error(), text), "expected \"%s\" in \"%s\"", text,
              meshcoll_last_error());
}

Test(datatype, refuses_what_does_not_fit)
{
    expect_refused(MESHCOLL_MAX, MESHCOLL_COMPLEX64, MESHCOLL_ERR_UNSUPPORTED,
                   "complex64 supports sum, prod, avg and users' operations");
    expect_refused(MESHCOLL_MINLOC, MESHCOLL_FLOAT32, MESHCOLL_ERR_UNSUPPORTED,
                   "minloc supports float32_int32, float64_int32");
    expect_refused(MESHCOLL_BAND, MESHCOLL_FLOAT16, MESHCOLL_ERR_UNSUPPORTED,
                   "float16 supports sum, min, max, prod, avg");
    expect_refused(MESHCOLL_SUM, MESHCOLL_INT32_INT32, MESHCOLL_ERR_UNSUPPORTED,
                   "int32_int32 supports minloc, maxloc");
    expect_refused(MESHCOLL_OPS, MESHCOLL_INT8, MESHCOLL_ERR_INVALID_ARG, "is not an operation");
    expect_refused(MESHCOLL_SUM, MESHCOLL_DATATYPES, MESHCOLL_ERR_INVALID_ARG, "is not a datatype");
    cr_expect_eq(meshcoll_op_check(MESHCOLL_LXOR, MESHCOLL_UINT16), MESHCOLL_OK);
}

static void keep_first(void *context, void *dst, const void *a, const void *b, size_t count,
                       meshcoll_datatype_t datatype)
{
    (void)b;
    ++*(int *)context;
    memmove(dst, a, count * meshcoll_datatype_size(datatype));
}

Test(datatype, users_operations_come_and_go)
{
    meshcoll_op_t op, next;
    int calls = 0;
    int16_t a = 3, b = 4, d = 0;
    cr_assert_eq(meshcoll_op_create(NULL, 1, NULL, &op), MESHCOLL_ERR_INVALID_ARG);
    cr_assert_eq(meshcoll_op_create(keep_first, 0, &calls, &op), MESHCOLL_OK);
    cr_assert_geq((unsigned)op, (unsigned)MESHCOLL_OP_USER);
    cr_assert_str_eq(meshcoll_op_name(op), "user");
    cr_assert_eq(meshcoll_op_check(op, MESHCOLL_FLOAT64_INT32), MESHCOLL_OK);
    cr_assert_not(mc_op_commutes(op));
    cr_assert(mc_op_commutes(MESHCOLL_MINLOC));
    const mc_reducer_t reducer = mc_reducer(MESHCOLL_INT16, op);
    mc_reduce(&reducer, &d, &a, &b, 1);
    cr_assert(d == 3 && calls == 1);
    cr_assert_eq(meshcoll_op_free(op), MESHCOLL_OK);
    cr_assert_eq(meshcoll_op_free(op), MESHCOLL_ERR_INVALID_ARG);
    cr_assert_eq(meshcoll_op_create(keep_first, 1, NULL, &next), MESHCOLL_OK);
    cr_assert_neq(next, op, "a handle that was freed is not given out again at once");
    expect_refused(op, MESHCOLL_INT8, MESHCOLL_ERR_INVALID_ARG, "is not an operation");
    cr_assert(mc_op_commutes(next));
    cr_assert_eq(meshcoll_op_free(MESHCOLL_SUM), MESHCOLL_ERR_INVALID_ARG);
}

Test(datatype, scaled_sums)
{
    const float half = 0.5f, a = 3, b = 4;
    const struct {
        float value;
        int32_t index;
    } pair = {1, 1};
    float d = 0;
    meshcoll_op_t op;
    cr_assert_eq(meshcoll_op_premul(NULL, MESHCOLL_FLOAT32, &op), MESHCOLL_ERR_INVALID_ARG);
    cr_assert_eq(meshcoll_op_premul(&half, MESHCOLL_FLOAT32, NULL), MESHCOLL_ERR_INVALID_ARG);
    cr_assert_eq(meshcoll_op_premul(&pair, MESHCOLL_FLOAT32_INT32, &op), MESHCOLL_ERR_UNSUPPORTED);
    cr_assert_eq(meshcoll_op_premul(&half, MESHCOLL_DATATYPES, &op), MESHCOLL_ERR_UNSUPPORTED);
    cr_assert_eq(meshcoll_op_premul(&half, MESHCOLL_FLOAT32, &op), MESHCOLL_OK);
    cr_assert_geq((unsigned)op, (unsigned)MESHCOLL_OP_USER);
    cr_assert_str_eq(meshcoll_op_name(op), "premul");
    cr_assert_eq(meshcoll_op_check(op, MESHCOLL_FLOAT32), MESHCOLL_OK);
    expect_refused(op, MESHCOLL_FLOAT64, MESHCOLL_ERR_UNSUPPORTED, "a scalar of float32");
    cr_assert(mc_op_commutes(op) && !mc_op_associates(op, MESHCOLL_FLOAT32));
    cr_assert(mc_op_associates(op, MESHCOLL_INT32));
    const mc_reducer_t reducer = mc_reducer(MESHCOLL_FLOAT32, op);
    mc_reduce(&reducer, &d, &a, &b, 1);
    cr_assert_float_eq(d, 7, 0);
    reducer.scale(&d, &a, reducer.scalar, 1);
    cr_assert_float_eq(d, 1.5, 0);
    cr_assert_eq(meshcoll_op_free(op), MESHCOLL_OK);
    expect_refused(op, MESHCOLL_FLOAT32, MESHCOLL_ERR_INVALID_ARG, "is not an operation");
}

Test(datatype, elements_of_any_size)
{
    meshcoll_datatype_t type, same;
    cr_assert_eq(meshcoll_datatype_of(12, &type), MESHCOLL_OK);
    cr_assert_eq(meshcoll_datatype_of(12, &same), MESHCOLL_OK);
    cr_assert(type == same && (unsigned)type >= (unsigned)MESHCOLL_DATATYPE_BYTES);
    cr_assert_eq(meshcoll_datatype_size(type), 12u);
    cr_assert_str_eq(meshcoll_datatype_name(type), "bytes");
    cr_assert_eq(meshcoll_datatype_of((size_t)1 << 30, &type), MESHCOLL_OK);
    cr_assert_eq(meshcoll_datatype_size(type), (size_t)1 << 30);
    cr_assert_eq(meshcoll_datatype_size((meshcoll_datatype_t)((int)type + 1)), 0u);
    cr_assert_eq(meshcoll_datatype_size(MESHCOLL_DATATYPE_BYTES), 0u);
    cr_assert_null(meshcoll_datatype_name(MESHCOLL_DATATYPE_BYTES));
    cr_assert_eq(meshcoll_datatype_of(0, &type), MESHCOLL_ERR_INVALID_ARG);
    cr_assert_eq(meshcoll_datatype_of(((size_t)1 << 30) + 1, &type), MESHCOLL_ERR_INVALID_ARG);
    expect_refused(MESHCOLL_SUM, same, MESHCOLL_ERR_UNSUPPORTED, "users' operations do");
}

Test(datatype, users_operations_grow)
{
    enum { MANY = 5000 };
    static meshcoll_op_t op[MANY];
    static int context[MANY];
    mc_user_op_t found;
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(meshcoll_op_create(keep_first, 1, &context[i], &op[i]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
    for (int i = 0; i < MANY; i++)
        cr_assert(mc_user_op_find(op[i], &found) && found.context == &context[i]);
    for (int i = 0; i < MANY; i += 2)
        cr_assert_eq(meshcoll_op_free(op[i]), MESHCOLL_OK);
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(mc_user_op_find(op[i], NULL), i % 2 == 1);
    for (int i = 0; i < MANY; i += 2) {
        const meshcoll_op_t before = op[i];
        cr_assert_eq(meshcoll_op_create(keep_first, 1, NULL, &op[i]), MESHCOLL_OK);
        cr_assert_not(mc_user_op_find(before, NULL));
    }
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(meshcoll_op_free(op[i]), MESHCOLL_OK);
}
