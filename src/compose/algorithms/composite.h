/* 1D algorithms made of two others, for users who know their textbook names. They are not enumerated. */
#ifndef MC_COMPOSE_COMPOSITE_H
#define MC_COMPOSE_COMPOSITE_H

#include "plan/builder.h"

/* Long-vector broadcast: MST scatter, ring allgather. Chan et al. 2007, §6. */
mc_tile_t mc_long_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Long-vector reduce: ring reduce-scatter, MST gather. */
mc_tile_t mc_long_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

#endif
