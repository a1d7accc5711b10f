/* Kernels for AVX2, with F16C for float16. */
#include "runtime/element/kernels.h"

#ifdef MC_HAS_X86_KERNELS
#include <cpuid.h>
#include <immintrin.h>

static bool runs_here(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

#define SET      mc_kernels_avx2
#define SET_NAME "avx2"
#define HALF_VECTORS
#include "runtime/element/kernels_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
