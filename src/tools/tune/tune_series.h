/* Series of times, their medians and standard errors; for meshcoll tune. */
#ifndef MC_TOOLS_TUNE_SERIES_H
#define MC_TOOLS_TUNE_SERIES_H

#include <stdbool.h>
#include <stdint.h>

enum { MC_MOST_ROUNDS = 1000 };

typedef struct {
    int32_t repeats; /* in one batch */
    double time[MC_MOST_ROUNDS];
    int32_t n;
} mc_series_t;

void mc_series_keep(mc_series_t *s, double time);
/* 0 for an empty series. */
double mc_series_median(const mc_series_t *s);

/* A number with the standard error of its median over `n` rounds. */
typedef struct {
    double value, error;
    int32_t n;
} mc_estimate_t;
/* The median of a series, and its standard error: 0.93 times the interquartile range over the square
 * root of n, as for a normal distribution (Kendall and Stuart, The Advanced Theory of Statistics). */
mc_estimate_t mc_series_estimate(const mc_series_t *s);
/* Is the number above twice its error, in at least MC_LEAST_ROUNDS rounds? */
enum { MC_LEAST_ROUNDS = 4 };
bool mc_estimate_is_sure(const mc_estimate_t *estimate);

#endif
