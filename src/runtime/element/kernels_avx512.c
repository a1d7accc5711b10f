/*
 * The parts of AVX-512 that x86-64-v4 has, where they pay: for narrow floating point, which is converted by
 * arithmetic. The rest is AVX2's. A core that has not used vectors of 512 bits for a while runs slowly for its first
 * half millisecond with them, the copies beside the sums too: on 2 ranks on a Sapphire Rapids the first 60
 * reduce-scatters of 4 KiB took 2.0 us in the median, with AVX2 and in the long run 1.2 us.
 */
#include "runtime/element/kernel_sets.h"

#ifdef MC_HAS_X86_KERNELS
#include <cpuid.h>
#include <immintrin.h>

static bool runs_here(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__) /* of two targets it takes the first: they are not nested */
#define TARGET(text) \
    PRAGMA(clang attribute push(__attribute__((target(text))), apply_to = function))
#define TARGET_END   PRAGMA(clang attribute pop)
#define NARROW_BEGIN TARGET_END TARGET("avx512f,avx512bw,avx512vl,avx512dq")
#define NARROW_END   TARGET_END TARGET("avx2,f16c")
#else
#define TARGET(text) PRAGMA(GCC push_options) PRAGMA(GCC target(text))
#define TARGET_END   PRAGMA(GCC pop_options)
#define NARROW_BEGIN TARGET("avx512f,avx512bw,avx512vl,avx512dq")
#define NARROW_END   TARGET_END
#endif

#define SET           mc_kernels_avx512
#define SET_NAME      "avx512"
#define HALF_LANES    8
#define HALF_LOAD(at) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at)))
#define HALF_STORE(at, v) \
    _mm_storeu_si128((__m128i *)(at), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#define HALF_SUM(a, b)  _mm256_add_ps(a, b)
#define HALF_PROD(a, b) _mm256_mul_ps(a, b)

TARGET("avx2,f16c")
#include "runtime/element/kernels_body.h"
TARGET_END
#endif
