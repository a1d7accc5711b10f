/* Kernels for the architecture's baseline: SSE2, NEON, … */
#include "runtime/element/kernels.h"

static bool runs_here(void)
{
    return true;
}

#define SET      mc_kernels_baseline
#define SET_NAME "baseline"
#include "runtime/element/kernels_body.h"
