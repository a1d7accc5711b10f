/* Series of times, their medians and standard errors. */
#ifndef MC_CALIBRATE_SERIES_H
#define MC_CALIBRATE_SERIES_H

#include <stdint.h>

enum { MC_MOST_ROUNDS = 1000 };

typedef struct {
    int32_t repeats; /* in one batch */
    int32_t n;
    double time[MC_MOST_ROUNDS]; /* ascending */
} mc_series_t;

/* A full series keeps no more. */
void mc_series_keep(mc_series_t *s, double time);
/* The number below which `part` of a series lies; 0 for an empty one. */
double mc_series_quantile(const mc_series_t *s, double part);
double mc_series_median(const mc_series_t *s);

/* The median of a series, and its standard error: 0.93 times the interquartile range over the square
 * root of n, as for a normal distribution (Kendall and Stuart, The Advanced Theory of Statistics). */
typedef struct {
    double value, error;
    int32_t n;
} mc_estimate_t;
mc_estimate_t mc_series_estimate(const mc_series_t *s);

#endif
