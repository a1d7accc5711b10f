/* Elements and what reduces them. */
#ifndef MC_RUNTIME_DATATYPE_H
#define MC_RUNTIME_DATATYPE_H

#include "runtime/element/kernels.h"

/* What reduces the elements of an operation, found once when it is bound. */
typedef struct {
    mc_kernel_t kernel; /* NULL: a user's function */
    mc_scale_t divide;  /* of the results, at the end; NULL: nothing is divided */
    meshcoll_op_fn_t function;
    void *context;
    meshcoll_datatype_t datatype;
} mc_reducer_t;

/* For this machine; NULL where there is none: see meshcoll_op_check. */
mc_kernel_t mc_kernel(meshcoll_datatype_t datatype, meshcoll_op_t op);

/* Both were checked. */
mc_reducer_t mc_reducer(meshcoll_datatype_t datatype, meshcoll_op_t op);

/* dst[i] = a[i] (op) b[i] for n elements; dst may be a or b, but not overlap them otherwise. */
static inline void mc_reduce(const mc_reducer_t *r, void *dst, const void *a, const void *b,
                             size_t n)
{
    if (r->kernel)
        r->kernel(dst, a, b, n);
    else
        r->function(r->context, dst, a, b, n, r->datatype);
}

/* Users' operations ------------------------------------------------------------------------------ */

typedef struct {
    meshcoll_op_fn_t function;
    void *context;
    bool commutative;
} mc_user_op_t;

/* False where there is none of that handle. */
bool mc_user_op_find(meshcoll_op_t op, mc_user_op_t *found);

/* All operations of the library do. */
bool mc_op_commutes(meshcoll_op_t op);

/* Has a reduction the same bits in whatever order and brackets? True of the library's operations on
 * integers; of users' nothing is known. Both were checked. */
bool mc_op_associates(meshcoll_op_t op, meshcoll_datatype_t datatype);

#endif
