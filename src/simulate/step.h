/*
 * The gradients of a training step: a file with a line for each bucket, its bytes and when it is ready after the step's
 * begin, "25MB 130ms"; # begins a comment. The last one is ready when the computation ends.
 */
#ifndef MC_SIMULATE_STEP_H
#define MC_SIMULATE_STEP_H

#include "simulate/simulate.h"

enum { MC_STEP_BUCKETS = 4096, MC_STEP_SECONDS = 1000 };

typedef struct {
    uint32_t n; /* buckets, in the order of their calls, which is that of their times */
    mc_bucket_t bucket[MC_STEP_BUCKETS];
} mc_gradients_t;

/* Reads the bytes of a file; `path` is for messages. ERR_PARSE or ERR_INVALID_ARG with a sentence. */
int mc_gradients_parse(const char *path, const char *text, size_t bytes, mc_gradients_t *gradients);

double mc_gradients_bytes(const mc_gradients_t *gradients);
/* Cuts the gradients into n equal buckets. Between the times of two given buckets they appear evenly, those of the first
 * at its time. */
void mc_gradients_cut(const mc_gradients_t *gradients, uint32_t n, mc_gradients_t *cut);

#endif
