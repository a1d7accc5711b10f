/** @file
 * Datatypes and operations; meshcoll.h includes this file. docs/datatypes.md has the table of both.
 */
#ifndef MESHCOLL_DATATYPES_H
#define MESHCOLL_DATATYPES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MESHCOLL_API __attribute__((visibility("default")))
#else
#define MESHCOLL_API
#endif

/** Element types, in host byte order; in texts "float32", "float8_e4m3", "float32_int32", ….
 * docs/datatypes.md lists the operations that each supports, and what is rounded where. */
typedef enum {
    MESHCOLL_FLOAT32,     /**< IEEE 754 binary32 */
    MESHCOLL_FLOAT64,     /**< IEEE 754 binary64 */
    MESHCOLL_INT32,       /**< 32 bits, two's complement */
    MESHCOLL_INT64,       /**< 64 bits, two's complement */
    MESHCOLL_INT8,        /**< 8 bits, two's complement */
    MESHCOLL_INT16,       /**< 16 bits, two's complement */
    MESHCOLL_UINT8,       /**< 8 bits, unsigned */
    MESHCOLL_UINT16,      /**< 16 bits, unsigned */
    MESHCOLL_UINT32,      /**< 32 bits, unsigned */
    MESHCOLL_UINT64,      /**< 64 bits, unsigned */
    MESHCOLL_FLOAT16,     /**< IEEE 754 binary16 */
    MESHCOLL_BFLOAT16,    /**< the upper half of a float32 */
    MESHCOLL_FLOAT8_E4M3, /**< OCP E4M3 without infinities (float8_e4m3fn) */
    MESHCOLL_FLOAT8_E5M2, /**< OCP E5M2 */
    MESHCOLL_COMPLEX64,   /**< two float32: real, imaginary */
    MESHCOLL_COMPLEX128,  /**< two float64 */
    /* value and index, for minloc and maxloc: a C struct of both, padding included */
    MESHCOLL_FLOAT32_INT32, /**< value and index: MPI_FLOAT_INT */
    MESHCOLL_FLOAT64_INT32, /**< value and index: MPI_DOUBLE_INT */
    MESHCOLL_INT32_INT32,   /**< value and index: MPI_2INT */
    MESHCOLL_INT64_INT32,   /**< value and index: MPI_LONG_INT, where long has 64 bits */
    MESHCOLL_FLOAT64_INT64, /**< value and index: MPI has none */
    MESHCOLL_INT64_INT64,   /**< value and index: MPI has none */
    MESHCOLL_BOOL,          /**< one byte: 0 is false, any other value true; results are 0 or 1 */
    MESHCOLL_DATATYPES,     /**< the number of predefined types */
    MESHCOLL_DATATYPE_BYTES = 1 << 8,   /**< types of meshcoll_datatype_of have greater values */
    MESHCOLL_DATATYPE_LAST = 0x7fffffff /**< makes the enum wide enough for all values */
} meshcoll_datatype_t;

/** Reduction operations: predefined ones, then those of meshcoll_op_create and meshcoll_op_premul. */
typedef enum {
    MESHCOLL_SUM,  /**< of numbers, also complex ones */
    MESHCOLL_MIN,  /**< of integers, floats (a NaN wins, -0 < +0) and bool (min: and) */
    MESHCOLL_MAX,  /**< of integers, floats (a NaN wins, -0 < +0) and bool (max: or) */
    MESHCOLL_PROD, /**< of numbers, also complex ones */
    /** the sum, divided by the number of ranks once at the end; integers truncate */
    MESHCOLL_AVG,
    MESHCOLL_LAND, /**< logical and, of integers and bool: 0 or 1 */
    MESHCOLL_LOR,  /**< logical or, of integers and bool: 0 or 1 */
    MESHCOLL_LXOR, /**< logical xor, of integers and bool: 1 where an odd number of operands are true */
    MESHCOLL_BAND,   /**< bitwise and of integers, logical and of bool */
    MESHCOLL_BOR,    /**< bitwise or of integers, logical or of bool */
    MESHCOLL_BXOR,   /**< bitwise xor of integers, logical xor of bool */
    MESHCOLL_MINLOC, /**< the smallest value (a NaN wins), and the lowest index that has it */
    MESHCOLL_MAXLOC, /**< the largest value (a NaN wins), and the lowest index that has it */
    MESHCOLL_OPS,    /**< the number of predefined operations */
    MESHCOLL_OP_USER = 1 << 8,    /**< operations with a handle have this value and above */
    MESHCOLL_OP_LAST = 0x7fffffff /**< makes the enum wide enough for all values */
} meshcoll_op_t;

/** @name Names in texts
 * @{ */
/** Names as used in texts ("float32", "sum"): static strings; NULL when out of range. All operations
 * of meshcoll_op_create are named "user", all types of meshcoll_datatype_of "bytes". */
MESHCOLL_API const char *meshcoll_datatype_name(meshcoll_datatype_t datatype);
MESHCOLL_API const char *meshcoll_op_name(meshcoll_op_t op);
/** @} */

/** Size of one element in bytes, padding included; 0 when out of range. */
MESHCOLL_API size_t meshcoll_datatype_size(meshcoll_datatype_t datatype);

/**
 * Makes a type of `bytes` contiguous bytes, such as a C struct of that sizeof: the equivalent of
 * MPI_Type_contiguous of MPI_BYTE. Every collective moves such elements, and operations of
 * meshcoll_op_create reduce them: whole, and aligned (meshcoll_op_fn_t). The value of *datatype depends
 * on `bytes` alone: it is the same in all processes, and needs no free. ERR_INVALID_ARG if `bytes` is 0
 * or above 2^30.
 */
MESHCOLL_API int meshcoll_datatype_of(size_t bytes, meshcoll_datatype_t *datatype);

/**
 * A user-defined operation: computes dst[i] = a[i] (op) b[i] for `count` elements of `datatype`.
 * `dst` equals a or b, or overlaps neither. Unless the operation commutes, a's contributions are
 * from lower ranks than b's. It must be associative, and yield the same result for the same
 * operands on every rank. It is called during calls of meshcoll functions, for parts of the vector
 * of any length, and must not call meshcoll functions itself. If the buffers of the call are aligned for
 * their elements, all operands are: to the largest power of two, up to 64, that divides the size of an
 * element. So a function may use `__float128`, or vectors in its structs.
 */
typedef void (*meshcoll_op_fn_t)(void *context, void *dst, const void *a, const void *b,
                                 size_t count, meshcoll_datatype_t datatype);

/**
 * Creates an operation for all datatypes and meshes of this process. An operation that does not
 * commute is applied in the order of the communicator's ranks: x0 (op) x1 (op) …. The planner then
 * uses only strategies that keep this order; where ranks are not placed box by box, these are the
 * ones along all dimensions at once. `context` is passed to every call, and stays the caller's. All
 * ranks must create the same operations with the same `commutative`; the values of *op may differ
 * between ranks. ERR_NO_MEMORY if there is none for one more of them.
 */
MESHCOLL_API int meshcoll_op_create(meshcoll_op_fn_t function, int commutative, void *context,
                                    meshcoll_op_t *op);
/**
 * Creates a scaled sum (NCCL's ncclRedOpCreatePreMulSum): each rank's input is multiplied by the
 * scalar of its own operation, and the products are summed. `scalar` points to one element of
 * `datatype`, in host memory; it is copied. The product is rounded once to the datatype, like each
 * addition, and integers wrap. All ranks must use such an operation in the same call; scalars may
 * differ between ranks. It serves calls with this datatype only. The name is "premul".
 * ERR_UNSUPPORTED if the datatype has no sum and product; ERR_NO_MEMORY as meshcoll_op_create.
 */
MESHCOLL_API int meshcoll_op_premul(const void *scalar, meshcoll_datatype_t datatype,
                                    meshcoll_op_t *op);
/** No later call accepts `op`. Persistent requests made with it still run, so `function` and
 * `context` must outlive these. ERR_INVALID_ARG if there is no such operation. */
MESHCOLL_API int meshcoll_op_free(meshcoll_op_t op);

/** MESHCOLL_OK if `op` supports `datatype`, else ERR_INVALID_ARG; the error says what would fit. */
MESHCOLL_API int meshcoll_op_check(meshcoll_op_t op, meshcoll_datatype_t datatype);

#ifdef __cplusplus
}
#endif

#endif
