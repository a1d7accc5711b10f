#include "runtime/element/datatype.h"

#include <string.h>

/* clang-format off */
#define PAIR(name, value, index, is_exact) {#name, sizeof(struct { value v; index i; }), is_exact}

static const struct {
    const char *name;
    size_t size;
    bool is_exact; /* sums of its values are the same in any order */
} datatypes[MESHCOLL_DATATYPES] = {
    [MESHCOLL_FLOAT32] = {"float32", 4},
    [MESHCOLL_FLOAT64] = {"float64", 8},
    [MESHCOLL_INT32] = {"int32", 4, true},
    [MESHCOLL_INT64] = {"int64", 8, true},
    [MESHCOLL_INT8] = {"int8", 1, true},
    [MESHCOLL_INT16] = {"int16", 2, true},
    [MESHCOLL_UINT8] = {"uint8", 1, true},
    [MESHCOLL_UINT16] = {"uint16", 2, true},
    [MESHCOLL_UINT32] = {"uint32", 4, true},
    [MESHCOLL_UINT64] = {"uint64", 8, true},
    [MESHCOLL_FLOAT16] = {"float16", 2},
    [MESHCOLL_BFLOAT16] = {"bfloat16", 2},
    [MESHCOLL_FLOAT8_E4M3] = {"float8_e4m3", 1},
    [MESHCOLL_FLOAT8_E5M2] = {"float8_e5m2", 1},
    [MESHCOLL_COMPLEX64] = {"complex64", 8},
    [MESHCOLL_COMPLEX128] = {"complex128", 16},
    [MESHCOLL_FLOAT32_INT32] = PAIR(float32_int32, float, int32_t, false),
    [MESHCOLL_FLOAT64_INT32] = PAIR(float64_int32, double, int32_t, false),
    [MESHCOLL_INT32_INT32] = PAIR(int32_int32, int32_t, int32_t, true),
    [MESHCOLL_INT64_INT32] = PAIR(int64_int32, int64_t, int32_t, true),
    [MESHCOLL_FLOAT64_INT64] = PAIR(float64_int64, double, int64_t, false),
    [MESHCOLL_INT64_INT64] = PAIR(int64_int64, int64_t, int64_t, true),
    [MESHCOLL_BOOL] = {"bool", 1, true},
};

static const size_t MOST_BYTES = (size_t)1 << 30;

static const char *const ops[MESHCOLL_OPS] = {
    [MESHCOLL_SUM] = "sum",   [MESHCOLL_MIN] = "min",   [MESHCOLL_MAX] = "max",
    [MESHCOLL_PROD] = "prod", [MESHCOLL_AVG] = "avg",   [MESHCOLL_LAND] = "land",
    [MESHCOLL_LOR] = "lor",   [MESHCOLL_LXOR] = "lxor", [MESHCOLL_BAND] = "band",
    [MESHCOLL_BOR] = "bor",   [MESHCOLL_BXOR] = "bxor", [MESHCOLL_MINLOC] = "minloc",
    [MESHCOLL_MAXLOC] = "maxloc",
};
/* clang-format on */

const char *meshcoll_datatype_name(meshcoll_datatype_t datatype)
{
    if ((unsigned)datatype < MESHCOLL_DATATYPES)
        return datatypes[datatype].name;
    return meshcoll_datatype_size(datatype) > 0 ? "bytes" : NULL;
}

size_t meshcoll_datatype_size(meshcoll_datatype_t datatype)
{
    if ((unsigned)datatype < MESHCOLL_DATATYPES)
        return datatypes[datatype].size;
    const size_t bytes = (size_t)(unsigned)datatype - MESHCOLL_DATATYPE_BYTES;
    return bytes <= MOST_BYTES ? bytes : 0;
}

int meshcoll_datatype_of(size_t bytes, meshcoll_datatype_t *datatype)
{
    if (!datatype || bytes == 0 || bytes > MOST_BYTES)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "meshcoll_datatype_of: expected elements of 1 to %zu bytes and a pointer to a "
            "datatype, got %zu%s",
            MOST_BYTES, bytes, datatype ? "" : " and NULL");
    *datatype = (meshcoll_datatype_t)(MESHCOLL_DATATYPE_BYTES + bytes);
    return MESHCOLL_OK;
}

const char *meshcoll_op_name(meshcoll_op_t op)
{
    if ((unsigned)op < MESHCOLL_OPS)
        return ops[op];
    mc_user_op_t user;
    if (!mc_user_op_find(op, &user))
        return NULL;
    return user.is_premul ? "premul" : "user";
}

mc_kernel_t mc_kernel(meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    if ((unsigned)datatype >= MESHCOLL_DATATYPES || (unsigned)op >= MESHCOLL_OPS)
        return NULL;
    return mc_kernels_best()->of[datatype].kernel[op];
}

mc_reducer_t mc_reducer(meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    mc_reducer_t r = {.datatype = datatype, .kernel = mc_kernel(datatype, op)};
    mc_user_op_t user;
    if (op == MESHCOLL_AVG)
        r.divide = mc_kernels_best()->of[datatype].divide;
    if (r.kernel || !mc_user_op_find(op, &user))
        return r;
    r.function = user.function;
    r.context = user.context;
    if (user.is_premul) {
        r.kernel = mc_kernel(datatype, MESHCOLL_SUM);
        r.scale = mc_kernel(datatype, MESHCOLL_PROD);
        memcpy(r.scalar, user.scalar, sizeof r.scalar);
    }
    return r;
}

/* Bytes of an operand that are copied at once. Only a message in a slot is not aligned, and that is smaller. */
enum { MOST_ALIGNMENT = 64, AT_ONCE = 1024 };
typedef struct {
    _Alignas(MOST_ALIGNMENT) char at[AT_ONCE];
} room_t;

static size_t alignment_of(size_t element)
{
    const size_t power = element & -element;
    return power < MOST_ALIGNMENT ? power : MOST_ALIGNMENT;
}

static const void *aligned(const void *at, size_t bytes, size_t alignment, room_t *room)
{
    return (uintptr_t)at % alignment == 0 ? at : memcpy(room->at, at, bytes);
}

void mc_reduce_by_user(const mc_reducer_t *r, void *dst, const void *a, const void *b, size_t n)
{
    const size_t element = meshcoll_datatype_size(r->datatype), alignment = alignment_of(element);
    const bool is_aligned = ((uintptr_t)a | (uintptr_t)b) % alignment == 0;
    const bool is_callers = (uintptr_t)dst % alignment != 0;
    if (is_aligned || is_callers || element > AT_ONCE) {
        r->function(r->context, dst, a, b, n, r->datatype);
        return;
    }
    room_t left, right;
    for (size_t i = 0, part; i < n; i += part) {
        const size_t at = i * element;
        part = n - i < AT_ONCE / element ? n - i : AT_ONCE / element;
        r->function(r->context, (char *)dst + at,
                    aligned((const char *)a + at, part * element, alignment, &left),
                    aligned((const char *)b + at, part * element, alignment, &right), part,
                    r->datatype);
    }
}

bool mc_op_commutes(meshcoll_op_t op)
{
    mc_user_op_t user;
    return !mc_user_op_find(op, &user) || user.commutative;
}

bool mc_op_associates(meshcoll_op_t op, meshcoll_datatype_t datatype)
{
    mc_user_op_t user;
    if ((unsigned)op >= MESHCOLL_OPS && !(mc_user_op_find(op, &user) && user.is_premul))
        return false;
    return (unsigned)datatype < MESHCOLL_DATATYPES && datatypes[datatype].is_exact;
}

static int fail_combination(meshcoll_op_t op, meshcoll_datatype_t datatype)
{
    enum { ROOM = 256 };
    char op_room[ROOM], type_room[ROOM];
    mc_text_t fitting = mc_text(op_room, sizeof op_room);
    mc_text_t types = mc_text(type_room, sizeof type_room);
    for (int o = 0; o < MESHCOLL_OPS; o++)
        if (mc_kernel(datatype, (meshcoll_op_t)o))
            mc_text_add(&fitting, "%s%s", fitting.length ? ", " : "", ops[o]);
    for (int t = 0; t < MESHCOLL_DATATYPES; t++)
        if (mc_kernel((meshcoll_datatype_t)t, op))
            mc_text_add(&types, "%s%s", types.length ? ", " : "", datatypes[t].name);
    return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                   "%s does not support %s: %s supports %s and users' operations; %s supports %s",
                   ops[op], datatypes[datatype].name, datatypes[datatype].name, op_room, ops[op],
                   type_room);
}

static int check_premul(const mc_user_op_t *op, meshcoll_datatype_t datatype)
{
    if (op->datatype == datatype)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                   "this scaled sum has a scalar of %s and cannot reduce %s: make one of that "
                   "datatype with meshcoll_op_premul",
                   meshcoll_datatype_name(op->datatype), meshcoll_datatype_name(datatype));
}

int meshcoll_op_check(meshcoll_op_t op, meshcoll_datatype_t datatype)
{
    if (meshcoll_datatype_size(datatype) == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%d is not a datatype", (int)datatype);
    mc_user_op_t user;
    if (mc_kernel(datatype, op))
        return MESHCOLL_OK;
    if (mc_user_op_find(op, &user))
        return user.is_premul ? check_premul(&user, datatype) : MESHCOLL_OK;
    if ((unsigned)op >= MESHCOLL_OPS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%d is not an operation: expected one of the library's, or a handle from "
                       "meshcoll_op_create that has not been freed",
                       (int)op);
    if ((unsigned)datatype >= MESHCOLL_DATATYPES)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "%s does not support opaque elements of %zu bytes: users' operations do "
                       "(meshcoll_op_create)",
                       ops[op], meshcoll_datatype_size(datatype));
    return fail_combination(op, datatype);
}

int meshcoll_op_premul(const void *scalar, meshcoll_datatype_t datatype, meshcoll_op_t *op)
{
    mc_user_op_t fresh = {.commutative = true, .is_premul = true, .datatype = datatype};
    const size_t bytes = meshcoll_datatype_size(datatype);
    if (!scalar || !op)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_op_premul: scalar or op is NULL");
    if (!mc_kernel(datatype, MESHCOLL_SUM) || !mc_kernel(datatype, MESHCOLL_PROD) ||
        bytes > sizeof fresh.scalar)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "meshcoll_op_premul: expected a datatype with a sum and a product "
                       "(integers, floating point, complex numbers), got %s (%d)",
                       bytes ? meshcoll_datatype_name(datatype) : "none", (int)datatype);
    memcpy(fresh.scalar, scalar, bytes);
    return mc_user_op_add("meshcoll_op_premul", &fresh, op);
}
