/* Datatypes, operations, and the reducers that apply an operation to elements. */
#ifndef MC_RUNTIME_DATATYPE_H
#define MC_RUNTIME_DATATYPE_H

#include "runtime/element/kernels.h"

/* Bytes of the largest element that a scaled sum has a scalar of. */
enum { MC_MOST_ELEMENT = 16 };

/* Applies an operation to elements of a datatype; looked up once per binding. */
typedef struct {
    mc_kernel_t kernel; /* NULL: `function`, a user's */
    mc_scale_t divide;  /* of the results, at the end; NULL: none */
    mc_kernel_t scale;  /* the product of this rank's input and `scalar`, at first; NULL: none */
    char scalar[MC_MOST_ELEMENT];
    meshcoll_op_fn_t function;
    void *context;
    meshcoll_datatype_t datatype;
} mc_reducer_t;

/* The fastest kernel for this machine; NULL: the operation does not support the datatype
 * (meshcoll_op_check). */
mc_kernel_t mc_kernel(meshcoll_datatype_t datatype, meshcoll_op_t op);

/* `datatype` and `op` have passed meshcoll_op_check. */
mc_reducer_t mc_reducer(meshcoll_datatype_t datatype, meshcoll_op_t op);

/* mc_reduce by a user's function, which gets operands that are aligned as elements are; unless the caller's
 * own buffers are not. */
void mc_reduce_by_user(const mc_reducer_t *r, void *dst, const void *a, const void *b, size_t n);

/* dst[i] = a[i] (op) b[i] for n elements. dst may be a or b, but not overlap them otherwise. */
static inline void mc_reduce(const mc_reducer_t *r, void *dst, const void *a, const void *b,
                             size_t n)
{
    if (r->kernel)
        r->kernel(dst, a, b, n);
    else
        mc_reduce_by_user(r, dst, a, b, n);
}

/* Operations with a handle: users' functions, and scaled sums ------------------------------------ */

typedef struct {
    meshcoll_op_fn_t function;
    void *context;
    bool commutative;
    /* A scaled sum, of meshcoll_op_premul: has no function, is for one datatype, and commutes. */
    bool is_premul;
    meshcoll_datatype_t datatype;
    char scalar[MC_MOST_ELEMENT];
} mc_user_op_t;

/* false: no such handle. `found` may be NULL. */
bool mc_user_op_find(meshcoll_op_t op, mc_user_op_t *found);

/* Adds an operation to the table; `caller` is for error texts. ERR_NO_MEMORY. */
int mc_user_op_add(const char *caller, const mc_user_op_t *fresh, meshcoll_op_t *op);

/* True of all operations of the library; users declare it of theirs. */
bool mc_op_commutes(meshcoll_op_t op);

/* Does a reduction yield the same bits for any order and bracketing? True of the library's
 * operations on integers; not known of users' operations. `op` and `datatype` were checked. */
bool mc_op_associates(meshcoll_op_t op, meshcoll_datatype_t datatype);

#endif
