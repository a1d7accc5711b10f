#include "mesh/link_fields.h"

#include <stddef.h>

#define FIELD(name, per_byte)                                                       \
    {                                                                               \
#name, offsetof(mc_link_t, name), offsetof(mc_link_point_t, name), per_byte \
    }
const mc_link_field_t mc_link_fields[MC_LINK_FIELDS] = {FIELD(alpha, false), FIELD(gap, false),
                                                        FIELD(cpu, false),   FIELD(beta, true),
                                                        FIELD(bus, true),    FIELD(gamma, true)};

const mc_link_range_t mc_link_times = {1e-30, 1e6, "seconds"};
const mc_link_range_t mc_link_costs = {1e-30, 1e3, "seconds a byte"};
const mc_link_range_t mc_link_sizes = {0.125, 0x1p63, "bytes"};
const mc_link_range_t mc_link_shares = {1e-9, 1e6, "times beta"};
