/* The body for a datatype and an operation. */
#ifndef MC_DEVICE_FIND_BODY_H
#define MC_DEVICE_FIND_BODY_H

#include "base/base.h"
#include "gpu/program/bodies.h"

/* MC_DEVICE_BODY_move, which does not reduce, where the operation does not support the datatype,
 * or is a user's. */
mc_device_body_t mc_device_body(meshcoll_datatype_t datatype, meshcoll_op_t op);
/* That of a scaled sum; MC_DEVICE_BODY_move where there is none. */
mc_device_body_t mc_device_premul_body(meshcoll_datatype_t datatype);
/* "uint32_sum": its kernel is mc_walk_uint32_sum. "?" when out of range. */
const char *mc_device_body_name(mc_device_body_t body);

#endif
