/* The sets of kernels, and the processors they are compiled for. */
#ifndef MC_RUNTIME_KERNEL_SETS_H
#define MC_RUNTIME_KERNEL_SETS_H

#include "runtime/element/kernels.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define MC_HAS_X86_KERNELS 1
#endif

extern const mc_kernels_t mc_kernels_baseline;
#ifdef MC_HAS_X86_KERNELS
extern const mc_kernels_t mc_kernels_avx2;
extern const mc_kernels_t mc_kernels_avx512;
#endif

#endif
