/*
 * The bodies of kernels: a reduction and a division, for one or several pairs of datatype and
 * operation. A kernel per body is compiled by nvcc (gpu/kernel/kernel.cu), as mc_walk_<body>, and for
 * the stream executor as mc_sum_<body>.
 */
#ifndef MC_DEVICE_BODIES_H
#define MC_DEVICE_BODIES_H

/* X(body, reduction, division), the latter two as gpu/kernel/sum.h names them: of an average, or the
 * scaling of a scaled sum. */
/* clang-format off */
#define MC_DEVICE_BODIES_BITS(X, t)                                                             \
    X(t##_sum, t##_sum, none) X(t##_prod, t##_prod, none)                                       \
    X(t##_land, t##_land, none) X(t##_lor, t##_lor, none) X(t##_lxor, t##_lxor, none)           \
    X(t##_band, t##_band, none) X(t##_bor, t##_bor, none) X(t##_bxor, t##_bxor, none)
#define MC_DEVICE_BODIES_ORDER(X, t) X(t##_min, t##_min, none) X(t##_max, t##_max, none)
#define MC_DEVICE_BODIES_FLOAT(X, t)                                                            \
    X(t##_sum, t##_sum, none) X(t##_prod, t##_prod, none) X(t##_avg, t##_sum, t)                \
    MC_DEVICE_BODIES_ORDER(X, t)
#define MC_DEVICE_BODIES_PREMUL(X, t) X(t##_premul, t##_sum, t##_scale)
#define MC_DEVICE_BODIES_LOC(X, t) X(t##_minloc, t##_minloc, none) X(t##_maxloc, t##_maxloc, none)

#define MC_DEVICE_BODIES(X) X(move, none, none) MC_DEVICE_SUM_BODIES(X)
#define MC_DEVICE_SUM_BODIES(X)                                                                 \
    MC_DEVICE_BODIES_BITS(X, uint8) MC_DEVICE_BODIES_BITS(X, uint16)                            \
    MC_DEVICE_BODIES_BITS(X, uint32) MC_DEVICE_BODIES_BITS(X, uint64)                           \
    MC_DEVICE_BODIES_ORDER(X, int8) MC_DEVICE_BODIES_ORDER(X, int16)                            \
    MC_DEVICE_BODIES_ORDER(X, int32) MC_DEVICE_BODIES_ORDER(X, int64)                           \
    MC_DEVICE_BODIES_ORDER(X, uint8) MC_DEVICE_BODIES_ORDER(X, uint16)                          \
    MC_DEVICE_BODIES_ORDER(X, uint32) MC_DEVICE_BODIES_ORDER(X, uint64)                         \
    X(int8_avg, uint8_sum, int8) X(int16_avg, uint16_sum, int16)                                \
    X(int32_avg, uint32_sum, int32) X(int64_avg, uint64_sum, int64)                             \
    X(uint8_avg, uint8_sum, uint8) X(uint16_avg, uint16_sum, uint16)                            \
    X(uint32_avg, uint32_sum, uint32) X(uint64_avg, uint64_sum, uint64)                         \
    MC_DEVICE_BODIES_FLOAT(X, float32) MC_DEVICE_BODIES_FLOAT(X, float64)                       \
    MC_DEVICE_BODIES_FLOAT(X, float16) MC_DEVICE_BODIES_FLOAT(X, bfloat16)                      \
    MC_DEVICE_BODIES_FLOAT(X, float8_e4m3) MC_DEVICE_BODIES_FLOAT(X, float8_e5m2)               \
    X(complex64_prod, complex64_prod, none) X(complex128_prod, complex128_prod, none)           \
    MC_DEVICE_BODIES_PREMUL(X, uint8) MC_DEVICE_BODIES_PREMUL(X, uint16)                        \
    MC_DEVICE_BODIES_PREMUL(X, uint32) MC_DEVICE_BODIES_PREMUL(X, uint64)                       \
    MC_DEVICE_BODIES_PREMUL(X, float32) MC_DEVICE_BODIES_PREMUL(X, float64)                     \
    MC_DEVICE_BODIES_PREMUL(X, float16) MC_DEVICE_BODIES_PREMUL(X, bfloat16)                    \
    MC_DEVICE_BODIES_PREMUL(X, float8_e4m3) MC_DEVICE_BODIES_PREMUL(X, float8_e5m2)             \
    X(complex64_premul, float32_sum, complex64_scale)                                           \
    X(complex128_premul, float64_sum, complex128_scale)                                         \
    MC_DEVICE_BODIES_LOC(X, float32_int32) MC_DEVICE_BODIES_LOC(X, float64_int32)               \
    MC_DEVICE_BODIES_LOC(X, int32_int32) MC_DEVICE_BODIES_LOC(X, int64_int32)                   \
    MC_DEVICE_BODIES_LOC(X, float64_int64) MC_DEVICE_BODIES_LOC(X, int64_int64)
/* clang-format on */

#define MC_DEVICE_BODY_NUMBER(body, reduction, division) MC_DEVICE_BODY_##body,
typedef enum { MC_DEVICE_BODIES(MC_DEVICE_BODY_NUMBER) MC_DEVICE_N_BODIES } mc_device_body_t;
#undef MC_DEVICE_BODY_NUMBER

#endif
