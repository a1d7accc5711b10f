/*
 * Machines for a box of ranks (box.h): lanes between them go by routes (gpu/route), whose messages move
 * through an inproc transport, on which a send is complete only when its receive is posted. One thread is the
 * proxy of all ranks.
 */
#ifndef MC_TEST_FAR_H
#define MC_TEST_FAR_H

#include "gpu/route/route.h"

typedef struct mc_far mc_far_t;

/* `machines`: a character for each rank, the same for those of one machine. Ends the program without memory. */
mc_far_t *mc_far_open(int ranks, const char *machines, uint32_t blocks, uint32_t most_slot_bytes);
void mc_far_close(mc_far_t *far);

bool mc_far_joins(const mc_far_t *far, int a, int b);
mc_device_lane_t mc_far_lane(const mc_far_t *far, int from, int to, bool receives, uint32_t block,
                             uint64_t *count);

/* Between launches: the bytes of their slots. */
void mc_far_settle(mc_far_t *far, uint32_t slot_bytes);
/* A rank's launch. */
void mc_far_give(mc_far_t *far, int rank, mc_device_program_t *program,
                 const mc_device_call_t *call);
void mc_far_start(mc_far_t *far);
/* When all kernels have ended; did everything come and was taken? Otherwise prints one line. */
bool mc_far_stop(mc_far_t *far);

#endif
