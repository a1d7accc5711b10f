/*
 * Conversion of 16-bit and 8-bit floating point to float32, which is exact, and back, which rounds
 * to nearest, ties to even; and the larger and the smaller of two floating-point numbers. Without
 * branches and tables, so that compilers vectorise loops over it.
 * A number has a sign, an exponent with an offset of `bias`, and `m` bits of mantissa. nvcc compiles
 * this text too, for the kernels of GPUs.
 */
#ifndef MC_RUNTIME_NARROW_H
#define MC_RUNTIME_NARROW_H

#include "runtime/element/operators.h"

#include <stdint.h>

#if defined(__CUDACC__)
#define NARROW_FN static __host__ __device__ inline
#else
#define NARROW_FN static inline
#endif

enum { FLOAT_MANTISSA = 23, FLOAT_BIAS = 127 };
#define FLOAT_INFINITY UINT32_C(0x7f800000)
#define FLOAT_QUIET    UINT32_C(0x00400000)

typedef union {
    float f;
    uint32_t bits;
} single_t;

NARROW_FN uint32_t bits_of(float f)
{
    single_t s;
    s.f = f;
    return s.bits;
}

NARROW_FN float float_of(uint32_t bits)
{
    single_t s;
    s.bits = bits;
    return s.f;
}

/* The float32 bits of a finite number from its bits `h` without the sign. */
NARROW_FN uint32_t widen(uint32_t h, int m, int bias)
{
    const int shift = FLOAT_MANTISSA - m;
    const uint32_t normal = (h << shift) + ((uint32_t)(FLOAT_BIAS - bias) << FLOAT_MANTISSA);
    /* a subnormal's value is what its mantissa adds to the smallest normal number */
    const uint32_t least = (uint32_t)(FLOAT_BIAS - bias + 1) << FLOAT_MANTISSA;
    const uint32_t subnormal = bits_of(float_of((h << shift) + least) - float_of(least));
    return h >> m ? normal : subnormal;
}

/* The narrow bits of a finite float32 from its bits `size`; both without the sign. Too large
 * numbers overflow into the exponents above. */
NARROW_FN uint32_t narrowed(uint32_t size, int m, int bias)
{
    const int shift = FLOAT_MANTISSA - m;
    const uint32_t least = (uint32_t)(FLOAT_BIAS - bias + 1) << FLOAT_MANTISSA;
    /* a number whose last bit is worth the smallest subnormal: adding it rounds there */
    const uint32_t magic = least + ((uint32_t)shift << FLOAT_MANTISSA);
    const uint32_t subnormal = bits_of(float_of(size) + float_of(magic)) - magic;
    const uint32_t half = (UINT32_C(1) << (shift - 1)) - 1 + (size >> shift & 1);
    const uint32_t normal =
        (size - ((uint32_t)(FLOAT_BIAS - bias) << FLOAT_MANTISSA) + half) >> shift;
    return size < least ? subnormal : normal;
}

NARROW_FN uint32_t quiet_payload(uint32_t size, int m)
{
    return UINT32_C(1) << (m - 1) | (size >> (FLOAT_MANTISSA - m) & ((UINT32_C(1) << m) - 1));
}

NARROW_FN float float16_wide(uint16_t x)
{
    const uint32_t h = x & 0x7fffu, sign = (uint32_t)(x & 0x8000u) << 16;
    const uint32_t special = h << 13 | FLOAT_INFINITY | (h > 0x7c00u ? FLOAT_QUIET : 0);
    const uint32_t finite = widen(h, 10, 15);
    return float_of(sign | (h >= 0x7c00u ? special : finite));
}

NARROW_FN uint16_t float16_narrow(float f)
{
    const uint32_t bits = bits_of(f), size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    const uint32_t nan = 0x7c00u | quiet_payload(size, 10), finite = narrowed(size, 10, 15);
    const uint32_t bounded = size >= bits_of(65536.0f) ? 0x7c00u : finite;
    return (uint16_t)(sign | (size > FLOAT_INFINITY ? nan : bounded));
}

NARROW_FN float bfloat16_wide(uint16_t x)
{
    return float_of((uint32_t)x << 16);
}

NARROW_FN uint16_t bfloat16_narrow(float f)
{
    const uint32_t bits = bits_of(f);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    const uint32_t nan = bits >> 16 | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > FLOAT_INFINITY ? nan : rounded);
}

NARROW_FN float float8_e4m3_wide(uint8_t x)
{
    const uint32_t h = x & 0x7fu, sign = (uint32_t)(x & 0x80u) << 24;
    const uint32_t finite = widen(h, 3, 7);
    return float_of(sign | (h == 0x7fu ? FLOAT_INFINITY | FLOAT_QUIET : finite));
}

/* Too large numbers become the largest one, 448; there is no infinity. */
NARROW_FN uint8_t float8_e4m3_narrow(float f)
{
    const uint32_t bits = bits_of(f), size = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    const uint32_t finite = narrowed(size, 3, 7);
    const uint32_t bounded = size >= bits_of(448.0f) ? 0x7eu : finite;
    return (uint8_t)(sign | (size > FLOAT_INFINITY ? 0x7fu : bounded));
}

NARROW_FN float float8_e5m2_wide(uint8_t x)
{
    return float16_wide((uint16_t)(x << 8));
}

/* Too large numbers become the largest one, 57344; infinity remains. */
NARROW_FN uint8_t float8_e5m2_narrow(float f)
{
    const uint32_t bits = bits_of(f), size = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    const uint32_t nan = 0x7cu | quiet_payload(size, 2), finite = narrowed(size, 2, 15);
    const uint32_t bounded = size >= bits_of(57344.0f) ? 0x7bu : finite;
    const uint32_t number = size == FLOAT_INFINITY ? 0x7cu : bounded;
    return (uint8_t)(sign | (size > FLOAT_INFINITY ? nan : number));
}

/* maximum and minimum of IEEE 754-2019: a NaN wins, and -0 is less than +0. For any order of operands
 * the result has the same bits: a NaN becomes the one whose bits are ones, but for the sign. */
#define EXTREME(name, type, bits, PICK, JOIN)                  \
    NARROW_FN type name(type x, type y)                        \
    {                                                          \
        union {                                                \
            type number;                                       \
            bits word;                                         \
        } u, v;                                                \
        u.number = PICK(x, y); /* the second of two zeros */   \
        v.number = PICK(y, x);                                 \
        u.word = JOIN(u.word, v.word);                         \
        u.word = (x == x) & (y == y) ? u.word : (bits)-1 >> 1; \
        return u.number;                                       \
    }
EXTREME(float32_minimum, float, uint32_t, MIN, BOR)
EXTREME(float32_maximum, float, uint32_t, MAX, BAND)
EXTREME(float64_minimum, double, uint64_t, MIN, BOR)
EXTREME(float64_maximum, double, uint64_t, MAX, BAND)

/* The same on the bits of narrow numbers. As integers those of negative numbers are in reverse order;
 * `turned` puts them in order, and back. `most` is infinity, or the largest number if there is none. */
#define NARROW_EXTREMES(name, bits, integer, most)                                  \
    NARROW_FN integer name##_turned(integer x)                                      \
    {                                                                               \
        return (integer)(x ^ (x >> (8 * sizeof x - 1) & (integer)((bits)-1 >> 1))); \
    }                                                                               \
    NARROW_FN integer name##_place(bits x)                                          \
    {                                                                               \
        const bits nan = (bits)-1 >> 1;                                             \
        return (x & nan) > (most) ? (integer)nan : name##_turned((integer)x);       \
    }                                                                               \
    NARROW_FN bits name##_maximum(bits x, bits y)                                   \
    {                                                                               \
        const integer a = name##_place(x), b = name##_place(y);                     \
        return (bits)name##_turned(MAX(a, b));                                      \
    }                                                                               \
    NARROW_FN bits name##_minimum(bits x, bits y)                                   \
    {                                                                               \
        const integer a = name##_place(x), b = name##_place(y), high = MAX(a, b);   \
        return (bits)name##_turned(high > (most) ? high : MIN(a, b));               \
    }
NARROW_EXTREMES(float16, uint16_t, int16_t, 0x7c00)
NARROW_EXTREMES(bfloat16, uint16_t, int16_t, 0x7f80)
NARROW_EXTREMES(float8_e4m3, uint8_t, int8_t, 0x7e)
NARROW_EXTREMES(float8_e5m2, uint8_t, int8_t, 0x7c)

#endif
