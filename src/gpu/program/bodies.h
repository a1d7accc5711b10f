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
#define MC_DEVICE_BODIES_ORDER(X, t) X(t##_min, t##_min, none) X(t##_max, t##_max, none)
/* s, u: signed and unsigned; sums, products and bits of both are the same. */
#define MC_DEVICE_BODIES_INTEGER(X, s, u)                                                       \
    X(u##_sum, u##_sum, none) X(u##_prod, u##_prod, none)                                       \
    X(u##_land, u##_land, none) X(u##_lor, u##_lor, none) X(u##_lxor, u##_lxor, none)           \
    X(u##_band, u##_band, none) X(u##_bor, u##_bor, none) X(u##_bxor, u##_bxor, none)           \
    MC_DEVICE_BODIES_ORDER(X, s) MC_DEVICE_BODIES_ORDER(X, u)                                   \
    X(s##_avg, u##_sum, s) X(u##_avg, u##_sum, u) X(u##_premul, u##_sum, u##_scale)
#define MC_DEVICE_BODIES_FLOAT(X, t)                                                            \
    X(t##_sum, t##_sum, none) X(t##_prod, t##_prod, none) MC_DEVICE_BODIES_ORDER(X, t)          \
    X(t##_avg, t##_sum, t) X(t##_premul, t##_sum, t##_scale)
/* f: of the parts, whose sums are those of complex numbers */
#define MC_DEVICE_BODIES_COMPLEX(X, t, f)                                                       \
    X(t##_prod, t##_prod, none) X(t##_premul, f##_sum, t##_scale)
#define MC_DEVICE_BODIES_LOC(X, t) X(t##_minloc, t##_minloc, none) X(t##_maxloc, t##_maxloc, none)

#define MC_DEVICE_BODIES(X) X(move, none, none) MC_DEVICE_SUM_BODIES(X)
#define MC_DEVICE_SUM_BODIES(X)                                                                 \
    MC_DEVICE_BODIES_INTEGER(X, int8, uint8) MC_DEVICE_BODIES_INTEGER(X, int16, uint16)         \
    MC_DEVICE_BODIES_INTEGER(X, int32, uint32) MC_DEVICE_BODIES_INTEGER(X, int64, uint64)       \
    MC_DEVICE_BODIES_FLOAT(X, float32) MC_DEVICE_BODIES_FLOAT(X, float64)                       \
    MC_DEVICE_BODIES_FLOAT(X, float16) MC_DEVICE_BODIES_FLOAT(X, bfloat16)                      \
    MC_DEVICE_BODIES_FLOAT(X, float8_e4m3) MC_DEVICE_BODIES_FLOAT(X, float8_e5m2)               \
    MC_DEVICE_BODIES_COMPLEX(X, complex64, float32)                                             \
    MC_DEVICE_BODIES_COMPLEX(X, complex128, float64)                                            \
    MC_DEVICE_BODIES_LOC(X, float32_int32) MC_DEVICE_BODIES_LOC(X, float64_int32)               \
    MC_DEVICE_BODIES_LOC(X, int32_int32) MC_DEVICE_BODIES_LOC(X, int64_int32)                   \
    MC_DEVICE_BODIES_LOC(X, float64_int64) MC_DEVICE_BODIES_LOC(X, int64_int64)
/* clang-format on */

#define MC_DEVICE_BODY_NUMBER(body, reduction, division) MC_DEVICE_BODY_##body,
typedef enum { MC_DEVICE_BODIES(MC_DEVICE_BODY_NUMBER) MC_DEVICE_N_BODIES } mc_device_body_t;
#undef MC_DEVICE_BODY_NUMBER

#endif
