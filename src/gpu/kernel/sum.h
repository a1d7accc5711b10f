/*
 * Reductions of the elements in two words, one per datatype and operation; and the divisions of
 * averages, and products of scaled sums, by a block's threads. The bits are those of the host's
 * kernels (runtime/element/kernels_body.h), payloads of NaNs excepted: the same text for each
 * element, and no multiply and add in one (nvcc: -fmad=false).
 *
 * Sums, products and bits of signed integers are those of unsigned ones, and complex sums and
 * quotients those of their parts, so these have no bodies of their own (gpu/program/bodies.h).
 */
#ifndef MC_KERNEL_SUM_H
#define MC_KERNEL_SUM_H

#include "gpu/kernel/block.h"
#include "runtime/element/narrow.h"
#include "runtime/element/operators.h"

#define MC_DEVICE_ALIAS __attribute__((__may_alias__))

/* Two elements, and each of many -------------------------------------------------------------- */

/* The function mc_device_<name>_<op>(x, y), of elements. */
#define MC_DEVICE_EACH(name, op, expression)                                                \
    MC_DEVICE_FN mc_device_##name##_t mc_device_##name##_##op(const mc_device_##name##_t x, \
                                                              const mc_device_##name##_t y) \
    {                                                                                       \
        return (mc_device_##name##_t)(expression);                                          \
    }                                                                                       \
    MC_DEVICE_OVER(name, op)

/* The same of all elements in two words. */
#define MC_DEVICE_OVER(name, op)                                                     \
    MC_DEVICE_FN mc_word_t mc_device_combine_##name##_##op(mc_word_t a, mc_word_t b) \
    {                                                                                \
        typedef mc_device_##name##_t element_t;                                      \
        union {                                                                      \
            mc_word_t word;                                                          \
            element_t element[MC_DEVICE_WORD / sizeof(element_t)];                   \
        } x, y;                                                                      \
        x.word = a;                                                                  \
        y.word = b;                                                                  \
        MC_UNROLL                                                                    \
        for (unsigned e = 0; e < MC_DEVICE_WORD / sizeof(element_t); e++)            \
            x.element[e] = mc_device_##name##_##op(x.element[e], y.element[e]);      \
        return x.word;                                                               \
    }

#define MC_DEVICE_DIVIDE_BY(name, wide, quotient)                                                \
    MC_DEVICE_FN void mc_device_divide_##name(mc_thread_t thread, char *to, const char *from,    \
                                              uint64_t bytes, int32_t ranks, const void *scalar) \
    {                                                                                            \
        const mc_device_##name##_t *const d = (const mc_device_##name##_t *)from;                \
        const wide by = (wide)ranks;                                                             \
        (void)scalar;                                                                            \
        for (uint64_t i = thread.index; i < bytes / sizeof *d; i += thread.count)                \
            ((mc_device_##name##_t *)to)[i] = (mc_device_##name##_t)(quotient);                  \
    }
#define MC_DEVICE_SCALE_BY(name)                                                                   \
    MC_DEVICE_FN void mc_device_divide_##name##_scale(mc_thread_t thread, char *to,                \
                                                      const char *from, uint64_t bytes,            \
                                                      int32_t by, const void *scalar)              \
    {                                                                                              \
        typedef mc_device_##name##_t element_t;                                                    \
        (void)by;                                                                                  \
        for (uint64_t i = thread.index; i < bytes / sizeof(element_t); i += thread.count)          \
            ((element_t *)to)[i] =                                                                 \
                mc_device_##name##_prod(((const element_t *)from)[i], *(const element_t *)scalar); \
    }

/* Integers: s and u are the signed and the unsigned ones of a size ----------------------------- */

#define MC_DEVICE_PLAIN(name, type) typedef type mc_device_##name##_t MC_DEVICE_ALIAS;
#define MC_DEVICE_ORDER(name)            \
    MC_DEVICE_EACH(name, min, MIN(x, y)) \
    MC_DEVICE_EACH(name, max, MAX(x, y))
#define MC_DEVICE_INTEGERS(s, u, wide_s, wide_u) \
    MC_DEVICE_PLAIN(s, s##_t)                    \
    MC_DEVICE_PLAIN(u, u##_t)                    \
    MC_DEVICE_EACH(u, sum, SUM(x, y))            \
    MC_DEVICE_EACH(u, prod, UPROD(x, y))         \
    MC_DEVICE_EACH(u, land, LAND(x, y))          \
    MC_DEVICE_EACH(u, lor, LOR(x, y))            \
    MC_DEVICE_EACH(u, lxor, LXOR(x, y))          \
    MC_DEVICE_EACH(u, band, BAND(x, y))          \
    MC_DEVICE_EACH(u, bor, BOR(x, y))            \
    MC_DEVICE_EACH(u, bxor, BXOR(x, y))          \
    MC_DEVICE_ORDER(s)                           \
    MC_DEVICE_ORDER(u)                           \
    MC_DEVICE_DIVIDE_BY(s, wide_s, d[i] / by)    \
    MC_DEVICE_DIVIDE_BY(u, wide_u, d[i] / by)    \
    MC_DEVICE_SCALE_BY(u)
MC_DEVICE_INTEGERS(int8, uint8, int32_t, uint32_t)
MC_DEVICE_INTEGERS(int16, uint16, int32_t, uint32_t)
MC_DEVICE_INTEGERS(int32, uint32, int64_t, uint32_t)
MC_DEVICE_INTEGERS(int64, uint64, int64_t, uint64_t)

/* Floating point ------------------------------------------------------------------------------- */

#define MC_DEVICE_EXTREMES(name)                    \
    MC_DEVICE_EACH(name, min, name##_minimum(x, y)) \
    MC_DEVICE_EACH(name, max, name##_maximum(x, y))

#define MC_DEVICE_FLOAT(name, type)            \
    MC_DEVICE_PLAIN(name, type)                \
    MC_DEVICE_EACH(name, sum, SUM(x, y))       \
    MC_DEVICE_EACH(name, prod, PROD(x, y))     \
    MC_DEVICE_EXTREMES(name)                   \
    MC_DEVICE_DIVIDE_BY(name, type, d[i] / by) \
    MC_DEVICE_SCALE_BY(name)
MC_DEVICE_FLOAT(float32, float)
MC_DEVICE_FLOAT(float64, double)

/* Narrow: sums, products and quotients in float32, rounded once. */
#define MC_DEVICE_NARROW(name, type)                                                \
    MC_DEVICE_PLAIN(name, type)                                                     \
    MC_DEVICE_EACH(name, sum, name##_narrow(SUM(name##_wide(x), name##_wide(y))))   \
    MC_DEVICE_EACH(name, prod, name##_narrow(PROD(name##_wide(x), name##_wide(y)))) \
    MC_DEVICE_EXTREMES(name)                                                        \
    MC_DEVICE_DIVIDE_BY(name, float, name##_narrow(name##_wide(d[i]) / by))         \
    MC_DEVICE_SCALE_BY(name)
MC_DEVICE_NARROW(float16, uint16_t)
MC_DEVICE_NARROW(bfloat16, uint16_t)
MC_DEVICE_NARROW(float8_e4m3, uint8_t)
MC_DEVICE_NARROW(float8_e5m2, uint8_t)

#define MC_DEVICE_COMPLEX(name, type)                                                 \
    typedef struct MC_DEVICE_ALIAS {                                                  \
        type re, im;                                                                  \
    } mc_device_##name##_t;                                                           \
    MC_DEVICE_FN mc_device_##name##_t mc_device_##name##_prod(mc_device_##name##_t x, \
                                                              mc_device_##name##_t y) \
    {                                                                                 \
        mc_device_##name##_t product;                                                 \
        product.re = x.re * y.re - x.im * y.im;                                       \
        product.im = x.re * y.im + x.im * y.re;                                       \
        return product;                                                               \
    }                                                                                 \
    MC_DEVICE_OVER(name, prod)                                                        \
    MC_DEVICE_SCALE_BY(name)
MC_DEVICE_COMPLEX(complex64, float)
MC_DEVICE_COMPLEX(complex128, double)

/* Pairs ---------------------------------------------------------------------------------------- */

/* The lower index wins where neither value is before the other. */
#define MC_DEVICE_LOC_OF(name, op, BEFORE)                                             \
    MC_DEVICE_FN mc_device_##name##_t mc_device_##name##_##op(mc_device_##name##_t x,  \
                                                              mc_device_##name##_t y)  \
    {                                                                                  \
        const int first = BEFORE(x.value, y.value), second = BEFORE(y.value, x.value); \
        return (first | (!second & (x.index <= y.index))) ? x : y;                     \
    }                                                                                  \
    MC_DEVICE_OVER(name, op)
#define MC_DEVICE_PAIR(name, value_type, index_type) \
    typedef struct MC_DEVICE_ALIAS {                 \
        value_type value;                            \
        index_type index;                            \
    } mc_device_##name##_t;                          \
    MC_DEVICE_LOC_OF(name, minloc, LESS)             \
    MC_DEVICE_LOC_OF(name, maxloc, MORE)
MC_DEVICE_PAIR(float32_int32, float, int32_t)
MC_DEVICE_PAIR(float64_int32, double, int32_t)
MC_DEVICE_PAIR(int32_int32, int32_t, int32_t)
MC_DEVICE_PAIR(int64_int32, int64_t, int32_t)
MC_DEVICE_PAIR(float64_int64, double, int64_t)
MC_DEVICE_PAIR(int64_int64, int64_t, int64_t)

/* ---------------------------------------------------------------------------------------------- */

/* Where there is nothing to reduce, or to divide. */
MC_DEVICE_FN mc_word_t mc_device_combine_none(mc_word_t a, mc_word_t b)
{
    (void)b;
    return a;
}
MC_DEVICE_FN void mc_device_divide_none(mc_thread_t thread, char *to, const char *from,
                                        uint64_t bytes, int32_t ranks, const void *scalar)
{
    (void)thread, (void)to, (void)from, (void)bytes, (void)ranks, (void)scalar;
}

/* A step of the stream executor, by all threads of a grid; waits for nobody. */
MC_DEVICE_FN void mc_device_sum(mc_thread_t thread, const mc_device_sum_t *sum,
                                mc_device_combine_t combine, mc_device_divide_t divide)
{
    for (uint32_t k = 0; k < sum->n; k++) {
        char *const to = sum->to + k * sum->to_stride;
        if (sum->by)
            divide(thread, to, sum->a + k * sum->a_stride, sum->bytes, sum->by, sum->scalar);
        else
            mc_device_reduce(thread, to, sum->a + k * sum->a_stride, sum->b + k * sum->b_stride,
                             sum->bytes, combine);
    }
}

#endif
