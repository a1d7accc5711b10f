/*
 * The kernels, included once per instruction set. The includer defines SET, the table's name, and
 * SET_NAME, its text; where it converts float16 by vectors of AVX2 and F16C, also HALF_VECTORS.
 */
#include "runtime/element/narrow.h"
#include "runtime/element/operators.h"

/* Products and sums are rounded separately, on every machine. */
#if defined(__clang__)
#pragma clang fp contract(off)
#endif

/* dst is a, b or disjoint from both, so iterations are independent, which the compiler cannot
 * know. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* Buffers of callers may lie anywhere: loads and stores are unaligned ones, also of vectors. */
#define ANYWHERE(type) typedef type anywhere_t __attribute__((aligned(1)))
#define OPERANDS(type)         \
    ANYWHERE(type);            \
    anywhere_t *const d = dst; \
    const anywhere_t *const x = a, *const y = b;

#define KERNEL(name, type, OP)                                          \
    static void name(void *dst, const void *a, const void *b, size_t n) \
    {                                                                   \
        OPERANDS(type)                                                  \
        INDEPENDENT                                                     \
        for (size_t i = 0; i < n; i++)                                  \
            d[i] = (type)OP(x[i], y[i]);                                \
    }

#define DIVIDE(name, type, wide)                              \
    static void name##_divide(void *at, size_t n, int32_t by) \
    {                                                         \
        ANYWHERE(type);                                       \
        anywhere_t *const d = at;                             \
        const wide w = (wide)by;                              \
        for (size_t i = 0; i < n; i++)                        \
            d[i] = (type)(d[i] / w);                          \
    }

/* Sums and products of signed integers use unsigned arithmetic: the same bits, and overflow
 * wraps. */
#define INTEGER(name, type, bits, wide) \
    KERNEL(name##_sum, bits, SUM)       \
    KERNEL(name##_prod, bits, UPROD)    \
    KERNEL(name##_min, type, MIN)       \
    KERNEL(name##_max, type, MAX)       \
    KERNEL(name##_land, bits, LAND)     \
    KERNEL(name##_lor, bits, LOR)       \
    KERNEL(name##_lxor, bits, LXOR)     \
    KERNEL(name##_band, bits, BAND)     \
    KERNEL(name##_bor, bits, BOR)       \
    KERNEL(name##_bxor, bits, BXOR)     \
    DIVIDE(name, type, wide)

INTEGER(int8, int8_t, uint8_t, int32_t)
INTEGER(int16, int16_t, uint16_t, int32_t)
INTEGER(int32, int32_t, uint32_t, int64_t)
INTEGER(int64, int64_t, uint64_t, int64_t)
INTEGER(uint8, uint8_t, uint8_t, uint32_t)
INTEGER(uint16, uint16_t, uint16_t, uint32_t)
INTEGER(uint32, uint32_t, uint32_t, uint32_t)
INTEGER(uint64, uint64_t, uint64_t, uint64_t)

#define FLOAT(name, type)                    \
    KERNEL(name##_sum, type, SUM)            \
    KERNEL(name##_prod, type, PROD)          \
    KERNEL(name##_min, type, name##_minimum) \
    KERNEL(name##_max, type, name##_maximum) \
    DIVIDE(name, type, type)

FLOAT(float32, float)
FLOAT(float64, double)

/* Narrow floating point ------------------------------------------------------------------------ */

/* Sums, products and quotients are done in float32 and rounded once. */

#ifndef NARROW_BEGIN /* unless the set uses another instruction set for them */
#define NARROW_BEGIN
#define NARROW_END
#endif

#define NARROW_MATH(name, narrow, type, OP)                                       \
    static void name(void *dst, const void *a, const void *b, size_t n)           \
    {                                                                             \
        OPERANDS(type)                                                            \
        INDEPENDENT                                                               \
        for (size_t i = 0; i < n; i++)                                            \
            d[i] = narrow##_narrow(OP(narrow##_wide(x[i]), narrow##_wide(y[i]))); \
    }
#define NARROW_DIVIDE(name, type)                             \
    static void name##_divide(void *at, size_t n, int32_t by) \
    {                                                         \
        ANYWHERE(type);                                       \
        anywhere_t *const d = at;                             \
        const float w = (float)by;                            \
        for (size_t i = 0; i < n; i++)                        \
            d[i] = name##_narrow(name##_wide(d[i]) / w);      \
    }
#define NARROW_REST(name, type)              \
    KERNEL(name##_min, type, name##_minimum) \
    KERNEL(name##_max, type, name##_maximum) \
    NARROW_DIVIDE(name, type)
#define NARROW(name, type)                     \
    NARROW_MATH(name##_sum, name, type, SUM)   \
    NARROW_MATH(name##_prod, name, type, PROD) \
    NARROW_REST(name, type)

#ifdef HALF_VECTORS
enum { HALF_LANES = 8 };
#define HALF_LOAD(at) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at)))
#define HALF_STORE(at, v) \
    _mm_storeu_si128((__m128i *)(at), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#define HALF_MATH(name, OP, VECTOR_OP)                                        \
    NARROW_MATH(name##_rest, float16, uint16_t, OP)                           \
    static void name(void *dst, const void *a, const void *b, size_t n)       \
    {                                                                         \
        OPERANDS(uint16_t)                                                    \
        size_t i = 0;                                                         \
        for (; n - i >= HALF_LANES; i += HALF_LANES)                          \
            HALF_STORE(d + i, VECTOR_OP(HALF_LOAD(x + i), HALF_LOAD(y + i))); \
        name##_rest(d + i, x + i, y + i, n - i);                              \
    }
HALF_MATH(float16_sum, SUM, _mm256_add_ps)
HALF_MATH(float16_prod, PROD, _mm256_mul_ps)
#else
NARROW_MATH(float16_sum, float16, uint16_t, SUM)
NARROW_MATH(float16_prod, float16, uint16_t, PROD)
#endif

NARROW_BEGIN
NARROW_REST(float16, uint16_t)
NARROW(bfloat16, uint16_t)
NARROW(float8_e4m3, uint8_t)
NARROW(float8_e5m2, uint8_t)
NARROW_END

/* Complex numbers ------------------------------------------------------------------------------ */

/* Sums and quotients work part by part. Products follow the formula, without C's special cases for
 * infinities. Their parts are computed separately and stored afterwards: gcc 12 contracts multiply,
 * add and subtract where they alternate in memory, in spite of -ffp-contract=off. */

enum { TOGETHER = 32 };

#define COMPLEX(name, part, type)                                              \
    static void name##_sum(void *dst, const void *a, const void *b, size_t n)  \
    {                                                                          \
        part##_sum(dst, a, b, 2 * n);                                          \
    }                                                                          \
    static void name##_prod(void *dst, const void *a, const void *b, size_t n) \
    {                                                                          \
        OPERANDS(type)                                                         \
        for (size_t i = 0, part; i < n; i += part) {                           \
            type re[TOGETHER], im[TOGETHER];                                   \
            part = n - i < TOGETHER ? n - i : TOGETHER;                        \
            for (size_t k = 0; k < part; k++) {                                \
                const type xr = x[2 * (i + k)], xi = x[2 * (i + k) + 1];       \
                const type yr = y[2 * (i + k)], yi = y[2 * (i + k) + 1];       \
                re[k] = xr * yr - xi * yi;                                     \
                im[k] = xr * yi + xi * yr;                                     \
            }                                                                  \
            for (size_t k = 0; k < part; k++) {                                \
                d[2 * (i + k)] = re[k];                                        \
                d[2 * (i + k) + 1] = im[k];                                    \
            }                                                                  \
        }                                                                      \
    }                                                                          \
    static void name##_divide(void *at, size_t n, int32_t by)                  \
    {                                                                          \
        part##_divide(at, 2 * n, by);                                          \
    }

COMPLEX(complex64, float32, float)
COMPLEX(complex128, float64, double)

/* Pairs of value and index --------------------------------------------------------------------- */

/* The lower index wins where neither value is before the other. */

#define LOC(name, type, BEFORE)                                                            \
    static void name(void *dst, const void *a, const void *b, size_t n)                    \
    {                                                                                      \
        OPERANDS(type)                                                                     \
        INDEPENDENT                                                                        \
        for (size_t i = 0; i < n; i++) {                                                   \
            const type v = x[i], w = y[i];                                                 \
            const int first = BEFORE(v.value, w.value), second = BEFORE(w.value, v.value); \
            d[i] = (first | (!second & (v.index <= w.index))) ? v : w;                     \
        }                                                                                  \
    }
#define PAIR(name, value_type, index_type)  \
    typedef struct {                        \
        value_type value;                   \
        index_type index;                   \
    } name##_pair_t;                        \
    LOC(name##_minloc, name##_pair_t, LESS) \
    LOC(name##_maxloc, name##_pair_t, MORE)

PAIR(float32_int32, float, int32_t)
PAIR(float64_int32, double, int32_t)
PAIR(int32_int32, int32_t, int32_t)
PAIR(int64_int32, int64_t, int32_t)
PAIR(float64_int64, double, int64_t)
PAIR(int64_int64, int64_t, int64_t)

/* The table ------------------------------------------------------------------------------------ */

#define MATH(name) \
    [MESHCOLL_SUM] = name##_sum, [MESHCOLL_AVG] = name##_sum, [MESHCOLL_PROD] = name##_prod
#define ORDER(name) [MESHCOLL_MIN] = name##_min, [MESHCOLL_MAX] = name##_max
#define BITS(name)                                                                             \
    [MESHCOLL_LAND] = name##_land, [MESHCOLL_LOR] = name##_lor, [MESHCOLL_LXOR] = name##_lxor, \
    [MESHCOLL_BAND] = name##_band, [MESHCOLL_BOR] = name##_bor, [MESHCOLL_BXOR] = name##_bxor
/* A bool is a byte of any value, so bitwise operations and comparisons are logical ones. */
#define BOOLS(name)                                                                            \
    [MESHCOLL_LAND] = name##_land, [MESHCOLL_LOR] = name##_lor, [MESHCOLL_LXOR] = name##_lxor, \
    [MESHCOLL_BAND] = name##_land, [MESHCOLL_BOR] = name##_lor, [MESHCOLL_BXOR] = name##_lxor, \
    [MESHCOLL_MIN] = name##_land, [MESHCOLL_MAX] = name##_lor
#define INTEGER_ROW(name)                                    \
    {                                                        \
        {MATH(name), ORDER(name), BITS(name)}, name##_divide \
    }
#define FLOAT_ROW(name)                          \
    {                                            \
        {MATH(name), ORDER(name)}, name##_divide \
    }
#define COMPLEX_ROW(name)           \
    {                               \
        {MATH(name)}, name##_divide \
    }
#define LOC_ROW(name)                                                                \
    {                                                                                \
        {[MESHCOLL_MINLOC] = name##_minloc, [MESHCOLL_MAXLOC] = name##_maxloc}, NULL \
    }

const mc_kernels_t SET = {
    .name = SET_NAME,
    .runs_here = runs_here,
    .of =
        {
            [MESHCOLL_INT8] = INTEGER_ROW(int8),
            [MESHCOLL_INT16] = INTEGER_ROW(int16),
            [MESHCOLL_INT32] = INTEGER_ROW(int32),
            [MESHCOLL_INT64] = INTEGER_ROW(int64),
            [MESHCOLL_UINT8] = INTEGER_ROW(uint8),
            [MESHCOLL_UINT16] = INTEGER_ROW(uint16),
            [MESHCOLL_UINT32] = INTEGER_ROW(uint32),
            [MESHCOLL_UINT64] = INTEGER_ROW(uint64),
            [MESHCOLL_FLOAT16] = FLOAT_ROW(float16),
            [MESHCOLL_BFLOAT16] = FLOAT_ROW(bfloat16),
            [MESHCOLL_FLOAT32] = FLOAT_ROW(float32),
            [MESHCOLL_FLOAT64] = FLOAT_ROW(float64),
            [MESHCOLL_FLOAT8_E4M3] = FLOAT_ROW(float8_e4m3),
            [MESHCOLL_FLOAT8_E5M2] = FLOAT_ROW(float8_e5m2),
            [MESHCOLL_COMPLEX64] = COMPLEX_ROW(complex64),
            [MESHCOLL_COMPLEX128] = COMPLEX_ROW(complex128),
            [MESHCOLL_FLOAT32_INT32] = LOC_ROW(float32_int32),
            [MESHCOLL_FLOAT64_INT32] = LOC_ROW(float64_int32),
            [MESHCOLL_INT32_INT32] = LOC_ROW(int32_int32),
            [MESHCOLL_INT64_INT32] = LOC_ROW(int64_int32),
            [MESHCOLL_FLOAT64_INT64] = LOC_ROW(float64_int64),
            [MESHCOLL_INT64_INT64] = LOC_ROW(int64_int64),
            [MESHCOLL_BOOL] = {{BOOLS(uint8)}, NULL},
        },
};
