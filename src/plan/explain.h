/* A plan as text, one line per step, with its dependencies. */
#ifndef MC_PLAN_EXPLAIN_H
#define MC_PLAN_EXPLAIN_H

#include "plan/plan.h"

#include <stdio.h>

/* Prints the step alone, as errors quote it: "recv_reduce <- 5 in[4..7] -> out[4..7] #2". */
void mc_explain_brief(const mc_step_t *step, mc_text_t *text);
/* Prints a header line, then the steps in aligned columns: "3  recv_reduce  <- 5   in[4..7] -> out[4..7]  #2   after
 * 0 1". ERR_NO_MEMORY. */
int mc_explain_plan(const mc_plan_t *plan, FILE *out);

#endif
