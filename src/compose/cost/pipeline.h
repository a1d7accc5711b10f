/* A pipeline of segments: the first one passes all phases, and each further one takes as long as it occupies the
 * busiest wire. */
#ifndef MC_COMPOSE_PIPELINE_H
#define MC_COMPOSE_PIPELINE_H

#include <stdint.h>

/* Seconds of `rounds` segments: the fill, then (rounds - 1) times `every`. */
static inline double mc_pipeline_seconds(double fill, uint32_t rounds, double every)
{
    return fill + (rounds - 1) * every;
}

/* The largest of `n` busy times; 0 if none is above 0. *busiest: its index, the first one of equals; 0 if none. */
static inline double mc_pipeline_busiest(const double *wire, int32_t n, int32_t *busiest)
{
    double most = 0;
    *busiest = 0;
    for (int32_t i = 0; i < n; i++)
        if (wire[i] > most) {
            most = wire[i];
            *busiest = i;
        }
    return most;
}

#endif
