/*
 * Kernels for the AVX-512 subset of x86-64-v4, used only where it pays: for narrow floating point,
 * which is converted by arithmetic. The other kernels are AVX2's, as a core that has not used
 * 512-bit vectors for a while runs slowly at first, copies included.
 */
#include "runtime/element/kernels.h"

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
#if defined(__clang__) /* with two nested targets clang takes the outer one */
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

#define SET      mc_kernels_avx512
#define SET_NAME "avx512"
#define HALF_VECTORS

TARGET("avx2,f16c")
#include "runtime/element/kernels_body.h"
TARGET_END
#endif
