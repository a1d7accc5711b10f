/* When to say that this process waits: after 5 s, then every 30 s. */
#ifndef MC_BASE_NOTICE_H
#define MC_BASE_NOTICE_H

#include "base/base.h"

enum { MC_NOTICE_FIRST = 5, MC_NOTICE_AGAIN = 30 };

typedef struct {
    double begin, next;
} mc_notice_t;

static inline mc_notice_t mc_notice_begin(void)
{
    const double now = mc_now();
    return (mc_notice_t){.begin = now, .next = now + MC_NOTICE_FIRST};
}

/* The end of a wait that is to be looked at in time. */
static inline double mc_notice_until(const mc_notice_t *notice, double deadline)
{
    return notice->next < deadline ? notice->next : deadline;
}

/* Is it time to say so? *waited: seconds since the beginning. */
static inline bool mc_notice_due(mc_notice_t *notice, double *waited)
{
    const double now = mc_now();
    *waited = now - notice->begin;
    if (now < notice->next)
        return false;
    notice->next = now + MC_NOTICE_AGAIN;
    return true;
}

#endif
