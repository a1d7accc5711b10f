/*
 * Programs of all ranks on a machine of numbers: how long a call on GPUs takes in one track and in several. Each
 * track is busy with one step at a time; a GPU's NVLinks and its NIC each send one message after the other.
 */
#ifndef BENCH_TRACKS_SIM_H
#define BENCH_TRACKS_SIM_H

#include "gpu/program/program.h"
#include "mesh/link/link.h"

enum { SIM_RANKS = 64 };

typedef struct {
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    const mc_device_program_t *program[SIM_RANKS];
    uint32_t passes;
    double memory; /* bytes per second that a GPU reads and writes in its memory */
    double slots;  /* and in slots of messages to other machines */
} sim_t;

/* Seconds until the last rank has ended; negative: they stand still, or there is no memory. */
double sim_run(const sim_t *sim);

#endif
