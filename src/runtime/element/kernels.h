/*
 * The reduction kernels: one source (kernels_body.h), compiled for several instruction sets and
 * selected at run time. All sets yield the same bits, except for the payload of NaNs.
 */
#ifndef MC_RUNTIME_KERNELS_H
#define MC_RUNTIME_KERNELS_H

#include "base/base.h"

/*
 * dst[i] = a[i] (op) b[i] for n elements. dst may be a or b, but not overlap them otherwise.
 * Integers wrap. Of min, max, minloc and maxloc the result does not depend on the order of operands.
 */
typedef void (*mc_kernel_t)(void *dst, const void *a, const void *b, size_t n);

/* at[i] /= by, for n elements. */
typedef void (*mc_scale_t)(void *at, size_t n, int32_t by);

typedef struct {
    const char *name;
    bool (*runs_here)(void); /* does this processor support the set? */
    struct {
        mc_kernel_t kernel[MESHCOLL_OPS]; /* NULL: not supported; avg: the sum */
        mc_scale_t divide;                /* of datatypes that have an average; else NULL */
    } of[MESHCOLL_DATATYPES];
} mc_kernels_t;

/* The sets, and the processors they are compiled for. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define MC_HAS_X86_KERNELS 1
extern const mc_kernels_t mc_kernels_avx2, mc_kernels_avx512;
#endif
extern const mc_kernels_t mc_kernels_baseline;

/* In ascending order of preference; index 0 runs everywhere. */
extern const mc_kernels_t *const mc_kernels[];
extern const int mc_n_kernels;

/* The last set that this processor supports. */
const mc_kernels_t *mc_kernels_best(void);

#endif
