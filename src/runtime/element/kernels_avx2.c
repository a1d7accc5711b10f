/* Kernels for AVX2, with F16C for float16. */
#include "runtime/element/kernel_sets.h"

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

#define SET           mc_kernels_avx2
#define SET_NAME      "avx2"
#define HALF_LANES    8
#define HALF_LOAD(at) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at)))
#define HALF_STORE(at, v) \
    _mm_storeu_si128((__m128i *)(at), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#define HALF_SUM(a, b)  _mm256_add_ps(a, b)
#define HALF_PROD(a, b) _mm256_mul_ps(a, b)
#include "runtime/element/kernels_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
