/* meshcoll simulate --step: a training step, whose calls are under way while it computes. */
#ifndef MC_TOOLS_STEP_COMMAND_H
#define MC_TOOLS_STEP_COMMAND_H

#include "simulate/simulate.h"

#include <jansson.h>

typedef struct {
    mc_simulation_t simulation; /* mesh, links, network */
    meshcoll_collective_t what;
    const char *path, *strategy;           /* strategy NULL: one ring, and the model's choice */
    void (*print_head)(const char *title); /* mesh, network and links */
    json_t *(*json_head)(double bytes);    /* the same */
    bool json;
} mc_step_query_t;

int mc_step_simulate(const mc_step_query_t *query);

#endif
