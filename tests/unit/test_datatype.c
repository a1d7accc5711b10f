/* The reduction kernels: every datatype and operation, in place and not, of any length. */
#include "runtime/datatype.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <string.h>

enum { MOST = 67 };

#define CHECK_TYPE(type, datatype)                                                              \
    static void check_##type(meshcoll_op_t op, size_t n, int into)                              \
    {                                                                                           \
        type a[MOST + 1], b[MOST + 1], d[MOST + 1], x[MOST], y[MOST];                           \
        for (size_t i = 0; i < MOST; i++) {                                                     \
            x[i] = a[i] = (type)((int)(i * 7 % 19) - 9);                                        \
            y[i] = b[i] = (type)((int)(i * 5 % 17) - 8);                                        \
        }                                                                                       \
        type *const dst = into == 0 ? d : into == 1 ? a : b;                                    \
        dst[n] = 77;                                                                            \
        mc_kernel(datatype, op)(dst, a, b, n);                                                  \
        for (size_t i = 0; i < n; i++) {                                                        \
            const type lo = x[i] < y[i] ? x[i] : y[i], hi = x[i] < y[i] ? y[i] : x[i];          \
            const type want = op == MESHCOLL_SUM   ? (type)(x[i] + y[i])                        \
                              : op == MESHCOLL_MIN ? lo                                         \
                                                   : hi;                                        \
            cr_assert(dst[i] == want, #type " %s: element %zu of %zu", meshcoll_op_name(op), i, \
                      n);                                                                       \
        }                                                                                       \
        cr_assert(dst[n] == 77, #type " %s: wrote behind %zu", meshcoll_op_name(op), n);        \
    }

CHECK_TYPE(float, MESHCOLL_FLOAT32)
CHECK_TYPE(double, MESHCOLL_FLOAT64)
CHECK_TYPE(int32_t, MESHCOLL_INT32)
CHECK_TYPE(int64_t, MESHCOLL_INT64)

Test(datatype, kernels)
{
    for (int op = 0; op < MESHCOLL_OPS; op++)
        for (size_t n = 0; n < MOST; n++)
            for (int into = 0; into < 3; into++) {
                check_float((meshcoll_op_t)op, n, into);
                check_double((meshcoll_op_t)op, n, into);
                check_int32_t((meshcoll_op_t)op, n, into);
                check_int64_t((meshcoll_op_t)op, n, into);
            }
}

Test(datatype, integer_sums_wrap)
{
    const int32_t a = INT32_MAX, b = 1;
    const int64_t c = INT64_MIN, d = -1;
    int32_t ab;
    int64_t cd;
    mc_kernel(MESHCOLL_INT32, MESHCOLL_SUM)(&ab, &a, &b, 1);
    mc_kernel(MESHCOLL_INT64, MESHCOLL_SUM)(&cd, &c, &d, 1);
    cr_assert(ab == INT32_MIN);
    cr_assert(cd == INT64_MAX);
}

Test(datatype, names_and_sizes)
{
    cr_assert_str_eq(meshcoll_datatype_name(MESHCOLL_FLOAT32), "float32");
    cr_assert_str_eq(meshcoll_datatype_name(MESHCOLL_INT64), "int64");
    cr_assert_str_eq(meshcoll_op_name(MESHCOLL_MAX), "max");
    cr_assert(meshcoll_datatype_size(MESHCOLL_FLOAT64) == 8);
    cr_assert(meshcoll_datatype_size(MESHCOLL_DATATYPES) == 0);
    cr_assert_null(meshcoll_datatype_name(MESHCOLL_DATATYPES));
    cr_assert_null(meshcoll_op_name(MESHCOLL_OPS));
    cr_assert_null(mc_kernel(MESHCOLL_DATATYPES, MESHCOLL_SUM));
    cr_assert_null(mc_kernel(MESHCOLL_INT32, MESHCOLL_OPS));
}
