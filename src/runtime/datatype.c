#include "runtime/datatype.h"

/* dst is a, b or neither, element by element: nothing is carried from one turn to the next, but
 * the compiler cannot know. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#define SUM(a, b) ((a) + (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define KERNEL(name, type, OP)                                          \
    static void name(void *dst, const void *a, const void *b, size_t n) \
    {                                                                   \
        type *const d = dst;                                            \
        const type *const x = a, *const y = b;                          \
        INDEPENDENT                                                     \
        for (size_t i = 0; i < n; i++)                                  \
            d[i] = OP(x[i], y[i]);                                      \
    }

/* sums of integers are unsigned: the same bits, and overflow wraps */
#define KERNELS(name, type, sum_type) \
    KERNEL(name##_sum, sum_type, SUM) \
    KERNEL(name##_min, type, MIN)     \
    KERNEL(name##_max, type, MAX)

KERNELS(float32, float, float)
KERNELS(float64, double, double)
KERNELS(int32, int32_t, uint32_t)
KERNELS(int64, int64_t, uint64_t)

#define ROW(name, type)                        \
    {                                          \
#name, sizeof(type),                   \
        {                                      \
            name##_sum, name##_min, name##_max \
        }                                      \
    }

static const struct {
    const char *name;
    size_t size;
    mc_kernel_t kernel[MESHCOLL_OPS];
} datatypes[MESHCOLL_DATATYPES] = {
    [MESHCOLL_FLOAT32] = ROW(float32, float),
    [MESHCOLL_FLOAT64] = ROW(float64, double),
    [MESHCOLL_INT32] = ROW(int32, int32_t),
    [MESHCOLL_INT64] = ROW(int64, int64_t),
};

static const char *const ops[MESHCOLL_OPS] = {"sum", "min", "max"};

mc_kernel_t mc_kernel(meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    if ((unsigned)datatype >= MESHCOLL_DATATYPES || (unsigned)op >= MESHCOLL_OPS)
        return NULL;
    return datatypes[datatype].kernel[op];
}

const char *meshcoll_datatype_name(meshcoll_datatype_t datatype)
{
    return (unsigned)datatype < MESHCOLL_DATATYPES ? datatypes[datatype].name : NULL;
}

const char *meshcoll_op_name(meshcoll_op_t op)
{
    return (unsigned)op < MESHCOLL_OPS ? ops[op] : NULL;
}

size_t meshcoll_datatype_size(meshcoll_datatype_t datatype)
{
    return (unsigned)datatype < MESHCOLL_DATATYPES ? datatypes[datatype].size : 0;
}
