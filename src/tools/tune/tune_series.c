#include "tools/tune/tune_series.h"

#include <math.h>
#include <stdlib.h>

void mc_series_keep(mc_series_t *s, double time)
{
    if (s->n < MC_MOST_ROUNDS)
        s->time[s->n++] = time;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The series in ascending order: until the next call. */
static const mc_series_t *sorted(const mc_series_t *s)
{
    static mc_series_t copy;
    copy = *s;
    qsort(copy.time, (size_t)copy.n, sizeof *copy.time, compare);
    return &copy;
}

/* The number below which `part` of a sorted series lies. */
static double quantile(const mc_series_t *s, double part)
{
    const double at = part * (s->n - 1);
    const int32_t below = (int32_t)at, above = below + 1 < s->n ? below + 1 : below;
    return s->time[below] + (at - below) * (s->time[above] - s->time[below]);
}

double mc_series_median(const mc_series_t *s)
{
    if (s->n == 0)
        return 0;
    return quantile(sorted(s), 0.5);
}

mc_estimate_t mc_series_estimate(const mc_series_t *s)
{
    if (s->n == 0)
        return (mc_estimate_t){0};
    const mc_series_t *const copy = sorted(s);
    const double spread = quantile(copy, 0.75) - quantile(copy, 0.25);
    return (mc_estimate_t){quantile(copy, 0.5), 0.93 * spread / sqrt(s->n), s->n};
}

bool mc_estimate_is_sure(const mc_estimate_t *estimate)
{
    return estimate->n >= MC_LEAST_ROUNDS && estimate->value > 2 * estimate->error;
}
