/* The parts of AVX-512 that x86-64-v4 has. */
#include "runtime/kernel_sets.h"

#ifdef MC_HAS_X86_KERNELS
#include <immintrin.h>

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#endif

#define SET           mc_kernels_avx512
#define SET_NAME      "avx512"
#define HALF_LANES    16
#define HALF_LOAD(at) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(at)))
#define HALF_STORE(at, v) \
    _mm256_storeu_si256((__m256i *)(at), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#define HALF_SUM(a, b)  _mm512_add_ps(a, b)
#define HALF_PROD(a, b) _mm512_mul_ps(a, b)
#include "runtime/kernels_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
