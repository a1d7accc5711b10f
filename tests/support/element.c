#include "support/element.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Bits of the mantissa, offset of the exponent, and the largest number; `infinite`: it has
 * infinities. `saturates`: what is too large becomes the largest. */
typedef struct {
    int mantissa, bias, bytes;
    double largest;
    bool infinite, saturates;
} format_t;

static const format_t *format_of(meshcoll_datatype_t type)
{
    static const format_t float16 = {10, 15, 2, 65504, true, false};
    static const format_t bfloat16 = {7, 127, 2, 0x1.fep127, true, false};
    static const format_t e4m3 = {3, 7, 1, 448, false, true};
    static const format_t e5m2 = {2, 15, 1, 57344, true, true};
    switch (type) {
    case MESHCOLL_FLOAT16:
        return &float16;
    case MESHCOLL_BFLOAT16:
        return &bfloat16;
    case MESHCOLL_FLOAT8_E4M3:
        return &e4m3;
    case MESHCOLL_FLOAT8_E5M2:
        return &e5m2;
    default:
        return NULL;
    }
}

bool mc_is_narrow(meshcoll_datatype_t type)
{
    return format_of(type);
}

bool mc_is_complex(meshcoll_datatype_t type)
{
    return type == MESHCOLL_COMPLEX64 || type == MESHCOLL_COMPLEX128;
}

bool mc_is_pair(meshcoll_datatype_t type)
{
    return type >= MESHCOLL_FLOAT32_INT32 && type <= MESHCOLL_INT64_INT64;
}

bool mc_is_integer(meshcoll_datatype_t type)
{
    return type != MESHCOLL_BOOL && !mc_is_pair(type) && !mc_is_complex(type) &&
           !mc_is_narrow(type) && type != MESHCOLL_FLOAT32 && type != MESHCOLL_FLOAT64;
}

/* Sign, exponent, mantissa, by the definition. */
static double decode(const format_t *f, unsigned bits)
{
    const int width = 8 * f->bytes - 1;
    const unsigned rest = bits & ((1u << width) - 1), exponent = rest >> f->mantissa;
    const unsigned fraction = rest & ((1u << f->mantissa) - 1);
    const unsigned top = (1u << (width - f->mantissa)) - 1;
    const double sign = bits >> width ? -1 : 1;
    if (f->infinite && exponent == top)
        return fraction ? NAN : sign * INFINITY;
    if (!f->infinite && rest == (1u << width) - 1)
        return NAN;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - f->bias - f->mantissa);
    return sign * ldexp(fraction + (1u << f->mantissa), (int)exponent - f->bias - f->mantissa);
}

static unsigned encode(const format_t *f, double x)
{
    const int width = 8 * f->bytes - 1;
    const unsigned sign = signbit(x) ? 1u << width : 0, all = (1u << width) - 1;
    const unsigned infinity = all >> f->mantissa << f->mantissa;
    int exponent;
    if (isnan(x))
        return f->infinite ? infinity | 1u << (f->mantissa - 1) : all;
    if (isinf(x) && f->infinite)
        return sign | infinity;
    x = fabs(x);
    if (x == 0)
        return sign;
    frexp(x, &exponent);
    const int least = 2 - f->bias, e = exponent < least ? least : exponent;
    /* in units of the last place, in [2^m, 2^(m+1)) where it is normal */
    double units = nearbyint(ldexp(x, f->mantissa + 1 - e));
    if (ldexp(units, e - 1 - f->mantissa) > f->largest) {
        if (!f->saturates)
            return sign | infinity;
        x = f->largest;
        frexp(x, &exponent);
        return sign | (unsigned)(((exponent + f->bias - 2) << f->mantissa) +
                                 (int)ldexp(x, f->mantissa + 1 - exponent));
    }
    return sign | (unsigned)(((e + f->bias - 2) << f->mantissa) + (int)units);
}

/* clang-format off */
#define PAIRS(X)                     \
    X(FLOAT32_INT32, float, int32_t)  \
    X(FLOAT64_INT32, double, int32_t) \
    X(INT32_INT32, int32_t, int32_t)  \
    X(INT64_INT32, int64_t, int32_t)  \
    X(FLOAT64_INT64, double, int64_t) \
    X(INT64_INT64, int64_t, int64_t)
#define PLAIN(X)          \
    X(INT8, int8_t)       \
    X(INT16, int16_t)     \
    X(INT32, int32_t)     \
    X(INT64, int64_t)     \
    X(UINT8, uint8_t)     \
    X(UINT16, uint16_t)   \
    X(UINT32, uint32_t)   \
    X(UINT64, uint64_t)
/* clang-format on */

void mc_element_set(meshcoll_datatype_t type, void *at, size_t i, mc_number_t n)
{
    const format_t *const f = format_of(type);
    if (f && f->bytes == 2) {
        ((uint16_t *)at)[i] = (uint16_t)encode(f, n.a);
        return;
    }
    if (f) {
        ((uint8_t *)at)[i] = (uint8_t)encode(f, n.a);
        return;
    }
    switch (type) {
    case MESHCOLL_BOOL:
        ((uint8_t *)at)[i] = n.a != 0;
        return;
#define X(name, c_type)                           \
    case MESHCOLL_##name:                         \
        ((c_type *)at)[i] = (c_type)(int64_t)n.a; \
        return;
        PLAIN(X)
#undef X
#define X(name, v, k)           \
    case MESHCOLL_##name: {     \
        struct {                \
            v value;            \
            k index;            \
        } *const pair = at;     \
        pair[i].value = (v)n.a; \
        pair[i].index = (k)n.b; \
        return;                 \
    }
        PAIRS(X)
#undef X
    case MESHCOLL_FLOAT32:
        ((float *)at)[i] = (float)n.a;
        return;
    case MESHCOLL_COMPLEX64:
        ((float *)at)[2 * i] = (float)n.a;
        ((float *)at)[2 * i + 1] = (float)n.b;
        return;
    case MESHCOLL_COMPLEX128:
        ((double *)at)[2 * i] = n.a;
        ((double *)at)[2 * i + 1] = n.b;
        return;
    default:
        ((double *)at)[i] = n.a;
    }
}

mc_number_t mc_element_get(meshcoll_datatype_t type, const void *at, size_t i)
{
    const format_t *const f = format_of(type);
    if (f)
        return (mc_number_t){
            decode(f, f->bytes == 2 ? ((const uint16_t *)at)[i] : ((const uint8_t *)at)[i]), 0};
    switch (type) {
    case MESHCOLL_BOOL:
        return (mc_number_t){((const uint8_t *)at)[i], 0};
#define X(name, c_type)   \
    case MESHCOLL_##name: \
        return (mc_number_t){(double)((const c_type *)at)[i], 0};
        PLAIN(X)
#undef X
#define X(name, v, k)                                                       \
    case MESHCOLL_##name: {                                                 \
        const struct {                                                      \
            v value;                                                        \
            k index;                                                        \
        } *const pair = at;                                                 \
        return (mc_number_t){(double)pair[i].value, (double)pair[i].index}; \
    }
        PAIRS(X)
#undef X
    case MESHCOLL_FLOAT32:
        return (mc_number_t){(double)((const float *)at)[i], 0};
    case MESHCOLL_COMPLEX64:
        return (mc_number_t){(double)((const float *)at)[2 * i],
                             (double)((const float *)at)[2 * i + 1]};
    case MESHCOLL_COMPLEX128:
        return (mc_number_t){((const double *)at)[2 * i], ((const double *)at)[2 * i + 1]};
    default:
        return (mc_number_t){((const double *)at)[i], 0};
    }
}

static bool same_part(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

bool mc_element_same(meshcoll_datatype_t type, const void *x, const void *y, size_t i)
{
    const mc_number_t p = mc_element_get(type, x, i), q = mc_element_get(type, y, i);
    return same_part(p.a, q.a) && same_part(p.b, q.b);
}

meshcoll_op_t mc_element_op(meshcoll_datatype_t type, int turn)
{
    meshcoll_op_t fitting[MESHCOLL_OPS];
    int n = 0;
    for (int op = 0; op < MESHCOLL_OPS; op++)
        if (meshcoll_op_check((meshcoll_op_t)op, type) == MESHCOLL_OK)
            fitting[n++] = (meshcoll_op_t)op;
    return fitting[turn % n];
}
