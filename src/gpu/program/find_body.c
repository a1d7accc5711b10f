#include "gpu/program/program.h"

/* A column more than operations: that of a scaled sum. */
enum { PREMUL = MESHCOLL_OPS };

#define BODY(name) MC_DEVICE_BODY_##name
#define MATH_ROW(bits, name)                                                \
    [MESHCOLL_SUM] = BODY(bits##_sum), [MESHCOLL_PROD] = BODY(bits##_prod), \
    [MESHCOLL_AVG] = BODY(name##_avg), [PREMUL] = BODY(bits##_premul),      \
    [MESHCOLL_MIN] = BODY(name##_min), [MESHCOLL_MAX] = BODY(name##_max)
#define INTEGER(bits, name)                                                           \
    {                                                                                 \
        MATH_ROW(bits, name),                                                         \
            [MESHCOLL_LAND] = BODY(bits##_land), [MESHCOLL_LOR] = BODY(bits##_lor),   \
            [MESHCOLL_LXOR] = BODY(bits##_lxor), [MESHCOLL_BAND] = BODY(bits##_band), \
            [MESHCOLL_BOR] = BODY(bits##_bor), [MESHCOLL_BXOR] = BODY(bits##_bxor)    \
    }
#define FLOAT(name)          \
    {                        \
        MATH_ROW(name, name) \
    }
#define LOC(name)                                                                        \
    {                                                                                    \
        [MESHCOLL_MINLOC] = BODY(name##_minloc), [MESHCOLL_MAXLOC] = BODY(name##_maxloc) \
    }

static const uint8_t bodies[MESHCOLL_DATATYPES][MESHCOLL_OPS + 1] = {
    [MESHCOLL_INT8] = INTEGER(uint8, int8),
    [MESHCOLL_INT16] = INTEGER(uint16, int16),
    [MESHCOLL_INT32] = INTEGER(uint32, int32),
    [MESHCOLL_INT64] = INTEGER(uint64, int64),
    [MESHCOLL_UINT8] = INTEGER(uint8, uint8),
    [MESHCOLL_UINT16] = INTEGER(uint16, uint16),
    [MESHCOLL_UINT32] = INTEGER(uint32, uint32),
    [MESHCOLL_UINT64] = INTEGER(uint64, uint64),
    [MESHCOLL_FLOAT16] = FLOAT(float16),
    [MESHCOLL_BFLOAT16] = FLOAT(bfloat16),
    [MESHCOLL_FLOAT32] = FLOAT(float32),
    [MESHCOLL_FLOAT64] = FLOAT(float64),
    [MESHCOLL_FLOAT8_E4M3] = FLOAT(float8_e4m3),
    [MESHCOLL_FLOAT8_E5M2] = FLOAT(float8_e5m2),
    [MESHCOLL_COMPLEX64] = {[MESHCOLL_SUM] = BODY(float32_sum),
                            [MESHCOLL_AVG] = BODY(float32_avg),
                            [MESHCOLL_PROD] = BODY(complex64_prod),
                            [PREMUL] = BODY(complex64_premul)},
    [MESHCOLL_COMPLEX128] = {[MESHCOLL_SUM] = BODY(float64_sum),
                             [MESHCOLL_AVG] = BODY(float64_avg),
                             [MESHCOLL_PROD] = BODY(complex128_prod),
                             [PREMUL] = BODY(complex128_premul)},
    [MESHCOLL_FLOAT32_INT32] = LOC(float32_int32),
    [MESHCOLL_FLOAT64_INT32] = LOC(float64_int32),
    [MESHCOLL_INT32_INT32] = LOC(int32_int32),
    [MESHCOLL_INT64_INT32] = LOC(int64_int32),
    [MESHCOLL_FLOAT64_INT64] = LOC(float64_int64),
    [MESHCOLL_INT64_INT64] = LOC(int64_int64),
    /* a byte of any value: bitwise operations and comparisons are logical ones */
    [MESHCOLL_BOOL] = {[MESHCOLL_LAND] = BODY(uint8_land),
                       [MESHCOLL_LOR] = BODY(uint8_lor),
                       [MESHCOLL_LXOR] = BODY(uint8_lxor),
                       [MESHCOLL_BAND] = BODY(uint8_land),
                       [MESHCOLL_BOR] = BODY(uint8_lor),
                       [MESHCOLL_BXOR] = BODY(uint8_lxor),
                       [MESHCOLL_MIN] = BODY(uint8_land),
                       [MESHCOLL_MAX] = BODY(uint8_lor)},
};
_Static_assert(MC_DEVICE_N_BODIES <= UINT8_MAX + 1, "a byte holds a body's number");

static mc_device_body_t find(meshcoll_datatype_t datatype, unsigned column)
{
    return (unsigned)datatype < MESHCOLL_DATATYPES ? (mc_device_body_t)bodies[datatype][column]
                                                   : MC_DEVICE_BODY_move;
}

mc_device_body_t mc_device_body(meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    return (unsigned)op < MESHCOLL_OPS ? find(datatype, op) : MC_DEVICE_BODY_move;
}

mc_device_body_t mc_device_premul_body(meshcoll_datatype_t datatype)
{
    return find(datatype, PREMUL);
}

const char *mc_device_body_name(mc_device_body_t body)
{
#define NAME(name, reduction, division) #name,
    static const char *const names[] = {MC_DEVICE_BODIES(NAME)};
#undef NAME
    return (unsigned)body < MC_COUNT(names) ? names[body] : "?";
}
