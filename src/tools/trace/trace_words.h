/* The words of a trace's picture. Each fills `buffer` and returns it. */
#ifndef MC_TOOLS_TRACE_WORDS_H
#define MC_TOOLS_TRACE_WORDS_H

#include "tools/trace/trace.h"

/* "bcast on box=4,gpu=4, root 0" */
const char *mc_trace_headline(const mc_picture_t *picture, char buffer[2 * MC_STRATEGY_TEXT]);
const char *mc_trace_strategy(const mc_picture_t *picture, char buffer[2 * MC_STRATEGY_TEXT]);
/* "63 messages in 7 time steps, 7α + 2nβ in all" */
const char *mc_trace_subline(const mc_picture_t *picture, int32_t messages,
                             char buffer[2 * MC_STRATEGY_TEXT]);

/* Of a phase: "1. scatter along box"; "scatter:mst(box), steps 0–1"; "2α + 3/4 nβ"; and that cost in words. */
const char *mc_trace_title(const mc_picture_t *picture, int32_t phase,
                           char buffer[MC_STRATEGY_TEXT]);
const char *mc_trace_steps(const mc_picture_t *picture, int32_t phase, uint32_t first,
                           uint32_t last, char buffer[MC_STRATEGY_TEXT]);
const char *mc_trace_terms(const mc_picture_t *picture, int32_t phase,
                           char buffer[MC_STRATEGY_TEXT]);
const char *mc_trace_cost(const mc_picture_t *picture, int32_t phase,
                          char buffer[MC_STRATEGY_TEXT]);

#endif
