/* Elements and what reduces them: one table of kernels by datatype and operation. */
#ifndef MC_RUNTIME_DATATYPE_H
#define MC_RUNTIME_DATATYPE_H

#include "base/base.h"

/* dst[i] = a[i] (op) b[i] for n elements; dst may be a or b, but not overlap them otherwise.
 * Integer sums wrap. Of a number and a NaN, min and max give either. */
typedef void (*mc_kernel_t)(void *dst, const void *a, const void *b, size_t n);

/* NULL when out of range. */
mc_kernel_t mc_kernel(meshcoll_datatype_t datatype, meshcoll_op_t op);

#endif
