#include "mesh/link/link_fields.h"

#include <stddef.h>

const mc_link_kind_t mc_link_times = {
    1e-30, 1e6, "seconds", "a time as in 7us, 300ns or 1ms", mc_read_seconds, mc_write_seconds};
const mc_link_kind_t mc_link_costs = {1e-30,
                                      1e3,
                                      "seconds a byte",
                                      "a rate as in 25GB/s or 200Mbit/s, or a time as in 40ns/KiB",
                                      mc_read_cost,
                                      mc_write_cost};
const mc_link_kind_t mc_link_sizes = {
    0.125, 0x1p63, "bytes", "a size as in 64KiB, or 0", mc_read_size, mc_write_size};

#define LINK(name, kind)                                 \
    {                                                    \
#name, &(kind), false, offsetof(mc_link_t, name) \
    }
#define CORRECTION(name, kind)                                \
    {                                                         \
#name, &(kind), true, offsetof(mc_correction_t, name) \
    }
const mc_link_field_t mc_link_fields[MC_LINK_FIELDS] = {
    LINK(alpha, mc_link_times),       LINK(gap, mc_link_times),
    LINK(beta, mc_link_costs),        LINK(gamma, mc_link_costs),
    LINK(call, mc_link_times),        CORRECTION(window, mc_link_sizes),
    CORRECTION(burst, mc_link_sizes), CORRECTION(cpu, mc_link_times),
};
