#include "runtime/calibrate/series.h"

#include <math.h>

void mc_series_keep(mc_series_t *s, double time)
{
    int32_t at = s->n;
    if (at == MC_MOST_ROUNDS)
        return;
    for (; at > 0 && s->time[at - 1] > time; at--)
        s->time[at] = s->time[at - 1];
    s->time[at] = time;
    s->n++;
}

double mc_series_quantile(const mc_series_t *s, double part)
{
    if (s->n == 0)
        return 0;
    const double at = part * (s->n - 1);
    const int32_t below = (int32_t)at, above = below + 1 < s->n ? below + 1 : below;
    return s->time[below] + (at - below) * (s->time[above] - s->time[below]);
}

double mc_series_median(const mc_series_t *s)
{
    return mc_series_quantile(s, 0.5);
}

mc_estimate_t mc_series_estimate(const mc_series_t *s)
{
    if (s->n == 0)
        return (mc_estimate_t){0};
    const double spread = mc_series_quantile(s, 0.75) - mc_series_quantile(s, 0.25);
    return (mc_estimate_t){mc_series_quantile(s, 0.5), 0.93 * spread / sqrt(s->n), s->n};
}
