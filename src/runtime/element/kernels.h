/*
 * The reduction kernels: one text (kernels_body.h), compiled for several instruction sets, chosen when
 * a program runs. All give the same bits, save what a NaN carries besides being one.
 */
#ifndef MC_RUNTIME_KERNELS_H
#define MC_RUNTIME_KERNELS_H

#include "base/base.h"

/*
 * dst[i] = a[i] (op) b[i] for n elements; dst may be a or b, but not overlap them otherwise.
 * Integers wrap. Of a number and a NaN, min and max give b, so that which it is depends on the
 * strategy, but not on the rank.
 */
typedef void (*mc_kernel_t)(void *dst, const void *a, const void *b, size_t n);

/* at[i] /= by, for n elements. */
typedef void (*mc_scale_t)(void *at, size_t n, int32_t by);

typedef struct {
    const char *name;
    bool (*runs_here)(void); /* has this machine what it takes? */
    mc_kernel_t kernel[MESHCOLL_DATATYPES]
                      [MESHCOLL_OPS];      /* NULL where there is none; avg: the sum */
    mc_scale_t divide[MESHCOLL_DATATYPES]; /* of those that have an average */
} mc_kernels_t;

/* The least first; index 0 runs everywhere. */
extern const mc_kernels_t *const mc_kernels[];
extern const int mc_n_kernels;

/* The last of them that runs here. */
const mc_kernels_t *mc_kernels_best(void);

#endif
