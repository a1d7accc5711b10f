/*
 * Conversion of 16-bit and 8-bit floating point to float32, which is exact, and back, which rounds
 * to nearest, ties to even. Without branches and tables, so that compilers vectorise loops over it.
 * A number has a sign, an exponent with an offset of `bias`, and `m` bits of mantissa. nvcc compiles
 * this text too, for the kernels of GPUs.
 */
#ifndef MC_RUNTIME_NARROW_H
#define MC_RUNTIME_NARROW_H

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

#endif
