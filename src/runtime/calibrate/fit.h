/*
 * From what was measured of each dimension to links. Pure arithmetic. Coarse links are rounded to logarithmic steps, the
 * series E6 and E12 of IEC 60063 (steps of 1.47 and 1.21), so that two jobs on one cluster get the same links and plan
 * the same; others to three digits, the precision of a measurement.
 */
#ifndef MC_CALIBRATE_FIT_H
#define MC_CALIBRATE_FIT_H

#include "mesh/link/link.h"

/* Of a dimension, on the slowest rank. Each line runs rings: every rank sends to the next one. Memory whose ranks share
 * cores has links of its own where `together` is 0: what a ring takes there is its switches of context. */
typedef struct {
    int32_t ranks; /* of the longest line; less than 2: nothing was measured */
    int32_t lines; /* that cross one box side by side */
    bool pulled, streams;
    bool own_wire; /* it does not share the wire of another dimension of the network */
    /* Seconds per round of short messages: of all lines, or of one where ranks share cores. */
    double round;
    double row;             /* seconds per message of a sequence without dependencies */
    double burst;           /* bytes that an idle port passes at once; 0: none */
    double eager;           /* mc_correction_t.eager */
    double together, alone; /* seconds per byte of one line: all are active, one of each box is */
} mc_seen_t;

typedef struct {
    mc_seen_t dim[MC_MAX_DIMS];
    double gamma;   /* seconds per byte reduced, all ranks active; 0: not measured */
    int32_t ranks;  /* at work meanwhile */
    double crowd;   /* ranks to a core; above 1 they share cores */
    int32_t rounds; /* how often each was timed */
} mc_sight_t;

/* Was every dimension measured? Measured links beside those that were not choose worse than generic ones alone
 * (docs/lab-notes/calibration.md). */
bool mc_sight_is_whole(const mc_sight_t *sight, const mc_mesh_t *mesh);
/* Sets the links of what was measured, and leaves the others. */
void mc_sight_links(const mc_sight_t *sight, bool coarse, mc_links_t *links);

/* The nearest number, by ratio, of a series of this many steps per decade, 6 or 12; 0: of those of three digits. Of
 * numbers from 1e-20 to 1. */
double mc_coarse(double number, int32_t steps);

#endif
